import * as z from 'zod';
import { once } from '#shared/time/once.ts';
import { HISTORY_DAYS, MAX_HISTORY_DAYS } from '../stored.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';
import { HISTORY_DAYS_TAG } from './table-definition.ts';

/** A tag is text that anybody may have written. */
const daysOfTag = z.coerce.number().int().positive().max(MAX_HISTORY_DAYS).catch(HISTORY_DAYS);

/** For how long history and audit are kept in a table, for those who write there and are not told by their environment. */
export class Retention {
  readonly #days: () => Promise<number>;

  constructor(table: Pick<DynamoDbTable, 'tag'>) {
    this.#days = once(async () => daysOfTag.parse(await table.tag(HISTORY_DAYS_TAG)));
  }

  /** As the table is tagged, which is read once. Never rejects: nobody may be kept from stopping evictions by that. */
  async historyDays(): Promise<number> {
    try {
      return await this.#days();
    } catch {
      return HISTORY_DAYS;
    }
  }
}

import * as z from 'zod';
import type { DynamoDbTable } from './dynamodb-table.ts';
import { HISTORY_DAYS, MOST_HISTORY_DAYS } from './stored.ts';
import { HISTORY_DAYS_TAG } from './table-definition.ts';

/** A tag is text that anybody may have written. */
const daysOfTag = z.coerce.number().int().positive().max(MOST_HISTORY_DAYS).catch(HISTORY_DAYS);

/** For how long history and audit are kept in a table, for those who write there and are not told by their environment. */
export class Retention {
  readonly #table: Pick<DynamoDbTable, 'tag'>;
  #days: Promise<number> | undefined;

  constructor(table: Pick<DynamoDbTable, 'tag'>) {
    this.#table = table;
  }

  /** As the table is tagged, which is read once. Never rejects: nobody may be kept from stopping evictions by that. */
  async historyDays(): Promise<number> {
    this.#days ??= this.#table.tag(HISTORY_DAYS_TAG).then((tag) => daysOfTag.parse(tag));
    try {
      return await this.#days;
    } catch {
      this.#days = undefined;
      return HISTORY_DAYS;
    }
  }
}

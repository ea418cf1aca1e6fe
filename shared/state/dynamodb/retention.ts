import * as z from 'zod';
import { once } from '#shared/time/cache.ts';
import { HISTORY_DAYS, MAX_HISTORY_DAYS } from '../stored.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';
import { HISTORY_DAYS_TAG } from './table-definition.ts';

/** A tag is text that any user may have written. */
const daysOfTag = z.coerce.number().int().positive().max(MAX_HISTORY_DAYS).catch(HISTORY_DAYS);

/** The retention of history and audit in a table, for writers whose environment does not set it. */
export class Retention {
  readonly #days: () => Promise<number>;

  constructor(table: Pick<DynamoDbTable, 'tag'>) {
    this.#days = once(async () => daysOfTag.parse(await table.tag(HISTORY_DAYS_TAG)));
  }

  /**
   * Returns the days in the table's tag, which is read once. Never rejects: an unreadable tag must not prevent a user
   * from stopping evictions.
   */
  async historyDays(): Promise<number> {
    try {
      return await this.#days();
    } catch {
      return HISTORY_DAYS;
    }
  }
}

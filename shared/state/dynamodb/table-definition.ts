import * as z from 'zod';
import { once } from '#shared/time/cache.ts';
import { HISTORY_DAYS, MAX_HISTORY_DAYS } from '../stored.ts';

/** The attribute with the time from which DynamoDB may remove an item, in epoch seconds. */
export const TTL_ATTRIBUTE = 'ttl';

/** The table's tag for the retention of history and audit, read by writers that are not deployed with the table. */
export const HISTORY_DAYS_TAG = 'taintward:history-days';

export const RELEASE_TAG = 'taintward:release';

/** The sparse index of registrations, audit entries, and each cluster's tainted nodes and history. */
export const CLUSTER_INDEX = 'by-cluster';

/** A tag is text that any user may have written. */
const daysOfTag = z.coerce.number().int().positive().max(MAX_HISTORY_DAYS).catch(HISTORY_DAYS);

/**
 * Reads the table's tag once, for writers whose environment does not set the days. Never rejects: an unreadable tag
 * must not prevent a user from stopping evictions.
 */
export function historyDaysOf(table: {
  tag(name: string): Promise<string | undefined>;
}): () => Promise<number> {
  const days = once(async () => daysOfTag.parse(await table.tag(HISTORY_DAYS_TAG)));
  return () => days().catch(() => HISTORY_DAYS);
}

import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields } from '#shared/telemetry/log-events.ts';
import type { SqliteStore } from './sqlite-store.ts';

/** Of more than these nobody reads. */
const TOLD = 20;

/** Tells which countdowns stand in the store, those that end first first, and how many more there are. Throws `StoreError`. */
export function tellCountdowns(store: Pick<SqliteStore, 'countdowns'>, log: Log): void {
  const { total, soonest } = store.countdowns(TOLD);
  for (const { ref, record } of soonest) log.info('eviction.stands', evictionFields(ref, record));
  if (total > soonest.length) log.info('evictions.stand', { more: total - soonest.length });
}

import type { ServiceStore } from '#shared/state/service-state.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields } from '#shared/telemetry/log-events.ts';

/** Of more than these nobody reads. */
const TOLD = 20;

/** Tells which countdowns stand in the store, those that end first first, and how many more there are. Rejects with `StoreError`. */
export async function tellCountdowns(store: Pick<ServiceStore, 'countdowns'>, log: Log): Promise<void> {
  const { total, soonest } = await store.countdowns(TOLD);
  for (const { ref, record } of soonest) log.info('eviction.loaded', evictionFields(ref, record));
  if (total > soonest.length) log.info('evictions.loaded', { more: total - soonest.length });
}

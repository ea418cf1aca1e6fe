import type { ServiceStore } from '#shared/state/service-state.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields } from '#shared/telemetry/log-events.ts';

/** Number of countdowns that are logged. Nobody would read more. */
const TOLD = 20;

/**
 * Logs the pending evictions in the store, earliest deadlines first, and the number of further ones. Rejects
 * with `StoreError`.
 */
export async function tellCountdowns(store: Pick<ServiceStore, 'countdowns'>, log: Log): Promise<void> {
  const { total, soonest } = await store.countdowns(TOLD);
  for (const { ref, record } of soonest) log.info('eviction.loaded', evictionFields(ref, record));
  if (total > soonest.length) log.info('evictions.loaded', { more: total - soonest.length });
}

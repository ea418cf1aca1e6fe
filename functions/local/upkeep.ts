import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EmbeddedTimers } from './embedded-timers.ts';
import type { SqliteStore } from './sqlite-store.ts';

/** Nothing waits for it: it is a net. */
const UPKEEP_MS = 3_600_000;

export interface UpkeepDeps {
  readonly store: Pick<SqliteStore, 'purge' | 'upcoming'>;
  readonly timers: Pick<EmbeddedTimers, 'rearm'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What TTL and `expiry` do in the cloud, hourly: removes what is kept no longer, and arms every timer anew from the
 * store, as a net. A task that fails is told of and tried again the next time; the others are done all the same.
 */
export function startUpkeep({ store, timers, clock, log }: UpkeepDeps): { stop(): Promise<void> } {
  const tasks = { purge: () => store.purge(clock.now()), rearm: () => timers.rearm(store) };
  const perform = async (task: keyof typeof tasks): Promise<void> => {
    try {
      await tasks[task]();
    } catch (error) {
      log.error('upkeep.failed', { task, reason: error });
    }
  };
  let running = Promise.resolve();
  const interval = setInterval(() => {
    running = running.then(() => perform('purge')).then(() => perform('rearm'));
  }, UPKEEP_MS);
  return {
    stop() {
      clearInterval(interval);
      return running;
    },
  };
}

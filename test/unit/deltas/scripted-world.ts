import type { DeltaHandlerDeps } from '#functions/deltas/handler.ts';
import { announcingBy } from '#functions/deltas/handler.ts';
import type { ApplyDeltasDeps } from '#shared/engine/decide/apply-deltas.ts';
import { TimerError } from '#shared/engine/timers.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type RecordingLog, recordingLog } from '#test/contracts/recording-log.ts';
import { at, rules } from '#test/unit/eviction/builders.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { ScriptedStore } from '#test/world/scripted-store.ts';

export interface ScriptedWorld extends DeltaHandlerDeps, Pick<ApplyDeltasDeps, 'announce'> {
  readonly store: ScriptedStore;
  readonly dueQueue: ScriptedQueue;
  readonly deadLetters: ScriptedQueue;
  readonly log: RecordingLog;
  /** Times of armed timers, in order. */
  readonly armed: EpochMs[];
  /** Number of failures before the first timer that can be armed. */
  timerOutages: number;
  readonly retries: { readonly receiptHandle: string; readonly seconds: number }[];
}

/** The in-memory ports of the delta handlers. A test can break each of them. The clock is fixed at second 0. */
export function scriptedWorld(store = new ScriptedStore()): ScriptedWorld {
  const [dueQueue, log] = [new ScriptedQueue(), recordingLog()];
  const world: ScriptedWorld = {
    store,
    dueQueue,
    log,
    announce: announcingBy(dueQueue, log),
    deadLetters: new ScriptedQueue(),
    leaseEpoch: async () => undefined,
    rules: async () => rules,
    clock: { now: () => at(0) },
    armed: [],
    timerOutages: 0,
    retries: [],
    timers: {
      arm: async (_ref, times) => {
        if (world.timerOutages > 0) {
          world.timerOutages -= 1;
          throw new TimerError('no timer could be armed');
        }
        world.armed.push(...times);
      },
    },
    visibility: {
      retryIn: async (messages) => {
        world.retries.push(...messages);
      },
    },
  };
  return world;
}

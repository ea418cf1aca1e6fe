import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { SeededRandom } from './seeded-random.ts';

interface Alarm {
  readonly at: EpochMs;
  readonly ring: () => void;
  off: boolean;
}

/** Simulated time: it stands still while anything happens, and then jumps to what happens next. */
export class SimulationClock implements Clock {
  #now: EpochMs;
  /** The next one last. */
  readonly #alarms: Alarm[] = [];

  constructor(now: EpochMs) {
    this.#now = now;
  }

  now(): EpochMs {
    return this.#now;
  }

  /** Rings at `at`, a whole millisecond, after all that ring then already. */
  setAlarm(at: EpochMs, ring: () => void): Alarm {
    const alarm = { at: Math.max(Math.ceil(at), this.#now), ring, off: false };
    let [low, high] = [0, this.#alarms.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#alarms[middle]?.at ?? 0) > alarm.at) low = middle + 1;
      else high = middle;
    }
    this.#alarms.splice(low, 0, alarm);
    return alarm;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.setAlarm(this.#now + ms, resolve);
    });
  }

  /** Lets everything happen that happens until then, each at its moment and one after the other. */
  async advanceTo(to: EpochMs): Promise<void> {
    await settle();
    for (let next = this.#alarms.at(-1); next && next.at <= to; next = this.#alarms.at(-1)) {
      this.#alarms.pop();
      if (next.off) continue;
      this.#now = next.at;
      next.ring();
      await settle();
    }
    this.#now = to;
  }
}

/** Everything that needs no time happens. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Runs `work` with the process's timers on simulated time and its random numbers from the seed, so that the code
 * under test, which sets timers and draws random numbers of its own, is repeatable, too.
 */
export async function withSimulatedTime<Result>(
  clock: SimulationClock,
  random: SeededRandom,
  work: () => Promise<Result>,
): Promise<Result> {
  const { setTimeout, clearTimeout } = globalThis;
  const { setTimeout: delay } = timersPromises;
  const { random: systemRandom } = Math;
  const simulated = {
    setTimeout: (ring: () => void, ms = 0) => clock.setAlarm(clock.now() + ms, ring),
    clearTimeout: (alarm: Alarm | undefined) => {
      if (alarm) alarm.off = true;
    },
  };
  Object.assign(globalThis, simulated);
  Object.assign(timersPromises, { setTimeout: (ms: number) => clock.sleep(ms) });
  Math.random = random.next;
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout });
    Object.assign(timersPromises, { setTimeout: delay });
    Math.random = systemRandom;
    syncBuiltinESMExports();
  }
}

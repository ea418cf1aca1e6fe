import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { SeededRandom } from './seeded-random.ts';

/** As good as what `setTimeout` returns. */
class Alarm {
  readonly at: EpochMs;
  readonly ring: () => void;
  /** Sets it anew, for as long as it was set. */
  readonly refresh: () => void;
  off = false;

  constructor(at: EpochMs, ring: () => void, refresh: () => void = () => undefined) {
    this.at = at;
    this.ring = ring;
    this.refresh = refresh;
  }

  unref(): this {
    return this;
  }
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
    const alarm = new Alarm(Math.max(Math.ceil(at), this.#now), ring);
    let [low, high] = [0, this.#alarms.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#alarms[middle]?.at ?? 0) > alarm.at) low = middle + 1;
      else high = middle;
    }
    this.#alarms.splice(low, 0, alarm);
    return alarm;
  }

  /** Rings every so often; what it returns is good to turn it off. */
  setInterval(ms: number, ring: () => void): Alarm {
    const interval = new Alarm(Infinity, ring);
    const ringOn = () => {
      if (interval.off) return;
      ring();
      this.setAlarm(this.#now + ms, ringOn);
    };
    this.setAlarm(this.#now + ms, ringOn);
    return interval;
  }

  /** Rings once, after so long, and that again from each time it is refreshed; what it returns is good to turn it off. */
  setTimeout(ms: number, ring: () => void): Alarm {
    let ringsAt = this.#now + ms;
    const timeout = new Alarm(ringsAt, ring, () => {
      ringsAt = this.#now + ms;
    });
    const ringOrWait = () => {
      if (timeout.off) return;
      if (this.#now >= ringsAt) ring();
      else this.setAlarm(ringsAt, ringOrWait);
    };
    this.setAlarm(ringsAt, ringOrWait);
    return timeout;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.setAlarm(this.#now + ms, resolve);
    });
  }

  /** Sleeps until then, or rejects as soon as the signal aborts. */
  async sleepUnless(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const alarm = this.setAlarm(this.#now + ms, resolve);
    const wake = () => {
      alarm.off = true;
      reject(signal.reason);
    };
    signal.addEventListener('abort', wake, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', wake));
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
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const { setTimeout: delay } = timersPromises;
  const { random: systemRandom } = Math;
  const { randomBytes } = crypto;
  const turnOff = (alarm: Alarm | undefined) => {
    if (alarm) alarm.off = true;
  };
  const simulated = {
    setTimeout: (ring: () => void, ms = 0) => clock.setTimeout(ms, ring),
    clearTimeout: turnOff,
    setInterval: (ring: () => void, ms: number) => clock.setInterval(ms, ring),
    clearInterval: turnOff,
  };
  Object.assign(globalThis, simulated);
  Object.assign(timersPromises, {
    setTimeout: (ms: number, _value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      signal ? clock.sleepUnless(ms, signal) : clock.sleep(ms),
  });
  Object.assign(crypto, {
    randomBytes: (size: number) => Buffer.from(Array.from({ length: size }, () => random.between(0, 255))),
  });
  Math.random = random.next;
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
    Object.assign(timersPromises, { setTimeout: delay });
    Object.assign(crypto, { randomBytes });
    Math.random = systemRandom;
    syncBuiltinESMExports();
  }
}

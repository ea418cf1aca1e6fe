import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { SeededRandom } from './seeded-random.ts';

/** A timer that replaces the result of `setTimeout`. */
class Alarm {
  at: EpochMs;
  readonly ring: () => void;
  /** Restarts the timer, with the same duration. */
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

const AT_ONCE = Promise.resolve();

/** Simulated time: it stands still while anything happens, and then jumps to the next event. */
export class SimulationClock implements Clock {
  #now: EpochMs;
  /** The alarms, the next one last. */
  readonly #alarms: Alarm[] = [];
  readonly #turns: (() => void)[] = [];

  constructor(now: EpochMs) {
    this.#now = now;
  }

  now(): EpochMs {
    return this.#now;
  }

  /** Calls `ring` at `at`, a whole millisecond, after all alarms that were set earlier for that time. */
  setAlarm(at: EpochMs, ring: () => void): Alarm {
    const alarm = new Alarm(at, ring);
    this.#set(alarm, at);
    return alarm;
  }

  #set(alarm: Alarm, at: EpochMs): void {
    alarm.at = Math.max(Math.ceil(at), this.#now);
    let [low, high] = [0, this.#alarms.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#alarms[middle]?.at ?? 0) > alarm.at) low = middle + 1;
      else high = middle;
    }
    this.#alarms.splice(low, 0, alarm);
  }

  /** Calls `ring` repeatedly at that interval; the returned alarm can be turned off. */
  setInterval(ms: number, ring: () => void): Alarm {
    const interval = this.setAlarm(this.#now + ms, () => {
      ring();
      this.#set(interval, this.#now + ms);
    });
    return interval;
  }

  /** Calls `ring` once, that long after the call or after the last refresh; the returned alarm can be turned off. */
  setTimeout(ms: number, ring: () => void): Alarm {
    let ringsAt = this.#now + ms;
    const ringOrWait = () => {
      if (this.#now >= ringsAt) ring();
      else this.#set(timeout, ringsAt);
    };
    const timeout = new Alarm(ringsAt, ringOrWait, () => {
      ringsAt = this.#now + ms;
    });
    this.#set(timeout, ringsAt);
    return timeout;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.setAlarm(this.#now + ms, resolve);
    });
  }

  /** Sleeps for that duration, or rejects as soon as the signal aborts. */
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

  /** Runs all events up to that time, each at its time and one after the other. */
  advanceTo(to: EpochMs): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const goOn = () => {
      try {
        if (this.#ringNext(to)) void AT_ONCE.then(settle);
        else resolve();
      } catch (error) {
        reject(error);
      }
    };
    // `nextTick` from a promise runs when no promise is left to continue: all work that needs no time is done.
    const settle = () => process.nextTick(goOn);
    void AT_ONCE.then(settle);
    return promise;
  }

  /** Runs the next event up to `to`; returns whether there was one. */
  #ringNext(to: EpochMs): boolean {
    if (this.#turns.length > 0) {
      for (const goOn of this.#turns.splice(0)) goOn();
      return true;
    }
    for (let next = this.#alarms.at(-1); next && next.at <= to; next = this.#alarms.at(-1)) {
      this.#alarms.pop();
      if (next.off) continue;
      this.#now = next.at;
      next.ring();
      return true;
    }
    this.#now = to;
    return false;
  }

  /** Resolves after all current work has progressed as far as it can, as `setImmediate` does. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#turns.push(resolve));
  }
}

const { setTimeout: delay, setImmediate: nextTurn } = timersPromises;
const { randomBytes } = crypto;
const { random: systemRandom } = Math;

/** The history that this thread plays, if any. */
let played: { readonly clock: SimulationClock; readonly random: SeededRandom } | undefined;

// Replaces the functions once and not for each history, because all modules of Node.js are updated, which takes long.
Object.assign(timersPromises, {
  setTimeout: (ms: number, value?: unknown, options: { signal?: AbortSignal } = {}) => {
    if (!played) return delay(ms, value, options);
    return options.signal ? played.clock.sleepUnless(ms, options.signal) : played.clock.sleep(ms);
  },
  setImmediate: () => (played ? played.clock.turn() : nextTurn()),
});
Object.assign(crypto, {
  randomBytes: (size: number) => {
    if (!played) return randomBytes(size);
    const { random } = played;
    return Buffer.from(Array.from({ length: size }, () => random.between(0, 255)));
  },
});
syncBuiltinESMExports();

/**
 * Runs `work` with the process's timers on simulated time and its random numbers from the seed. The code under test sets timers
 * and draws random numbers of its own, so this makes it repeatable.
 */
export async function withSimulatedTime<Result>(
  clock: SimulationClock,
  random: SeededRandom,
  work: () => Promise<Result>,
): Promise<Result> {
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const turnOff = (alarm: Alarm | undefined) => {
    if (alarm) alarm.off = true;
  };
  Object.assign(globalThis, {
    setTimeout: (ring: () => void, ms = 0) => clock.setTimeout(ms, ring),
    clearTimeout: turnOff,
    setInterval: (ring: () => void, ms: number) => clock.setInterval(ms, ring),
    clearInterval: turnOff,
  });
  Math.random = random.next;
  played = { clock, random };
  try {
    return await work();
  } finally {
    played = undefined;
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
    Math.random = systemRandom;
    // Collected objects of a history are cleaned up between turns, and the history itself takes no turns.
    await nextTurn();
  }
}

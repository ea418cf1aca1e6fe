import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { SeededRandom } from './seeded-random.ts';

/** As good as what `setTimeout` returns. */
class Alarm {
  at: EpochMs;
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

const AT_ONCE = Promise.resolve();

/** Simulated time: it stands still while anything happens, and then jumps to what happens next. */
export class SimulationClock implements Clock {
  #now: EpochMs;
  /** The next one last. */
  readonly #alarms: Alarm[] = [];
  readonly #turns: (() => void)[] = [];

  constructor(now: EpochMs) {
    this.#now = now;
  }

  now(): EpochMs {
    return this.#now;
  }

  /** Rings at `at`, a whole millisecond, after all that ring then already. */
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

  /** Rings every so often; what it returns is good to turn it off. */
  setInterval(ms: number, ring: () => void): Alarm {
    const interval = this.setAlarm(this.#now + ms, () => {
      ring();
      this.#set(interval, this.#now + ms);
    });
    return interval;
  }

  /** Rings once, after so long, and that again from each time it is refreshed; what it returns is good to turn it off. */
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
    // A tick that a promise asks for comes when no promise is left to go on: everything has happened that needs no time.
    const settle = () => process.nextTick(goOn);
    void AT_ONCE.then(settle);
    return promise;
  }

  /** Returns whether something happened, at the present moment or the next at which it does, up to `to`. */
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

  /** Resolves after all that is under way has got as far as it can, as `setImmediate`. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#turns.push(resolve));
  }
}

const { setTimeout: delay, setImmediate: nextTurn } = timersPromises;
const { randomBytes } = crypto;
const { random: systemRandom } = Math;

/** What plays in this thread, if anything. */
let played: { readonly clock: SimulationClock; readonly random: SeededRandom } | undefined;

// Once, and not for each history, of which it would take a good part: all of Node's modules are told.
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
 * Runs `work` with the process's timers on simulated time and its random numbers from the seed, so that the code
 * under test, which sets timers and draws random numbers of its own, is repeatable, too.
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
    // What is collected of a history is cleaned up between turns, of which it takes none itself.
    await nextTurn();
  }
}

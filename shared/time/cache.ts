import { Age } from './age.ts';
import type { Clock } from './clock.ts';

/** Caches by key for `maxAgeMs`; concurrent callers share a read. Rejects as `read` does; a failure is not cached. */
export function cached<Key, T>(
  maxAgeMs: number,
  read: (key: Key) => Promise<T>,
  clock: Clock,
): (key: Key) => Promise<T> {
  const known = new Map<Key, { readonly age: Age; readonly found: Promise<T> }>();
  return async (key) => {
    const last = known.get(key);
    if (last && last.age.atMostMs < maxAgeMs) return last.found;
    const age = new Age(clock);
    const found = read(key);
    known.set(key, { age, found });
    void found.catch(() => known.delete(key));
    return found;
  };
}

/**
 * Returns a function that makes a value at the first call and returns the same to later calls; after a failure, the
 * next call makes it again.
 */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** Returns a function that can be replaced by a new one, without the state of the old one. */
export function renewable<Args extends readonly unknown[], Result>(
  make: () => (...args: Args) => Result,
): { readonly call: (...args: Args) => Result; readonly renew: () => void } {
  let current = make();
  return {
    call: (...args) => current(...args),
    renew: () => {
      current = make();
    },
  };
}

/** A value that was requested, and for how long it is valid. */
export interface Obtained<T> {
  readonly value: T;
  /** Milliseconds, from before the request, after which the value is requested again. */
  readonly freshForMs: number;
  /** Milliseconds, from before the request, for which the value is used if it can't be requested again. */
  readonly servesForMs: number;
}

/** A value that was obtained this recently isn't forgotten: the rejection was of the previous value. */
const MIN_AGE_MS = 5_000;

/** Interval of retries while a value can't be renewed and the old one is still used. */
const RETRY_MS = 10_000;

interface Kept<T> extends Obtained<T> {
  readonly requested: Age;
  readonly obtained: Age;
}

/**
 * A value that is obtained when it is needed, kept, and renewed in time; it is requested once, however many callers
 * wait.
 */
export class RefreshingCache<T> {
  readonly #obtain: () => Promise<Obtained<T>>;
  readonly #clock: Clock;
  #kept: Kept<T> | undefined;
  /** Time since the last failed attempt; absent: the last attempt succeeded. */
  #failed: Age | undefined;
  #underway: Promise<T> | undefined;

  constructor(obtain: () => Promise<Obtained<T>>, clock: Clock) {
    this.#obtain = obtain;
    this.#clock = clock;
  }

  /** Resolves with the value. Rejects as `obtain` does if no value can be used. */
  async get(): Promise<T> {
    if (this.#kept && !this.#isDue(this.#kept)) return this.#kept.value;
    this.#underway ??= this.#renew().finally(() => {
      this.#underway = undefined;
    });
    return this.#underway;
  }

  /** Forgets a value that was rejected: the next caller gets another. */
  forget(): void {
    if (this.#kept && this.#kept.obtained.atMostMs >= MIN_AGE_MS) this.#kept = undefined;
  }

  #isDue({ requested, freshForMs, servesForMs }: Kept<T>): boolean {
    if (requested.atMostMs >= servesForMs) return true;
    const rests = this.#failed !== undefined && this.#failed.atLeastMs < RETRY_MS;
    return requested.atMostMs >= freshForMs && !rests;
  }

  async #renew(): Promise<T> {
    const requested = new Age(this.#clock);
    try {
      this.#kept = { ...(await this.#obtain()), requested, obtained: new Age(this.#clock) };
      this.#failed = undefined;
      return this.#kept.value;
    } catch (error) {
      if (!this.#kept || this.#kept.requested.atMostMs >= this.#kept.servesForMs) throw error;
      this.#failed = new Age(this.#clock);
      return this.#kept.value;
    }
  }
}

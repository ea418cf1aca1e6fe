import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Something that had to be asked for, and for how long it holds. */
export interface Obtained<T> {
  readonly value: T;
  /** Milliseconds, from before it was asked for, after which it is asked for again. */
  readonly freshForMs: number;
  /** The same of the time for which it serves when it cannot be had again. */
  readonly servesForMs: number;
}

/** What was obtained this short a time ago is not forgotten: whoever complains of it still speaks of the one before. */
const MIN_AGE_MS = 5_000;
/** While a value cannot be had anew and the old one serves, it is asked for this often. */
const RETRY_MS = 10_000;

/** A value with the time since it was asked for, and since it came. */
interface Kept<T> extends Obtained<T> {
  readonly asked: Age;
  readonly obtained: Age;
}

/** A value that is obtained when it is needed, kept, and renewed in time; asked for once, however many wait. */
export class RefreshingCache<T> {
  readonly #obtain: () => Promise<Obtained<T>>;
  readonly #clock: Clock;
  #kept: Kept<T> | undefined;
  /** Since the last try that failed; absent: the last one did not. */
  #failed: Age | undefined;
  #underway: Promise<T> | undefined;

  constructor(obtain: () => Promise<Obtained<T>>, clock: Clock) {
    this.#obtain = obtain;
    this.#clock = clock;
  }

  /** Rejects with what `obtain` rejects with, when there is no value that serves. */
  async get(): Promise<T> {
    if (this.#kept && !this.#isDue(this.#kept)) return this.#kept.value;
    this.#underway ??= this.#renew().finally(() => {
      this.#underway = undefined;
    });
    return this.#underway;
  }

  /** Somebody refused the value: the next one who asks gets another. */
  forget(): void {
    if (this.#kept && this.#kept.obtained.atMostMs >= MIN_AGE_MS) this.#kept = undefined;
  }

  #isDue({ asked, freshForMs, servesForMs }: Kept<T>): boolean {
    if (asked.atMostMs >= servesForMs) return true;
    const rests = this.#failed !== undefined && this.#failed.atLeastMs < RETRY_MS;
    return asked.atMostMs >= freshForMs && !rests;
  }

  async #renew(): Promise<T> {
    const asked = new Age(this.#clock);
    try {
      this.#kept = { ...(await this.#obtain()), asked, obtained: new Age(this.#clock) };
      this.#failed = undefined;
      return this.#kept.value;
    } catch (error) {
      if (!this.#kept || this.#kept.asked.atMostMs >= this.#kept.servesForMs) throw error;
      this.#failed = new Age(this.#clock);
      return this.#kept.value;
    }
  }
}

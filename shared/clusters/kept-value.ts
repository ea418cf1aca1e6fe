import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Something that had to be asked for, and for how long it holds. */
export interface Obtained<T> {
  readonly value: T;
  /** From then on it is asked for anew. */
  readonly refreshAt: EpochMs;
  /** Until then it serves when it cannot be had anew. */
  readonly uselessAt: EpochMs;
}

/** What was obtained this short a time ago is not forgotten: whoever complains of it still speaks of the one before. */
const MIN_AGE_MS = 5_000;
/** While a value cannot be had anew and the old one serves, it is asked for this often. */
const RETRY_MS = 10_000;

/** A value that is obtained when it is needed, kept, and renewed in time; asked for once, however many wait. */
export class KeptValue<T> {
  readonly #obtain: () => Promise<Obtained<T>>;
  readonly #clock: Clock;
  #kept: Obtained<T> | undefined;
  #obtainedAt: EpochMs = 0;
  #retryAt: EpochMs = 0;
  #underway: Promise<T> | undefined;

  constructor(obtain: () => Promise<Obtained<T>>, clock: Clock) {
    this.#obtain = obtain;
    this.#clock = clock;
  }

  /** Rejects with what `obtain` rejects with, when there is no value that serves. */
  async get(): Promise<T> {
    const now = this.#clock.now();
    if (this.#kept && now < Math.max(this.#kept.refreshAt, this.#retryAt) && now < this.#kept.uselessAt) {
      return this.#kept.value;
    }
    this.#underway ??= this.#renew().finally(() => {
      this.#underway = undefined;
    });
    return this.#underway;
  }

  /** Somebody refused the value: the next one who asks gets another. */
  forget(): void {
    if (this.#clock.now() - this.#obtainedAt >= MIN_AGE_MS) this.#kept = undefined;
  }

  async #renew(): Promise<T> {
    try {
      this.#kept = await this.#obtain();
      this.#obtainedAt = this.#clock.now();
      return this.#kept.value;
    } catch (error) {
      const now = this.#clock.now();
      if (!this.#kept || now >= this.#kept.uselessAt) throw error;
      this.#retryAt = now + RETRY_MS;
      return this.#kept.value;
    }
  }
}

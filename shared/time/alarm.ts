import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Clock } from './clock.ts';

/** The longest time `setTimeout` takes (a signed 32-bit number of ms, 24.8 days); a longer one ends at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Rings once, at its moment by the clock or soon after, never before; keeps no process alive. */
export class Alarm {
  readonly #clock: Clock;
  readonly #at: EpochMs;
  readonly #ring: () => void;
  #timeout: NodeJS.Timeout;

  /** `at`: any moment, however far; one that is past rings in the next turn. */
  constructor(clock: Clock, at: EpochMs, ring: () => void) {
    this.#clock = clock;
    this.#at = at;
    this.#ring = ring;
    this.#timeout = this.#wait();
  }

  /** Keeps it from ringing; does nothing once it rang. */
  cancel(): void {
    clearTimeout(this.#timeout);
  }

  #wait(): NodeJS.Timeout {
    const leftMs = Math.min(Math.max(this.#at - this.#clock.now(), 0), MAX_TIMEOUT_MS);
    return setTimeout(() => {
      // A timeout may end a moment before the clock says so, or be the first of several.
      if (this.#clock.now() < this.#at) this.#timeout = this.#wait();
      else this.#ring();
    }, leftMs).unref();
  }
}

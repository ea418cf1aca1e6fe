import type { Clock } from './clock.ts';
import type { EpochMs } from './epoch-ms.ts';

/** Interval at which it checks the clock, which may have been set forward. */
const LOOK_MS = 1_000;

/** Fires once, at its time by the clock or up to a second later, never before; doesn't keep a process alive. */
export class Alarm {
  readonly #clock: Clock;
  readonly #at: EpochMs;
  readonly #ring: () => void;
  #timeout: NodeJS.Timeout;

  /** `at`: any time, however far; a past time fires in the next turn of the event loop. */
  constructor(clock: Clock, at: EpochMs, ring: () => void) {
    this.#clock = clock;
    this.#at = at;
    this.#ring = ring;
    this.#timeout = this.#wait();
  }

  /** Prevents the alarm from firing; does nothing once it fired. */
  cancel(): void {
    clearTimeout(this.#timeout);
  }

  #wait(): NodeJS.Timeout {
    const leftMs = Math.min(Math.max(this.#at - this.#clock.now(), 0), LOOK_MS);
    return setTimeout(() => {
      if (this.#clock.now() < this.#at) this.#timeout = this.#wait();
      else this.#ring();
    }, leftMs).unref();
  }
}

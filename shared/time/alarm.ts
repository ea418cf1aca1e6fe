import type { Clock } from './clock.ts';
import type { EpochMs } from './epoch-ms.ts';

/** So often it looks at the clock, which may have been set forward. */
const LOOK_MS = 1_000;

/** Fires once, at its time by the clock or up to a second after, never before; keeps no process alive. */
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
    const leftMs = Math.min(Math.max(this.#at - this.#clock.now(), 0), LOOK_MS);
    return setTimeout(() => {
      if (this.#clock.now() < this.#at) this.#timeout = this.#wait();
      else this.#ring();
    }, leftMs).unref();
  }
}

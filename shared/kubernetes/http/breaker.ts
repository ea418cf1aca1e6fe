/** So many unanswered calls in a row, and the server counts as out of reach: one or two may be bad luck. */
const FAILURES_TO_OPEN = 5;
/** How long it is not asked then: short, because evictions wait for its comeback. */
export const PAUSE_MS = 5_000;

/**
 * Keeps calls from a server that does not answer. Open after some failures in a row, it lets one call through
 * after each pause; any answer closes it. Times are milliseconds of the caller's stopwatch.
 */
export class Breaker {
  #failures = 0;
  #answers = 0;
  /** The last failure, or the last call that was let through while open. */
  #triedAt = 0;

  /** Whether the server counts as out of reach. */
  get open(): boolean {
    return this.#failures >= FAILURES_TO_OPEN;
  }

  /** Until when no call may begin; `undefined`: one may begin now. */
  refusesUntil(now: number): number | undefined {
    const pausedMs = now - this.#triedAt;
    // A clock without a stopwatch that was set back must not make the pause longer.
    return this.open && pausedMs >= 0 && pausedMs < PAUSE_MS ? this.#triedAt + PAUSE_MS : undefined;
  }

  /** A call begins that {@link refusesUntil} does not forbid. Returns what {@link failed} wants to know of it. */
  begin(now: number): number {
    if (this.open) this.#triedAt = now;
    return this.#answers;
  }

  answered(): void {
    this.#answers += 1;
    this.#failures = 0;
  }

  /** No answer came to a call. One that began before the last answer says nothing about now. */
  failed(begun: number, now: number): void {
    if (begun !== this.#answers) return;
    this.#failures += 1;
    this.#triedAt = now;
  }
}

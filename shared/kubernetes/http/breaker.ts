/** Consecutive unanswered calls after which the server counts as unreachable: one or two may be bad luck. */
export const FAILURES_TO_OPEN = 5;
/** How long no calls are made then: short, because evictions wait for the server's return. */
export const PAUSE_MS = 5_000;

/**
 * Stops calls to a silent server: open after some failures in a row, with one call after each pause; any response
 * closes it. Times are stopwatch milliseconds.
 */
export class Breaker {
  #failures = 0;
  #answers = 0;
  /** The last failure, or the last call that was allowed while open. */
  #triedAt = 0;

  get open(): boolean {
    return this.#failures >= FAILURES_TO_OPEN;
  }

  /** Returns the time until which no call may begin; `undefined`: one may begin now. */
  refusesUntil(now: number): number | undefined {
    const pausedMs = now - this.#triedAt;
    // If there is no stopwatch, setting the clock back must not extend the pause.
    return this.open && pausedMs >= 0 && pausedMs < PAUSE_MS ? this.#triedAt + PAUSE_MS : undefined;
  }

  /** Records the start of a call that {@link refusesUntil} allows. Returns the argument for {@link failed}. */
  begin(now: number): number {
    if (this.open) this.#triedAt = now;
    return this.#answers;
  }

  answered(): void {
    this.#answers += 1;
    this.#failures = 0;
  }

  /** Records an answer that another process got at `at`. It counts if it is newer than the last failure. */
  answeredElsewhere(at: number): void {
    if (at > this.#triedAt) this.answered();
  }

  /** Records that a call got no response. A call that began before the last response proves nothing about the present. */
  failed(begun: number, now: number): void {
    if (begun !== this.#answers) return;
    this.#failures += 1;
    this.#triedAt = now;
  }
}

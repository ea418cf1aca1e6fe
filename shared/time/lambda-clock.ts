import { Age } from './age.ts';
import { type Clock, stopwatchMs, systemClock } from './clock.ts';

/**
 * The clock of a Lambda function, which may be frozen between invocations, together with its stopwatch. Frozen time is
 * added by the wall clock, the only clock that shows it. Otherwise, delays and waits would last for hours in a function
 * that is seldom invoked.
 */
export class LambdaClock implements Clock {
  readonly #host: Clock;
  #frozenMs = 0;
  /** Time since the last invocation began. */
  #invoked: Age | undefined;

  constructor(host: Clock = systemClock) {
    this.#host = host;
  }

  now(): number {
    return this.#host.now();
  }

  stopwatch(): number {
    return stopwatchMs(this.#host) + this.#frozenMs;
  }

  /** Adds frozen time. To be called when each invocation begins. */
  invoked(): void {
    if (this.#invoked) this.#frozenMs += this.#invoked.atMostMs - this.#invoked.atLeastMs;
    this.#invoked = new Age(this.#host);
  }
}

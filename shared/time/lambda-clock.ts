import { Age } from './age.ts';
import { type Clock, stopwatchMs, systemClock } from './clock.ts';

/**
 * The clock of a Lambda function, which may be frozen between invocations, and its stopwatch with it. Frozen time is added by the wall
 * clock, which nothing else can tell: what rests or waits would else do so for hours in a function that is seldom invoked.
 */
export class LambdaClock implements Clock {
  readonly #host: Clock;
  #frozenMs = 0;
  /** Since the last invocation began. */
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

  /** To be called as each invocation begins. */
  invoked(): void {
    if (this.#invoked) this.#frozenMs += this.#invoked.atMostMs - this.#invoked.atLeastMs;
    this.#invoked = new Age(this.#host);
  }
}

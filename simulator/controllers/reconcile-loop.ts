import type { EpochMs } from '../objects/kinds.ts';

/** After a failure, for example a full disk. */
const RETRY_MS = 1000;
/** What a timer can hold (2^31 - 1 ms); whoever waits longer looks again in between. */
const MAX_TIMEOUT_MS = 2_147_483_647;

/** One controller: brings what is closer to what should be, and says when time alone will call for it again. */
export interface Controller {
  readonly name: string;
  /** Looks at everything anew; returns the next moment to look, or `undefined` to wait for a change. */
  reconcile(now: EpochMs): EpochMs | undefined;
}

/** Is told of looks that failed. */
export interface ControllerLog {
  error(
    event: 'simulated-cluster.controller-failed',
    told: { readonly controller: string; readonly error: unknown },
  ): void;
}

/** Runs a controller once for any number of changes at a time, and when its moment comes. */
export class ReconcileLoop {
  readonly #controller: Controller;
  readonly #now: () => EpochMs;
  readonly #log: ControllerLog | undefined;
  #timer: NodeJS.Timeout | undefined;
  #triggered = false;
  #stopped = false;

  constructor(controller: Controller, now: () => EpochMs, log?: ControllerLog) {
    this.#controller = controller;
    this.#now = now;
    this.#log = log;
  }

  /** Something changed: look soon, after whoever changed it has finished. */
  trigger(): void {
    if (this.#triggered) return;
    this.#triggered = true;
    this.#lookIn(0);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => this.#look(), Math.min(ms, MAX_TIMEOUT_MS));
  }

  #look(): void {
    this.#triggered = false;
    const now = this.#now();
    const next = this.#reconcile(now);
    // What it changed itself may have triggered it again, which comes first.
    if (next !== undefined && !this.#triggered) this.#lookIn(Math.max(0, next - now));
  }

  #reconcile(now: EpochMs): EpochMs | undefined {
    try {
      return this.#controller.reconcile(now);
    } catch (error) {
      const { name } = this.#controller;
      this.#log?.error('simulated-cluster.controller-failed', { controller: name, error });
      // What it changed before it failed must not make it try again at once.
      this.#triggered = false;
      return now + RETRY_MS;
    }
  }
}

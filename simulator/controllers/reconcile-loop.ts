import type { EpochMs } from '../objects/kinds.ts';

/** The delay after a failure, for example a full disk. */
const RETRY_MS = 1000;
/** The longest delay of a timer (2^31 - 1 ms); for longer delays, the loop also looks in between. */
const MAX_TIMEOUT_MS = 2_147_483_647;

/** One controller: brings the objects closer to their desired state, and returns when time alone requires the next call. */
export interface Controller {
  readonly name: string;
  /** Reconciles all objects; returns the time of the next call, or `undefined` to wait for a change. */
  reconcile(now: EpochMs): EpochMs | undefined;
}

/** Receives failures of controllers. */
export interface ControllerLog {
  error(
    event: 'simulated-cluster.controller-failed',
    fields: { readonly controller: string; readonly error: unknown },
  ): void;
}

/** Runs a controller once for any number of simultaneous changes, and at the time that it asked for. */
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

  /** Schedules a run after a change, once the caller has finished. */
  trigger(): void {
    if (this.#triggered) return;
    this.#triggered = true;
    this.#reviewIn(0);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #reviewIn(ms: number): void {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => this.#review(), Math.min(ms, MAX_TIMEOUT_MS));
  }

  #review(): void {
    this.#triggered = false;
    const now = this.#now();
    const next = this.#reconcile(now);
    // The controller's own changes may have triggered it again; that run comes first.
    if (next !== undefined && !this.#triggered) this.#reviewIn(Math.max(0, next - now));
  }

  #reconcile(now: EpochMs): EpochMs | undefined {
    try {
      return this.#controller.reconcile(now);
    } catch (error) {
      const { name } = this.#controller;
      this.#log?.error('simulated-cluster.controller-failed', { controller: name, error });
      // Changes made before the failure must not trigger an immediate retry.
      this.#triggered = false;
      return now + RETRY_MS;
    }
  }
}

import { type EpochMs, type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { encodeDue } from '#shared/queues/due-message.ts';
import type { QueueSender, SendFailure } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Alarm } from '#shared/time/alarm.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Timers } from '#shared/timers/timers.ts';

export interface EmbeddedTimersDeps {
  readonly dueQueue: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
}

const RESEND: Backoff = { firstMs: 100, longestMs: 10_000 };

/**
 * Timers in this process, exact to the millisecond. They end with it: call `rearm` when it starts. What falls due
 * at one moment is sent together; what the queue does not take is sent again until it does.
 */
export class EmbeddedTimers implements Timers {
  readonly #deps: EmbeddedTimersDeps;
  /** The nodes that wait for each moment. */
  readonly #moments = new Map<EpochMs, Map<string, NodeRef>>();
  readonly #alarms = new Set<Alarm>();
  readonly #sending = new Set<Promise<void>>();
  #stopped = false;

  constructor(deps: EmbeddedTimersDeps) {
    this.#deps = deps;
  }

  async arm(ref: NodeRef, fireAts: readonly EpochMs[]): Promise<void> {
    if (this.#stopped) return;
    const now = this.#deps.clock.now();
    for (const fireAt of fireAts) this.#add(ref, Math.max(fireAt, now));
  }

  /** Arms a timer for everything the store knows to come. Rejects with `StoreError`. */
  async rearm(store: {
    upcoming(): AsyncIterable<{ readonly ref: NodeRef; readonly fireAt: EpochMs }>;
  }): Promise<void> {
    for await (const { ref, fireAt } of store.upcoming()) await this.arm(ref, [fireAt]);
  }

  /**
   * Forgets what is armed, and from now on what is to be armed: the next start does it anew, from the store.
   * Resolves when the queue has answered what is being sent.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const alarm of this.#alarms) alarm.cancel();
    this.#alarms.clear();
    await Promise.all(this.#sending);
  }

  #add(ref: NodeRef, at: EpochMs): void {
    const nodes = this.#moments.get(at);
    if (nodes) {
      nodes.set(nodeKey(ref), ref);
      return;
    }
    this.#moments.set(at, new Map([[nodeKey(ref), ref]]));
    this.#ringAt(at, () => this.#fire(at));
  }

  #fire(at: EpochMs): void {
    const nodes = this.#moments.get(at) ?? new Map<string, NodeRef>();
    this.#moments.delete(at);
    this.#send(at, [...nodes.values()], 1);
  }

  #send(at: EpochMs, refs: readonly NodeRef[], tries: number): void {
    const sending = this.#unsent(at, refs)
      .then((unsent) => {
        if (unsent.length === 0) return;
        const again = this.#deps.clock.now() + backoffMs(tries, RESEND);
        this.#ringAt(again, () => this.#send(at, unsent, tries + 1));
      })
      .finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  /** Sends a due message for each node; returns the nodes whose message the queue did not take. */
  async #unsent(at: EpochMs, refs: readonly NodeRef[]): Promise<readonly NodeRef[]> {
    const { dueQueue, log } = this.#deps;
    let failures: readonly SendFailure[];
    try {
      failures = await dueQueue.send(
        refs.map((ref) => ({ body: encodeDue({ ...ref, at }), groupId: ref.cluster })),
      );
    } catch (error) {
      log.warn('timer.unsent', { nodes: refs.length, at, reason: error });
      return refs;
    }
    for (const { index, reason } of failures) log.warn('timer.unsent', { ...refs[index], at, reason });
    const failed = new Set(failures.map(({ index }) => index));
    return refs.filter((_, index) => failed.has(index));
  }

  #ringAt(at: EpochMs, ring: () => void): void {
    if (this.#stopped) return;
    const alarm = new Alarm(this.#deps.clock, at, () => {
      this.#alarms.delete(alarm);
      ring();
    });
    this.#alarms.add(alarm);
  }
}

import { encodeDelta } from '#shared/deltas/message.ts';
import { deduplicationId, deltaObject, messageGroupId } from '#shared/deltas/message-ids.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { type ClusterName, nodeKey, parseNodeKey } from '#shared/eviction/identity.ts';
import type { QueueSender, SendFailure } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import type { RelayMetrics } from './relay-metrics.ts';

/** Deltas handed to the queue at a time: enough to fill its batches, few enough to stay fresh. */
const SEND_AT_ONCE = 100;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };

/** One queue's part of the outbox: the newest delta per object, in the order in which the objects came up. */
export class OutboxLane {
  readonly #name: string;
  readonly #queue: QueueSender;
  readonly #log: Log;
  readonly #metrics: RelayMetrics;
  /** By node, then by object. */
  readonly #waiting = new Map<string, Map<string, Delta>>();
  readonly #stopping = new AbortController();
  #sending: Promise<void> | undefined;

  constructor(name: string, queue: QueueSender, log: Log, metrics: RelayMetrics) {
    this.#name = name;
    this.#queue = queue;
    this.#log = log;
    this.#metrics = metrics;
  }

  put(delta: Delta): void {
    if (this.#stopping.signal.aborted) return;
    this.#waitingOf(delta).set(deltaObject(delta), delta);
    this.#sending ??= this.#sendAll();
  }

  dropNode(key: string): void {
    this.#waiting.delete(key);
  }

  dropCluster(cluster: ClusterName): void {
    for (const key of this.#waiting.keys()) {
      if (parseNodeKey(key).cluster === cluster) this.#waiting.delete(key);
    }
  }

  /** Resolves once everything put so far is sent, or given up. */
  async drained(): Promise<void> {
    await this.#sending;
  }

  stop(): void {
    this.#stopping.abort();
    this.#waiting.clear();
  }

  async #sendAll(): Promise<void> {
    // Let the caller finish: what it puts in one go travels together.
    await Promise.resolve();
    for (let failures = 0; this.#waiting.size > 0; ) {
      if (await this.#send(this.#take(SEND_AT_ONCE))) {
        failures = 0;
        continue;
      }
      failures += 1;
      const { signal } = this.#stopping;
      await pause(backoffMs(failures, BACKOFF), signal);
    }
    // In the turn in which nothing was left: what is put from now on starts anew.
    this.#sending = undefined;
  }

  #take(count: number): readonly Delta[] {
    const taken: Delta[] = [];
    for (const [key, ofNode] of this.#waiting) {
      for (const [object, delta] of ofNode) {
        if (taken.length === count) return taken;
        taken.push(delta);
        ofNode.delete(object);
      }
      this.#waiting.delete(key);
    }
    return taken;
  }

  /** Sends, and puts back what the queue did not take. False: it took nothing, so it needs a pause. */
  async #send(deltas: readonly Delta[]): Promise<boolean> {
    const messages = deltas.map((delta) => ({
      body: encodeDelta(delta),
      groupId: messageGroupId(delta.ref),
      deduplicationId: deduplicationId(delta),
    }));
    let failed: readonly SendFailure[];
    try {
      failed = await this.#queue.send(messages);
    } catch (error) {
      this.#log.warn('relay.queue-unreachable', { queue: this.#name, waiting: deltas.length, reason: error });
      this.#putBack(deltas);
      return false;
    }
    this.#metrics.sent.inc({ queue: this.#name }, deltas.length - failed.length);
    for (const { index, reason } of failed.filter(({ permanent }) => permanent)) {
      this.#metrics.refused.inc({ queue: this.#name });
      this.#log.error('relay.delta-refused', { queue: this.#name, ...deltas[index]?.ref, reason });
    }
    const retried = failed.filter(({ permanent }) => !permanent);
    this.#putBack(retried.flatMap(({ index }) => deltas[index] ?? []));
    return retried.length < deltas.length;
  }

  /** What was not sent waits again, unless something newer about the same object came meanwhile. */
  #putBack(deltas: readonly Delta[]): void {
    for (const delta of this.#stopping.signal.aborted ? [] : deltas) {
      const ofNode = this.#waitingOf(delta);
      if (!ofNode.has(deltaObject(delta))) ofNode.set(deltaObject(delta), delta);
    }
    const sizes = [...this.#waiting.values()].map(({ size }) => size);
    this.#metrics.pending.set(
      { queue: this.#name },
      sizes.reduce((sum, size) => sum + size, 0),
    );
  }

  #waitingOf(delta: Delta): Map<string, Delta> {
    const key = nodeKey(delta.ref);
    const ofNode = this.#waiting.get(key) ?? new Map<string, Delta>();
    this.#waiting.set(key, ofNode);
    return ofNode;
  }
}

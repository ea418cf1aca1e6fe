import { setImmediate as nextTurn } from 'node:timers/promises';
import { deduplicationId, deltaMessage, messageGroupId } from '#shared/aws/delta-message.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '#shared/aws/limits.ts';
import { messageBytes } from '#shared/aws/sqs-message.ts';
import type { Subject } from '#shared/engine/watch/cluster-view.ts';
import { type PendingDeltas, subjectOf } from '#shared/engine/watch/pending-deltas.ts';
import type { DeltaQueue } from '#shared/engine/watch/ports.ts';
import type { RelayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { type Delta, deltaId, onlyPod } from '#shared/eviction/facts.ts';
import { type ClusterName, type NodeRef, nodeKey, parseNodeKey } from '#shared/eviction/identity.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { reportSilence } from '#shared/time/stopping.ts';

/** Concurrent calls to a queue. At 15 ms a call, that is about 10,000 deltas a second, more than a core makes. */
export const CALLS = 16;
/** Maximum of concurrent calls with deltas of one cluster: others need not wait, however many it has. */
export const CALLS_OF_CLUSTER = 12;
/** After this much continuous work, the event loop is free for incoming events. */
const WORK_MS = 5;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };

/** A cluster whose deltas are sent. */
export interface ClusterOutbox {
  readonly name: ClusterName;
  readonly pending: PendingDeltas;
  readonly canSend: () => boolean;
  /** Called when a queue accepted deltas of the cluster, or with an error when it did not. */
  readonly onSent: (queue: DeltaQueue, error?: unknown) => void;
}

interface OutgoingDelta {
  readonly of: ClusterOutbox;
  readonly key: string;
  readonly delta: Delta;
  readonly message: OutgoingMessage;
}

export interface DeltaBatcherDeps {
  readonly name: DeltaQueue;
  readonly queue: QueueSender;
  readonly clusters: ReadonlyMap<ClusterName, ClusterOutbox>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
  readonly signal: AbortSignal;
  /** Marks subjects as pending again: those that the queue did not accept, or that had no room in a node's delta. */
  readonly mark: (of: ClusterOutbox, subjects: readonly Subject[], wake?: boolean) => void;
}

/**
 * Sends pending deltas to one queue. Clusters take turns node by node, so that one with few deltas is in the next call.
 * Calls run concurrently, but never two with deltas of one node: these arrive in the order of their versions.
 */
export class DeltaBatcher {
  readonly #deps: DeltaBatcherDeps;
  readonly #nodes: WorkQueue<string>;
  readonly #callsOf = new WeakMap<ClusterOutbox, number>();
  #calls = 0;
  #failures = 0;
  #filling = false;
  /** Callbacks that wait until no work is left. */
  readonly #waiting = new Set<() => void>();

  constructor(deps: DeltaBatcherDeps) {
    const { clock, signal } = deps;
    this.#deps = deps;
    this.#nodes = new WorkQueue({ clock, backoff: BACKOFF, clusterOf: (key) => parseNodeKey(key).cluster });
    this.#nodes.onReady(() => this.send());
    signal.addEventListener('abort', () => {
      this.#nodes.stop();
      this.send();
    });
  }

  add(ref: NodeRef): void {
    this.#nodes.add(nodeKey(ref));
  }

  /** Sends the deltas that may be sent. Call it also when a cluster may send again. */
  send(): void {
    if (this.#filling) return;
    this.#filling = true;
    void this.#fill();
  }

  get busy(): boolean {
    return this.#filling || this.#calls > 0 || this.#nodes.resting > 0;
  }

  async drained(): Promise<void> {
    if (this.busy) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  async #fill(): Promise<void> {
    const { clock, signal } = this.#deps;
    // Let the caller finish: deltas that it marks in one turn share a call.
    await Promise.resolve();
    let working = new Age(clock);
    for (;;) {
      if (this.#failures > 0) await pause(backoffMs(this.#failures, BACKOFF), signal);
      const deltas = this.#calls < CALLS ? this.#take() : [];
      if (deltas.length === 0) break;
      const call = this.#call(deltas);
      // After a failure to reach the queue, send one call at a time until the queue responds.
      if (this.#failures > 0) await call;
      else if (working.atLeastMs >= WORK_MS) {
        await nextTurn();
        working = new Age(clock);
      }
    }
    if (this.#calls === 0) this.#failures = 0;
    this.#gauge();
    // Reset in the same turn in which no work was left: later additions then start a new run.
    this.#filling = false;
    if (this.busy) return;
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** Takes the deltas for one call. They count as being sent from now on. */
  #take(): readonly OutgoingDelta[] {
    const taken: OutgoingDelta[] = [];
    let bytes = 0;
    while (taken.length < MAX_BATCH_MESSAGES) {
      const key = this.#nodes.take((cluster) => this.#mayCall(cluster));
      if (key === undefined) break;
      const before = taken.length;
      for (const outgoing of this.#deltasOf(key)) {
        bytes += messageBytes(outgoing.message);
        if (taken.length > 0 && bytes > MAX_BATCH_BYTES) {
          this.#giveBack(outgoing);
          if (taken.length === before) this.#nodes.untake(key);
          return taken;
        }
        taken.push(outgoing);
        if (taken.length < MAX_BATCH_MESSAGES) continue;
        // The node may have more pending deltas: it is taken again after the response.
        this.#nodes.add(key);
        break;
      }
      if (taken.length === before) this.#nodes.done(key);
    }
    return taken;
  }

  /** A cluster that is no longer followed has no pending deltas, so its nodes need not wait. */
  #mayCall(cluster: ClusterName): boolean {
    const outbox = this.#deps.clusters.get(cluster);
    return !outbox || (this.#callsWith(outbox) < CALLS_OF_CLUSTER && outbox.canSend());
  }

  *#deltasOf(key: string): Generator<OutgoingDelta> {
    const { name, clusters, clock } = this.#deps;
    const ref = parseNodeKey(key);
    const outbox = clusters.get(ref.cluster);
    for (const pending of outbox?.pending.take(name, ref.node, clock.now()) ?? []) {
      const { delta, body } = deltaMessage(pending);
      const ids = { groupId: messageGroupId(ref), deduplicationId: deduplicationId(delta) };
      if (outbox) yield { of: outbox, key, delta, message: { body, ...ids } };
    }
  }

  #giveBack({ of: outbox, delta }: OutgoingDelta): void {
    this.#deps.mark(outbox, [subjectOf(delta)], delta.kind === 'node' && delta.wake);
  }

  async #call(deltas: readonly OutgoingDelta[]): Promise<void> {
    const clusters = new Set(deltas.map(({ of }) => of));
    const failuresBefore = this.#failures;
    this.#calls += 1;
    for (const of of clusters) this.#callsOf.set(of, this.#callsWith(of) + 1);
    const { name, queue } = this.#deps;
    const answer = await reportSilence(queue.send(deltas.map(({ message }) => message)), (error) => {
      for (const of of clusters) of.onSent(name, error);
    }).catch((reason: unknown) => ({ reason }));
    this.#calls -= 1;
    for (const of of clusters) this.#callsOf.set(of, this.#callsWith(of) - 1);
    if ('reason' in answer) {
      // Concurrent calls that fail together count as one failure.
      this.#failures = Math.max(this.#failures, failuresBefore + 1);
      this.#unreachable(deltas, answer.reason);
    } else {
      this.#failures = 0;
      this.#settle(deltas, answer);
    }
    this.#gauge();
    this.send();
  }

  #callsWith(outbox: ClusterOutbox): number {
    return this.#callsOf.get(outbox) ?? 0;
  }

  #unreachable(deltas: readonly OutgoingDelta[], reason: unknown): void {
    const { name, log, metrics } = this.#deps;
    metrics.unsent(name, deltas.length);
    log.warn('relay.queue-unreachable', { queue: name, waiting: deltas.length, error: reason });
    for (const outgoing of deltas) {
      this.#giveBack(outgoing);
      outgoing.of.onSent(name, reason);
    }
    for (const key of new Set(deltas.map((each) => each.key))) this.#nodes.done(key);
  }

  #settle(deltas: readonly OutgoingDelta[], failures: readonly SendFailure[]): void {
    const { name, metrics } = this.#deps;
    metrics.sent.inc({ queue: name }, deltas.length - failures.length);
    const failureOf = new Map(failures.map((failure) => [failure.index, failure]));
    const reasonOf = new Map(failures.map(({ index, reason }) => [deltas[index]?.of, reason]));
    for (const of of new Set(deltas.map((each) => each.of))) of.onSent(name, reasonOf.get(of));
    const refused = deltas.filter((_, index) => failureOf.get(index)?.permanent === false);
    for (const each of refused) this.#giveBack(each);
    if (refused.length > 0) metrics.unsent(name, refused.length);
    for (const [index, outgoing] of deltas.entries())
      if (!refused.includes(outgoing)) this.#answered(outgoing, failureOf.get(index));
    const resting = new Set(refused.map(({ key }) => key));
    // Hold back the node's other deltas until its backoff ends.
    for (const key of resting) this.#nodes.failed(key);
    for (const key of new Set(deltas.map((each) => each.key)).difference(resting)) this.#nodes.done(key);
  }

  #answered({ of: outbox, delta }: OutgoingDelta, failure: SendFailure | undefined): void {
    const { name, log, metrics, mark } = this.#deps;
    const uid = onlyPod(delta);
    const logFields = { ...delta.ref, queue: name, delta: deltaId(delta.version) };
    if (failure) {
      metrics.refused(name);
      log.error('relay.delta-rejected', { ...logFields, error: failure.reason });
      return;
    }
    log.info('relay.delta-sent', uid === undefined ? logFields : { ...logFields, uid });
    const { node } = delta.ref;
    // Pods whose facts had no room in a node's delta are sent one by one.
    if (delta.kind === 'node' && delta.others)
      mark(
        outbox,
        delta.others.map((other) => ({ node, uid: other })),
      );
  }

  #gauge(): void {
    const { name, clusters, metrics } = this.#deps;
    const pending = clusters.values().reduce((sum, each) => sum + each.pending.count(name), 0);
    metrics.pending.set({ queue: name }, pending);
  }
}

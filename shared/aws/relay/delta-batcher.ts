import { setImmediate as nextTurn } from 'node:timers/promises';
import { deduplicationId, deltaMessage, messageGroupId } from '#shared/aws/delta-message.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '#shared/aws/limits.ts';
import { messageBytes } from '#shared/aws/message-fault.ts';
import type { Subject } from '#shared/engine/watch/cluster-view.ts';
import type { DeltaQueue } from '#shared/engine/watch/outbox.ts';
import { type PendingDeltas, subjectOf } from '#shared/engine/watch/pending-deltas.ts';
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

/** Calls of a queue at a time: at 15 ms a call some 10,000 deltas a second, more than a core makes. */
const CALLS = 16;
/** Of these, those that carry deltas of any one cluster: however many it has, others need not wait for an answer. */
const CALLS_OF_CLUSTER = 12;
/** After so much work in one go the event loop is free for what comes in. */
const WORK_MS = 5;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };

/** A cluster whose deltas are sent. */
export interface ClusterOutbox {
  readonly name: ClusterName;
  readonly pending: PendingDeltas;
  /** Whether its deltas may be sent now. */
  readonly canSend: () => boolean;
  /** A queue took what was told of it; with an error, it did not. */
  readonly told: (queue: DeltaQueue, error?: unknown) => void;
}

/** A delta that is made to be sent now. */
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
  /** There is something to tell of a cluster: what the queue did not take, or what the delta of a node had no room for. */
  readonly mark: (of: ClusterOutbox, subjects: readonly Subject[], wake?: boolean) => void;
}

/**
 * Sends to one queue what is pending of the nodes in its work queue. Clusters take turns node by node, so that one with little to
 * say is in the very next call. Many calls go at a time, never two with deltas of one node: so those of a node get there in the order
 * of their versions.
 */
export class DeltaBatcher {
  readonly #deps: DeltaBatcherDeps;
  readonly #nodes: WorkQueue<string>;
  readonly #callsOf = new WeakMap<ClusterOutbox, number>();
  #calls = 0;
  /** How often in a row the queue could not be reached. */
  #failures = 0;
  #filling = false;
  /** Those who wait until nothing is left to do. */
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

  /** Something is pending of a node. */
  add(ref: NodeRef): void {
    this.#nodes.add(nodeKey(ref));
  }

  /** Sends what may be sent. To be called also when a cluster may speak again. */
  send(): void {
    if (this.#filling) return;
    this.#filling = true;
    void this.#fill();
  }

  get busy(): boolean {
    return this.#filling || this.#calls > 0 || this.#nodes.resting > 0;
  }

  /** Resolves when it is not busy. */
  async drained(): Promise<void> {
    if (this.busy) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Begins calls for as long as there are deltas and room. */
  async #fill(): Promise<void> {
    const { clock, signal } = this.#deps;
    // Let the caller finish: what it marks in one go travels together.
    await Promise.resolve();
    let working = new Age(clock);
    for (;;) {
      if (this.#failures > 0) await pause(backoffMs(this.#failures, BACKOFF), signal);
      const deltas = this.#calls < CALLS ? this.#take() : [];
      if (deltas.length === 0) break;
      const call = this.#call(deltas);
      // A queue that was out of reach is asked by one call, until it answers.
      if (this.#failures > 0) await call;
      else if (working.atLeastMs >= WORK_MS) {
        await nextTurn();
        working = new Age(clock);
      }
    }
    if (this.#calls === 0) this.#failures = 0;
    this.#gauge();
    // In the turn in which nothing was left: what is added from now on starts anew.
    this.#filling = false;
    if (this.busy) return;
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** What goes into one call, and is on its way from now on. */
  #take(): readonly OutgoingDelta[] {
    const taken: OutgoingDelta[] = [];
    let bytes = 0;
    while (taken.length < MAX_BATCH_MESSAGES) {
      const key = this.#nodes.take((cluster) => this.#mayCall(cluster));
      if (key === undefined) break;
      const before = taken.length;
      for (const each of this.#deltasOf(key)) {
        bytes += messageBytes(each.message);
        if (taken.length > 0 && bytes > MAX_BATCH_BYTES) {
          this.#giveBack(each);
          if (taken.length === before) this.#nodes.untake(key);
          return taken;
        }
        taken.push(each);
        if (taken.length < MAX_BATCH_MESSAGES) continue;
        // More may be pending of it: it comes again when the call is answered.
        this.#nodes.add(key);
        break;
      }
      if (taken.length === before) this.#nodes.done(key);
    }
    return taken;
  }

  /** A cluster that is followed no longer has nothing pending, and its nodes need not wait. */
  #mayCall(cluster: ClusterName): boolean {
    const of = this.#deps.clusters.get(cluster);
    return !of || (this.#callsWith(of) < CALLS_OF_CLUSTER && of.canSend());
  }

  *#deltasOf(key: string): Generator<OutgoingDelta> {
    const { name, clusters, clock } = this.#deps;
    const ref = parseNodeKey(key);
    const of = clusters.get(ref.cluster);
    for (const pending of of?.pending.take(name, ref.node, clock.now()) ?? []) {
      const { delta, body } = deltaMessage(pending);
      const ids = { groupId: messageGroupId(ref), deduplicationId: deduplicationId(delta) };
      if (of) yield { of, key, delta, message: { body, ...ids } };
    }
  }

  /** What a delta was to tell is still to be told, as it is by then. */
  #giveBack({ of, delta }: OutgoingDelta): void {
    this.#deps.mark(of, [subjectOf(delta)], delta.kind === 'node' && delta.wake);
  }

  async #call(deltas: readonly OutgoingDelta[]): Promise<void> {
    const clusters = new Set(deltas.map(({ of }) => of));
    const failuresBefore = this.#failures;
    this.#calls += 1;
    for (const of of clusters) this.#callsOf.set(of, this.#callsWith(of) + 1);
    const answer = await this.#deps.queue
      .send(deltas.map(({ message }) => message))
      .catch((reason: unknown) => ({ reason }));
    this.#calls -= 1;
    for (const of of clusters) this.#callsOf.set(of, this.#callsWith(of) - 1);
    if ('reason' in answer) {
      // Calls that were under way together fail together.
      this.#failures = Math.max(this.#failures, failuresBefore + 1);
      this.#unreachable(deltas, answer.reason);
    } else {
      this.#failures = 0;
      this.#settle(deltas, answer);
    }
    this.#gauge();
    this.send();
  }

  /** How many calls that are under way carry deltas of a cluster. */
  #callsWith(of: ClusterOutbox): number {
    return this.#callsOf.get(of) ?? 0;
  }

  #unreachable(deltas: readonly OutgoingDelta[], reason: unknown): void {
    const { name, log, metrics } = this.#deps;
    metrics.unsent(name, deltas.length);
    log.warn('relay.queue-unreachable', { queue: name, waiting: deltas.length, error: reason });
    for (const each of deltas) {
      this.#giveBack(each);
      each.of.told(name, reason);
    }
    for (const key of new Set(deltas.map((each) => each.key))) this.#nodes.done(key);
  }

  #settle(deltas: readonly OutgoingDelta[], failures: readonly SendFailure[]): void {
    const { name, metrics } = this.#deps;
    metrics.sent.inc({ queue: name }, deltas.length - failures.length);
    const failureOf = new Map(failures.map((failure) => [failure.index, failure]));
    const reasonOf = new Map(failures.map(({ index, reason }) => [deltas[index]?.of, reason]));
    for (const of of new Set(deltas.map((each) => each.of))) of.told(name, reasonOf.get(of));
    const refused = deltas.filter((_, index) => failureOf.get(index)?.permanent === false);
    for (const each of refused) this.#giveBack(each);
    if (refused.length > 0) metrics.unsent(name, refused.length);
    for (const [index, each] of deltas.entries())
      if (!refused.includes(each)) this.#answered(each, failureOf.get(index));
    const resting = new Set(refused.map(({ key }) => key));
    // No other delta of the node goes before its rest is over.
    for (const key of resting) this.#nodes.failed(key);
    for (const key of new Set(deltas.map((each) => each.key)).difference(resting)) this.#nodes.done(key);
  }

  /** The queue took a delta, or never will. */
  #answered({ of, delta }: OutgoingDelta, failure: SendFailure | undefined): void {
    const { name, log, metrics, mark } = this.#deps;
    const uid = onlyPod(delta);
    const told = { ...delta.ref, queue: name, delta: deltaId(delta.version) };
    if (failure) {
      metrics.refused(name);
      log.error('relay.delta-rejected', { ...told, error: failure.reason });
      return;
    }
    log.info('relay.delta-sent', uid === undefined ? told : { ...told, uid });
    const { node } = delta.ref;
    // Pods for whose facts a node's delta had no room are told one by one.
    if (delta.kind === 'node' && delta.others)
      mark(
        of,
        delta.others.map((other) => ({ node, uid: other })),
      );
  }

  #gauge(): void {
    const { name, clusters, metrics } = this.#deps;
    const pending = clusters.values().reduce((sum, each) => sum + each.pending.count(name), 0);
    metrics.pending.set({ queue: name }, pending);
  }
}

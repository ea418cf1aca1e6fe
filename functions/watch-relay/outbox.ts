import type { Delta } from '#shared/eviction/facts.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { deduplicationId, messageGroupId } from '#shared/queues/delta-message.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '#shared/queues/limits.ts';
import { messageBytes } from '#shared/queues/message-fault.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { ClusterView, Subject } from './cluster-view.ts';
import { DirtySet } from './dirty-set.ts';
import type { RelayMetrics } from './relay-metrics.ts';

const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };

export interface OutboxDeps {
  readonly nodeDeltas: QueueSender;
  readonly podDeltas: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
}

/** One cluster's part of the outbox. */
interface Spoken {
  readonly dirty: DirtySet;
  readonly maySpeak: () => boolean;
}

/** A delta that is made to be sent now, and the set that waits to hear whether it was taken. */
interface Word {
  readonly delta: Delta;
  readonly message: OutgoingMessage;
  readonly dirty: DirtySet;
}

/**
 * Tells the queues what there is to tell of all clusters. It holds names, not messages: what a delta says, and its
 * version, are made right before the queue is called, from the view of its cluster, which must allow it then.
 */
export class Outbox {
  readonly #clusters = new Map<ClusterName, Spoken>();
  readonly #lanes: readonly Lane[];
  readonly #stopping = new AbortController();

  constructor({ nodeDeltas, podDeltas, ...deps }: OutboxDeps) {
    const { signal } = this.#stopping;
    const lane = (name: string, queue: QueueSender, kind: 'node' | 'pod') =>
      new Lane({ ...deps, name, queue, kind, signal, clusters: this.#clusters, taken: () => this.send() });
    this.#lanes = [lane('node-deltas', nodeDeltas, 'node'), lane('pod-deltas', podDeltas, 'pod')];
  }

  /** Speaks for a cluster from now on, whenever `maySpeak` says yes: it is asked before each call of a queue. */
  open(cluster: ClusterName, view: ClusterView, maySpeak: () => boolean): void {
    if (!this.#stopping.signal.aborted) this.#clusters.set(cluster, { dirty: new DirtySet(view), maySpeak });
  }

  /** Notes of what there is something to tell; `wake`: of nodes where what is overdue is to be looked at at once. */
  mark(cluster: ClusterName, subjects: readonly Subject[], wake = false): void {
    if (subjects.length === 0) return;
    this.#clusters.get(cluster)?.dirty.mark(subjects, wake);
    this.send();
  }

  /** Sends what waits and may be sent. To be called also when a cluster may speak again. */
  send(): void {
    for (const lane of this.#lanes) lane.send();
  }

  /** Forgets a cluster: another relay speaks for it now. What is on its way is told apart by its epoch. */
  dropCluster(cluster: ClusterName): void {
    this.#clusters.delete(cluster);
    this.send();
  }

  /** Resolves once everything that may be sent is sent. */
  async drained(): Promise<void> {
    // What did not fit into a node's delta is sent when that was taken.
    while (this.#lanes.some(({ busy }) => busy)) await Promise.all(this.#lanes.map((lane) => lane.drained()));
  }

  /** Gives up what is not sent yet, and takes nothing any more; the next relay sends it anew. */
  stop(): void {
    this.#stopping.abort();
    this.#clusters.clear();
  }
}

interface LaneDeps extends Omit<OutboxDeps, 'nodeDeltas' | 'podDeltas'> {
  readonly name: string;
  readonly queue: QueueSender;
  readonly kind: 'node' | 'pod';
  readonly clusters: ReadonlyMap<ClusterName, Spoken>;
  readonly signal: AbortSignal;
  /** Called when words were taken: that of a node may leave pods to be told of. */
  readonly taken: () => void;
}

/** The way to one queue. One call after the other, so that deltas of a node stay in the order of their versions. */
class Lane {
  readonly #deps: LaneDeps;
  #sending: Promise<void> | undefined;
  /** Whose words came last: it is somebody else's turn. */
  #last: DirtySet | undefined;

  constructor(deps: LaneDeps) {
    this.#deps = deps;
  }

  send(): void {
    this.#sending ??= this.#sendAll();
  }

  get busy(): boolean {
    return this.#sending !== undefined;
  }

  async drained(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    // Let the caller finish: what it marks in one go travels together.
    await Promise.resolve();
    let failures = 0;
    for (let words = this.#take(); words.length > 0; words = this.#take()) {
      failures = (await this.#call(words)) ? 0 : failures + 1;
      this.#gauge();
      if (failures > 0) await pause(backoffMs(failures, BACKOFF), this.#deps.signal);
    }
    this.#gauge();
    // In the turn in which nothing was left: what is marked from now on starts anew.
    this.#sending = undefined;
  }

  /** What goes into one call, and is on its way from now on. */
  #take(): readonly Word[] {
    const taken: Word[] = [];
    let bytes = 0;
    for (const word of this.#words()) {
      bytes += messageBytes(word.message);
      if (taken.length > 0 && bytes > MAX_BATCH_BYTES) break;
      word.dirty.sending(word.delta);
      taken.push(word);
      if (taken.length === MAX_BATCH_MESSAGES) break;
    }
    this.#last = taken.at(-1)?.dirty ?? this.#last;
    return taken;
  }

  /** All that may be sent, made one by one; the clusters take turns in being the first. */
  *#words(): Generator<Word> {
    const { clusters, kind, clock } = this.#deps;
    const all = [...clusters.values()];
    const first = all.findIndex(({ dirty }) => dirty === this.#last) + 1;
    for (const { dirty, maySpeak } of [...all.slice(first), ...all.slice(0, first)]) {
      if (!maySpeak()) continue;
      const made = kind === 'node' ? dirty.nodeMessages(clock.now()) : dirty.podMessages(clock.now());
      for (const { delta, body } of made) {
        const groupId = messageGroupId(delta.ref);
        yield { delta, message: { body, groupId, deduplicationId: deduplicationId(delta) }, dirty };
      }
    }
  }

  /** False: the queue took nothing, so it needs a pause. */
  async #call(words: readonly Word[]): Promise<boolean> {
    const { name, queue, log, metrics, taken } = this.#deps;
    let failures: readonly SendFailure[];
    try {
      failures = await queue.send(words.map(({ message }) => message));
    } catch (error) {
      log.warn('relay.queue-unreachable', { queue: name, waiting: words.length, reason: error });
      for (const { dirty, delta } of words) dirty.failed(delta);
      return false;
    }
    metrics.sent.inc({ queue: name }, words.length - failures.length);
    const failureOf = new Map(failures.map((failure) => [failure.index, failure]));
    for (const [index, { delta, dirty }] of words.entries()) {
      const failure = failureOf.get(index);
      if (!failure) {
        dirty.taken(delta);
      } else if (failure.permanent) {
        metrics.refused(name);
        log.error('relay.delta-refused', { queue: name, ...delta.ref, reason: failure.reason });
      } else {
        dirty.failed(delta);
      }
    }
    taken();
    return failures.filter(({ permanent }) => !permanent).length < words.length;
  }

  #gauge(): void {
    const { name, kind, clusters, metrics } = this.#deps;
    const waiting = [...clusters.values()].map(({ dirty }) => (kind === 'node' ? dirty.nodes : dirty.pods));
    metrics.pending.set(
      { queue: name },
      waiting.reduce((sum, count) => sum + count, 0),
    );
  }
}

import type { ClusterView, Subject } from '#functions/watch-relay/cluster-view.ts';
import type { Outbox } from '#functions/watch-relay/outbox.ts';
import type { RelayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import {
  type ClusterName,
  type NodeName,
  nodeKey,
  type PodUid,
  parseNodeKey,
} from '#shared/eviction/identity.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Backoff } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { WorkQueue } from '#shared/work-queue/work-queue.ts';
import { Workers } from '#shared/work-queue/workers.ts';

export interface DecisionsDeps {
  /** Takes deltas of one node into the store, all or, when it rejects, none. */
  readonly decide: (deltas: readonly [Delta, ...Delta[]]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<RelayMetrics, 'sent' | 'unsent' | 'pending'>;
}

/** Nodes that are decided at a time: deciding waits for the store only. */
const AT_ONCE = 8;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };
/** More pods are decided with their node: those that are gone have names of their own until then. */
const MOST_PODS = 500;

/** What there is to decide of a node: all of it, or single pods of which each was seen to go or not. */
interface Dirty {
  readonly pods: Map<PodUid, boolean>;
  whole: boolean;
  /** What is overdue there is to be looked at at once. */
  wake: boolean;
}

interface Spoken {
  readonly view: ClusterView;
  readonly maySpeak: () => boolean;
  readonly dirty: Map<NodeName, Dirty>;
}

/**
 * Has decided, in this process, what a relay notes of its clusters, node by node. It holds names: what is decided, and its version, is made of the
 * cluster's view right before, so that nothing that waits gets old.
 */
export class Decisions implements Outbox {
  readonly #deps: DecisionsDeps;
  readonly #clusters = new Map<ClusterName, Spoken>();
  readonly #queue: WorkQueue<string>;
  readonly #workers: Workers<string>;

  constructor(deps: DecisionsDeps) {
    this.#deps = deps;
    const { clock } = deps;
    const clusterOf = (key: string) => parseNodeKey(key).cluster;
    this.#queue = new WorkQueue({ clock, backoff: BACKOFF, clusterOf });
    this.#workers = new Workers({
      queue: this.#queue,
      atOnce: AT_ONCE,
      work: (key) => this.#decide(key),
      failed: (key, reason, failures) =>
        deps.log.warn('message.retried', { ...parseNodeKey(key), receives: failures, reason }),
      mayWork: (cluster) => this.#clusters.get(cluster)?.maySpeak() ?? true,
    });
  }

  /** How many nodes wait, or are decided. */
  get size(): number {
    return this.#queue.size;
  }

  open(cluster: ClusterName, view: ClusterView, maySpeak: () => boolean): void {
    this.#clusters.set(cluster, { view, maySpeak, dirty: new Map() });
  }

  mark(cluster: ClusterName, subjects: readonly Subject[], wake = false): void {
    const spoken = this.#clusters.get(cluster);
    if (!spoken) return;
    for (const subject of subjects) {
      note(spoken, subject, wake);
      this.#queue.add(nodeKey({ cluster, node: subject.node }));
    }
  }

  send(): void {
    this.#workers.offer();
  }

  dropCluster(cluster: ClusterName): void {
    this.#clusters.delete(cluster);
    this.send();
  }

  async drained(): Promise<void> {
    const isBusy = ([cluster, { maySpeak }]: [ClusterName, Spoken]) =>
      this.#queue.sizeOf(cluster) > 0 && maySpeak();
    while (this.#clusters.entries().some(isBusy)) await this.#workers.next;
  }

  stop(): void {
    this.#clusters.clear();
    this.#queue.stop();
  }

  /** Begins nothing more; resolves when what is being decided is. */
  ended(): Promise<void> {
    return this.#workers.stop();
  }

  async #decide(key: string): Promise<undefined> {
    const { clock, metrics, decide } = this.#deps;
    const { cluster, node } = parseNodeKey(key);
    const spoken = this.#clusters.get(cluster);
    const dirty = spoken?.dirty.get(node);
    metrics.pending.set({ queue: 'node-deltas' }, this.size);
    // It is noted again when its pods are listed.
    if (!dirty || (dirty.whole && !spoken?.view.tells(node))) return;
    spoken?.dirty.delete(node);
    const [first, ...rest] = spoken ? deltasOf(spoken.view, node, dirty, clock.now()) : [];
    if (!first) return;
    const queue = dirty.whole ? 'node-deltas' : 'pod-deltas';
    try {
      await decide([first, ...rest]);
      metrics.sent.inc({ queue }, 1 + rest.length);
    } catch (error) {
      metrics.unsent(queue, 1 + rest.length);
      if (spoken) noteAgain(spoken, node, dirty);
      throw error;
    }
  }
}

/** A node is decided with all its pods; `wake` stays with it until it is. */
function note({ dirty: nodes }: Spoken, { node, uid, gone = false }: Subject, wake: boolean): void {
  const dirty = nodes.get(node) ?? { pods: new Map<PodUid, boolean>(), whole: false, wake: false };
  nodes.set(node, dirty);
  if (uid === undefined || dirty.pods.size >= MOST_PODS) {
    dirty.whole = true;
    dirty.wake ||= wake;
    dirty.pods.clear();
  } else if (!dirty.whole) dirty.pods.set(uid, gone || dirty.pods.get(uid) === true);
}

/** What could not be decided is decided with what was noted since. */
function noteAgain(spoken: Spoken, node: NodeName, { pods, whole, wake }: Dirty): void {
  if (whole) note(spoken, { node }, wake);
  for (const [uid, gone] of pods) note(spoken, { node, uid, gone }, false);
}

function deltasOf(
  view: ClusterView,
  node: NodeName,
  { pods, whole, wake }: Dirty,
  now: number,
): readonly Delta[] {
  if (whole) return [view.nodeDelta(node, now, wake)];
  return [...pods].flatMap(([uid, gone]) => view.podDelta({ node, uid, gone }, now) ?? []);
}

import { isDeepStrictEqual } from 'node:util';
import { defined } from '#shared/defined.ts';
import { isAhead, RESYNC_MS } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { observedNow } from '#shared/eviction/skew.ts';
import type { KubernetesApi, LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { GonePod } from '#shared/state/history.ts';
import type { Store, TaintedNode } from '#shared/state/store.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type ClusterFaults, STORE_FAILING } from './cluster-faults.ts';
import type { ConnectionState } from './cluster-state.ts';
import type { ClusterView, Subject } from './cluster-view.ts';
import { followNodes, type NodeSink, type Request } from './follow-nodes.ts';
import { PodFollower, type PodFollowLimits } from './follow-pods.ts';
import type { Attempt } from './pod-lists.ts';
import type { RelayMetrics } from './relay-metrics.ts';

/** By then, held evictions are stored as held, and no decider uses the earlier rules. A second wake releases them. */
const SETTLING_MS = 5_000;
/** Minimum time between wakes: an API server that comes and goes must not multiply messages. */
export const WAKE_MS = 10_000;
const STORE_RETRY_MS = 2_000;
const RESYNC = 'resync';
const FUTURE_TAINT = { type: 'taint-time-in-future' } as const;
/** Maximum pods, and nodes, of one cluster whose wrong times are logged: a server may send them for all objects. */
const MAX_WRONG_TIMES = 100;

export interface ClusterWatchDeps {
  readonly store: Pick<Store, 'taintedNodes'>;
  readonly limits: PodFollowLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
  readonly faults: ClusterFaults;
  /** The cluster's rules at the start; see {@link ClusterWatch.ruled}. */
  readonly rules: Rules;
  claim(): Promise<void>;
  /** Called when nodes changed, even if there is nothing to send. Called before `mark`. */
  counted(): void;
  /** Called each time that a pod is seen that another process deleted. */
  deleted(pod: LivePod): void;
  gone(pods: readonly GonePod[]): void;
  /** Called when there is something to send. `wake`: overdue evictions there are checked immediately. */
  mark(subjects: readonly Subject[], wake: boolean): void;
}

/**
 * Keeps a view of one cluster current, and has everything sent again after each gap and at each resync. It continues to
 * watch while nothing may be sent.
 */
export class ClusterWatch {
  readonly #cluster: ClusterName;
  readonly #nodes: KubernetesApi['nodes'];
  readonly #view: ClusterView;
  readonly #deps: ClusterWatchDeps;
  readonly #stopping = new AbortController();
  readonly #pods: PodFollower;
  readonly #resync = new ResyncRequest();
  readonly #answer = new ResyncRequest();
  #woken: Age | undefined;
  /** The server answered after an outage, but its watch is not established yet. */
  #returning = false;
  #running: Promise<unknown> | undefined;
  /** The start of the current failure; absent: the last contact succeeded. */
  #failing: { readonly since: EpochMs; readonly age: Age } | undefined;
  #lastContactAt: EpochMs | undefined;
  #rules: Rules;
  /** The rules changed, so the next wake is followed by a second one. */
  #rulesChanged = false;
  #recalled = false;
  #synced = false;
  /** Nodes without taints that are watched while evicted pods still terminate there. */
  readonly #left = new Set<NodeName>();
  readonly #inFuture = new Set<PodUid>();
  /** Nodes with a taint whose time in the future was logged, and that taint. */
  readonly #futureTaints = new Map<NodeName, string>();
  /** Aborts to list the nodes again when other taints evict. */
  #relisting = new AbortController();

  constructor(
    cluster: ClusterName,
    api: Pick<KubernetesApi, 'nodes' | 'pods' | 'skews'>,
    view: ClusterView,
    deps: ClusterWatchDeps,
  ) {
    this.#cluster = cluster;
    this.#nodes = api.nodes;
    this.#view = view;
    this.#deps = deps;
    this.#rules = deps.rules;
    view.treatAsNoExecute = deps.rules.policy.treatAsNoExecute;
    view.latest = (now) => observedNow(now, api.skews);
    this.#pods = new PodFollower(
      api.pods,
      {
        replace: (node, listed) => {
          this.#deps.metrics.lists.inc(this.#labels('pods'));
          for (const pod of listed) this.#seePod(pod);
          this.#mark(view.replacePods(node, listed, deps.clock.now()));
          this.#reportGone();
          this.#follow(node);
          this.#seeSynced();
        },
        change: ({ kind, object }) => {
          this.#seePod(object);
          this.#mark(kind === 'upsert' ? view.upsertPod(object, deps.clock.now()) : view.deletePod(object));
          if (kind === 'delete') this.#reportGone();
          // The pod may have been the last that terminated on a node without taints.
          if (kind === 'delete' && object.node) this.#follow(object.node);
        },
        failed: (error, attempt) => this.#failed('pods', error, attempt),
        answered: ({ request, of }) => this.#answered('pods', request, of),
        ended: (of) => this.#answered('pods', 'watch', of),
      },
      { limits: deps.limits, clock: deps.clock, signal: this.#stopping.signal },
    );
  }

  get connectionState(): ConnectionState {
    const { lastContactAt } = this;
    if (this.#failing)
      return { kind: 'disconnected', since: this.#failing.since, ...defined({ lastContactAt }) };
    return { kind: this.#synced ? 'live' : 'syncing' };
  }

  get outageMs(): number {
    return Math.round(this.#failing?.age.atLeastMs ?? 0);
  }

  get lastContactAt(): EpochMs | undefined {
    return this.#lastContactAt;
  }

  start(): void {
    this.#running ??= Promise.all([this.#followNodes(), this.#resyncing(), this.#waking()]);
  }

  /** Applies changed rules: all tainted nodes are reevaluated. */
  ruled(rules: Rules): void {
    this.#rules = rules;
    this.#rulesChanged = true;
    this.#deps.log.info('rules.changed', { cluster: this.#cluster });
    this.#resync.now();
    const { treatAsNoExecute } = rules.policy;
    if (isDeepStrictEqual(treatAsNoExecute, this.#view.treatAsNoExecute)) return;
    this.#view.treatAsNoExecute = treatAsNoExecute;
    this.#relisting.abort();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #followNodes(): Promise<void> {
    const { clock, claim } = this.#deps;
    const stopping = this.#stopping.signal;
    while (!stopping.aborted) {
      this.#relisting = new AbortController();
      const signal = AbortSignal.any([stopping, this.#relisting.signal]);
      await followNodes(this.#nodes, this.#nodeSink(), { clock, signal, claim });
    }
  }

  #nodeSink(): NodeSink {
    const { clock, log, metrics, counted } = this.#deps;
    const view = this.#view;
    return {
      replace: (nodes) => {
        metrics.lists.inc(this.#labels('nodes'));
        const subjects = view.replaceNodes(nodes, clock.now());
        for (const node of this.#futureTaints.keys())
          if (!nodes.some(({ name }) => name === node)) this.#endFuture(node);
        for (const node of nodes) this.#checkTaints(node);
        counted();
        this.#mark(subjects);
        view.answeredAt = clock.now();
        this.#returning = false;
        void this.#untilWake().then(() => this.#resync.now());
      },
      change: ({ kind, object }) => {
        const now = clock.now();
        const subjects = kind === 'upsert' ? view.upsertNode(object, now) : view.deleteNode(object.name, now);
        if (kind === 'upsert') this.#checkTaints(object);
        else this.#endFuture(object.name);
        counted();
        this.#mark(subjects);
        this.#seeSynced();
      },
      contact: () => {
        this.#lastContactAt = clock.now();
        if (!this.#failing) return;
        log.info('cluster.reconnected', { cluster: this.#cluster, outageMs: this.outageMs });
        this.#failing = undefined;
        this.#returning = true;
      },
      failed: (error, request) => {
        this.#failing ??= { since: clock.now(), age: new Age(clock) };
        this.#failed('nodes', error, { request });
      },
      answered: (request) => {
        this.#answered('nodes', request);
        // Facts from before the outage must not be sent.
        if (this.#returning) this.answered();
        this.#returning = false;
      },
      rewound: () => {
        log.warn('relay.etcd-restore-detected', { cluster: this.#cluster });
        this.#pods.rewind();
      },
    };
  }

  /** Wakes the evictions that wait for the server, which answers again. While its watch fails, nothing is sent. */
  answered(): void {
    if (this.#failing) return;
    this.#view.answeredAt = this.#deps.clock.now();
    this.#answer.now();
  }

  async #untilWake(): Promise<void> {
    const waitMs = WAKE_MS - (this.#woken?.atLeastMs ?? WAKE_MS);
    if (waitMs > 0) await pause(Math.ceil(waitMs), this.#stopping.signal);
    this.#woken = new Age(this.#deps.clock);
  }

  async #waking(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if ((await this.#answer.next(RESYNC_MS, signal)) !== 'gap') continue;
      await this.#untilWake();
      try {
        const waiting = (await this.#storedTaintedNodes()).filter(({ state }) => state.outage);
        // Until then, the pending resync wakes all nodes.
        if (this.#recalled) this.#deps.mark(waiting, true);
      } catch (error) {
        this.#deps.log.error('relay.resync-failed', { cluster: this.#cluster, error });
        this.#answer.now();
      }
    }
  }

  #mark(subjects: readonly Subject[]): void {
    // A node that starts or stops being followed is always among the subjects.
    for (const { node, uid } of subjects) if (uid === undefined) this.#follow(node);
    // Until then, the pending resync sends everything.
    if (this.#recalled && subjects.length > 0) this.#deps.mark(subjects, false);
  }

  #seePod(pod: LivePod): void {
    this.#checkTime(pod);
    if (pod.deleted) this.#deps.deleted(pod);
  }

  #checkTime({ uid, node, namespace, name, podSince }: LivePod): void {
    const { clock, log } = this.#deps;
    if (!node || !isAhead(podSince, clock.now())) return;
    if (this.#inFuture.has(uid) || this.#inFuture.size >= MAX_WRONG_TIMES) return;
    this.#inFuture.add(uid);
    const about = { cluster: this.#cluster, node, namespace, pod: name, uid };
    log.warn('pod.scheduled-time-in-future', { ...about, podScheduledAt: podSince });
  }

  /** Logs a taint with a time in the future, which is ignored. */
  #checkTaints(node: LiveNode): void {
    const { clock, log, faults } = this.#deps;
    const latest = this.#view.latest(clock.now());
    const taint = evictingTaints(node.taints, this.#view.treatAsNoExecute).find(({ timeAdded = 0 }) =>
      isAhead(timeAdded, latest),
    );
    if (!taint) {
      this.#endFuture(node.name);
      return;
    }
    const { timeAdded = 0 } = taint;
    const before = this.#futureTaints.get(node.name);
    if (before === undefined && this.#futureTaints.size >= MAX_WRONG_TIMES) return;
    const text = `${taint.key}:${taint.effect}`;
    const error = `The taint ${text} of node ${node.name} says that it was added at ${timeText(timeAdded)}, which is in the future. The time is ignored.`;
    faults.begin(FUTURE_TAINT, error, { by: node.name });
    if (before === text) return;
    this.#futureTaints.set(node.name, text);
    log.warn('node.taint-time-in-future', {
      cluster: this.#cluster,
      node: node.name,
      taint: text,
      timeAdded,
    });
  }

  #endFuture(node: NodeName): void {
    this.#futureTaints.delete(node);
    this.#deps.faults.end(FUTURE_TAINT, node);
  }

  #reportGone(): void {
    const at = this.#deps.clock.now();
    const gone = this.#view.leaving.takeGone().map((uid) => ({ uid, at }));
    if (gone.length > 0) this.#deps.gone(gone);
  }

  #follow(node: NodeName): void {
    const follows = this.#view.follows(node);
    // The view forgot the node's pods with its taints, so they must be listed again.
    if (follows && this.#left.delete(node)) this.#pods.remove(node);
    if (!this.#view.watches(node)) {
      this.#left.delete(node);
      this.#pods.remove(node);
      return;
    }
    if (!follows) this.#left.add(node);
    this.#pods.add(node);
  }

  /** Watches nodes on which earlier evicted pods may still terminate. To be called once all tainted nodes are known. */
  expectLeaving(nodes: Iterable<NodeName>): void {
    const left = [...nodes].filter((node) => !this.#view.follows(node));
    this.#view.leaving.expect(left);
    for (const node of left) this.#follow(node);
  }

  async #resyncing(): Promise<void> {
    const { clock, log, faults, mark } = this.#deps;
    const { signal } = this.#stopping;
    const view = this.#view;
    for (let settling = false; ; ) {
      const cause = await this.#resync.next(settling ? SETTLING_MS : RESYNC_MS, signal);
      if (cause === 'stopped') return;
      if (!view.listed) continue;
      const wake = cause === 'gap' || settling;
      try {
        const stored = await this.#storedTaintedNodes();
        const now = clock.now();
        const subjects = view.resync(stored, now);
        // Follow the nodes that only the store still holds as tainted, too.
        for (const node of view.followed()) this.#pods.add(node);
        this.#recalled = true;
        faults.end(STORE_FAILING, RESYNC);
        mark(wake ? inOrder(subjects, view.rank(stored, this.#rules, now)) : subjects, wake);
        // Listing the nodes for other virtual keys is a gap, too, while a decider may still keep the earlier rules.
        settling = this.#rulesChanged || (settling && cause === 'gap');
        this.#rulesChanged = false;
      } catch (error) {
        log.error('relay.resync-failed', { cluster: this.#cluster, error });
        faults.begin(STORE_FAILING, error, { by: RESYNC });
        await pause(STORE_RETRY_MS, signal);
        this.#resync.now();
        continue;
      }
      this.#seeSynced();
      if (!wake) this.#pods.relist();
    }
  }

  #seeSynced(): void {
    if (this.#synced || !this.#recalled || this.#view.awaitsPods) return;
    this.#synced = true;
    this.#deps.log.info('relay.synced', { cluster: this.#cluster, ...this.#view.counts });
  }

  #failed(
    resource: 'nodes' | 'pods',
    error: unknown,
    attempt?: Pick<Attempt, 'request'> & Partial<Attempt>,
  ): void {
    if (attempt)
      this.#deps.faults.begin({ type: FAILING[attempt.request], resource }, error, { by: byOf(attempt.of) });
    this.#deps.metrics.watchFailures.inc(this.#labels(resource));
    this.#deps.log.warn('relay.watch-failed', { cluster: this.#cluster, resource, error });
  }

  /** Ends the faults of a request. A watch that succeeds needs no list, so it ends a failure of the list, too. */
  #answered(resource: 'nodes' | 'pods', request: Request, scope?: Attempt['of']): void {
    const { faults } = this.#deps;
    faults.end({ type: 'list-failing', resource }, byOf(scope));
    if (request === 'watch') faults.end({ type: 'watch-failing', resource }, byOf(scope));
  }

  #labels(resource: 'nodes' | 'pods') {
    return { cluster: this.#cluster, resource };
  }

  async #storedTaintedNodes(): Promise<readonly TaintedNode[]> {
    return Array.fromAsync(this.#deps.store.taintedNodes(this.#cluster));
  }
}

const FAILING = { list: 'list-failing', watch: 'watch-failing' } as const;

/** Returns a notice's source that is not the name of any node. */
const byOf = (of = ''): string => `watch ${of}`;

function inOrder(subjects: readonly Subject[], first: readonly NodeName[]): readonly Subject[] {
  const places = new Map(first.map((node, place) => [node, place]));
  const placeOf = ({ node }: Subject) => places.get(node) ?? first.length;
  return subjects.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** A request for an immediate resync, after a gap; several requests before it runs are one. */
class ResyncRequest {
  #requested = false;
  #wake: () => void = () => undefined;

  now(): void {
    this.#requested = true;
    this.#wake();
  }

  async next(intervalMs: number, signal: AbortSignal): Promise<'gap' | 'interval' | 'stopped'> {
    if (!this.#requested) {
      const requested = new AbortController();
      this.#wake = () => requested.abort();
      await pause(intervalMs, AbortSignal.any([signal, requested.signal]));
    }
    const cause = this.#requested ? 'gap' : 'interval';
    this.#requested = false;
    return signal.aborted ? 'stopped' : cause;
  }
}

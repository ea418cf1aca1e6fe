import { isDeepStrictEqual } from 'node:util';
import { clusterGate } from '#shared/eviction/gate.ts';
import type { GuardCounts } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules, Trip } from '#shared/eviction/policy.ts';
import { apartText, areApart } from '#shared/eviction/skew.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Fault } from '#shared/state/fault.ts';
import type { History, RecentEvictions } from '#shared/state/history.ts';
import { LEASE_TTL_MS, type Lease } from '#shared/state/lease.ts';
import type { RulesStore } from '#shared/state/rules-store.ts';
import type { Store } from '#shared/state/store.ts';
import { MAX_STUCK } from '#shared/state/stuck.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { BuiltInEvictions } from './built-in-evictions.ts';
import { ClusterFaults } from './cluster-faults.ts';
import type { ClusterRelayState, ModeInForce } from './cluster-state.ts';
import { ClusterView, type ViewCounts } from './cluster-view.ts';
import { ClusterWatch } from './cluster-watch.ts';
import type { PodFollowLimits } from './follow-pods.ts';
import { GuardController } from './guard-controller.ts';
import { type LeaseEnd, LeaseManager, type LeaseManagerDeps } from './lease-manager.ts';
import type { Outbox } from './outbox.ts';
import { watchPermissions } from './permission-watch.ts';
import type { Prover } from './prover.ts';
import type { RelayMetrics } from './relay-metrics.ts';
import { RemovalRecorder } from './removal-recorder.ts';
import type { RulesWatch } from './rules-watch.ts';
import { StalledNodes } from './stalled-nodes.ts';
import { keepTakeover, type TakeoverState } from './takeover-heartbeat.ts';

/** How long a relay that stops waits for the queues; what they do not take by then the next relay sends anew. */
const DRAIN_MS = 5_000;
/** A relay that is deaf for so long gives the lease away: another one may hear the cluster. */
const DEAF_MS = 3 * 60_000;
/** How often it asks itself, and the guard whether time lets something go. */
const LOOK_MS = 10_000;
/** What the built-in controller has not evicted for so long it does not evict: it needs a second. */
const FORGOTTEN_MS = 10 * 60_000;
/** Pods that were evicted before a relay began are looked for among those evicted so lately: most have half a minute to leave. */
const EVICTED_WITHIN_MS = 10 * 60_000;

export interface ClusterRelayDeps extends LeaseManagerDeps {
  readonly store: Store;
  readonly outbox: Outbox;
  readonly rules: Pick<RulesWatch, 'follow'>;
  readonly rulesStore: Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'>;
  readonly history: Pick<History, 'noteGone'> & RecentEvictions;
  readonly limits: PodFollowLimits;
  readonly prover: Prover;
  readonly metrics: RelayMetrics;
}

/** What it takes to see a cluster, and to say there that somebody does. */
interface LeaseSession {
  readonly view: ClusterView;
  readonly watch: ClusterWatch;
  readonly guard: GuardController;
  readonly takeover: Promise<void>;
  takeoverState: TakeoverState;
  readonly gone: RemovalRecorder;
  rules: Rules;
  /** Pods must go, and neither the built-in controller nor this service evicts. */
  nobodyEvicts: boolean;
  /** What clocks differ by, as was last said: `hold` where evictions are held for that; absent: they agree. */
  clocks?: 'differ' | 'hold';
  /** Evicted pods that do not leave, as was last said; absent: it is not known what was. */
  reported?: readonly StuckPod[];
}

/** What could not be stored, and is not known to be tried again soon, counts for so long. */
const UNSTORED_MS = 10 * 60_000;
/** What another installation did longer ago is not known to go on. */
const RIVAL_FOR_MS = 3_600_000;
/** The leader before this one has marked its last pod by then. */
const FOLLOWED_MS = 2 * LEASE_TTL_MS;
const STORE_FAILING = { type: 'store-failing' } as const;

/** Of a cluster of which nothing is known. */
export const NO_COUNTS: ViewCounts = { nodes: 0, tainted: 0, pods: 0 };

const stuckFields = (cluster: ClusterName, { node, uid, namespace, name, ...why }: StuckPod) => {
  const { overAt, finalizers, nodeState } = why;
  return { cluster, node, namespace, pod: name, uid, gracePeriodEndedAt: overAt, finalizers, nodeState };
};

/** Watches one cluster, and speaks for it, for as long as it holds its lease; waits for that when another relay has it. */
export class ClusterRelay {
  readonly #cluster: ClusterName;
  readonly #api: KubernetesApi;
  readonly #deps: ClusterRelayDeps;
  readonly #keeper: LeaseManager;
  readonly #faults: ClusterFaults;
  /** Whether it speaks for the cluster. It begins to see as soon as it knows what governs it. */
  #held = false;
  #seeing: LeaseSession | undefined;

  constructor(cluster: ClusterName, api: KubernetesApi, deps: ClusterRelayDeps) {
    this.#cluster = cluster;
    this.#api = api;
    this.#deps = deps;
    this.#faults = new ClusterFaults(deps.clock);
    this.#keeper = new LeaseManager(
      cluster,
      {
        held: (lease, signal) => this.#hold(lease, signal),
        // What was seen while the lease could not be renewed waits.
        regained: () => {
          this.#seeing?.guard.look();
          deps.outbox.send();
        },
        heardAt: () => this.#seeing?.watch.heardAt,
        nodes: () => (this.#seeing?.view.listed ? this.#seeing.view.counts.nodes : undefined),
        breakerOpen: () => api.breakerOpen,
        faults: () => this.#faults.list,
        reached: (error) => this.#faults.note(STORE_FAILING, error, { by: 'lease' }),
      },
      deps,
    );
  }

  get state(): ClusterRelayState {
    return this.#seeing?.watch.connectionState ?? { kind: this.#held ? 'syncing' : 'standby' };
  }

  get counts(): ViewCounts {
    return this.#seeing?.view.counts ?? NO_COUNTS;
  }

  /** When the cluster last gave a sign of life; `undefined`: not since this relay speaks for it. */
  get heardAt(): EpochMs | undefined {
    return this.#seeing?.watch.heardAt;
  }

  /** What its guard judges by; `undefined`: it is not known here. */
  get tally(): GuardCounts | undefined {
    return this.#seeing?.guard.counts;
  }

  /** Evicted pods that do not leave. */
  get stuck(): readonly StuckPod[] {
    return this.#seeing?.view.stuck(this.#deps.clock.now()) ?? [];
  }

  /** What the guard holds. */
  get trips(): readonly Trip[] {
    return this.#seeing?.guard.trips ?? [];
  }

  /** What is wrong with the cluster, as far as this relay knows; only who holds the lease knows all. */
  get faults(): readonly Fault[] {
    return this.#faults.list;
  }

  /** What was decided of the cluster was stored; with an error, it was not. Called by who decides in the same process. */
  stored(error?: unknown): void {
    this.#faults.note(STORE_FAILING, error, { by: 'decided', lastsMs: UNSTORED_MS });
  }

  /** Whether the cluster is taken over, and the heartbeat of that given. */
  get takeover(): TakeoverState {
    return this.#seeing?.takeoverState ?? 'none';
  }

  /** Whether pods must go and nobody evicts: the built-in controller does not, and policy forbids it to this service. */
  get nobodyEvicts(): boolean {
    return this.#seeing?.nobodyEvicts ?? false;
  }

  /** Milliseconds by which its API server's clock is ahead of ours; `undefined`: it is not known, or another relay's matter. */
  get skewMs(): number | undefined {
    return this.#held ? this.#api.skewMs : undefined;
  }

  /** How the cluster is governed now; `undefined`: this relay does not know it. */
  get mode(): ModeInForce | undefined {
    const { clock } = this.#deps;
    return this.#seeing && (clusterGate(this.#seeing.rules, clock.now())?.kind ?? 'enforce');
  }

  start(): void {
    this.#keeper.start();
  }

  /** Says what waits, gives the lease up and ends. */
  async stop(): Promise<void> {
    await this.#keeper.stop();
  }

  async #hold(lease: Lease, signal: AbortSignal): Promise<void> {
    const { outbox, rules } = this.#deps;
    this.#held = true;
    const heldAt = this.#deps.clock.now();
    void watchPermissions(this.#api, this.#faults, signal);
    rules.follow(
      this.#cluster,
      (found) => {
        if (this.#seeing) {
          this.#seeing.rules = found;
          this.#seeing.guard.ruled(found);
          this.#seeing.watch.ruled(found);
        } else {
          this.#see(lease, found, signal);
        }
      },
      signal,
      (error) => this.#faults.note(STORE_FAILING, error, { by: 'rules' }),
    );
    while (!signal.aborted) {
      await pause(LOOK_MS, signal);
      if (signal.aborted) break;
      this.#giveAwayIfDeaf();
      this.#seeing?.guard.look();
      this.#lookAtClocks();
      this.#lookWhoEvicts();
      this.#lookForRival(heldAt);
      await this.#reportStuck(lease);
    }
    await this.#seeing?.watch.stop();
    await this.#seeing?.takeover;
    await this.#seeing?.gone.written();
    if (signal.reason !== ('lost' satisfies LeaseEnd)) await this.#drain();
    outbox.dropCluster(this.#cluster);
    this.#seeing = undefined;
    this.#faults.clear();
    this.#held = false;
  }

  #see(lease: Lease, rules: Rules, signal: AbortSignal): void {
    const { outbox, store, rulesStore, history, prover, clock, metrics, log } = this.#deps;
    const faults = this.#faults;
    const view = new ClusterView(this.#cluster, lease.epoch, clock);
    const guard = new GuardController(this.#cluster, view, rules, {
      ...{ rulesStore, clock, log, signal },
      knows: () => view.listed && watch.connectionState.kind !== 'disconnected' && this.#keeper.canSend(),
      saved: (error) => faults.note({ type: 'guard-unsaved' }, error),
      freed: () => outbox.send(),
      retell: (wake) => this.#retell(view, wake),
    });
    const rulesNow = () => this.#seeing?.rules ?? rules;
    const { epoch } = lease;
    const stalled = new StalledNodes(this.#cluster, { store, view, rules: rulesNow, epoch, clock });
    const builtIn = new BuiltInEvictions(this.#cluster, {
      ...{ view, rules: rulesNow, faults, metrics, clock, log },
    });
    const noted = (error?: unknown) => faults.note(STORE_FAILING, error, { by: 'history' });
    const gone = new RemovalRecorder(this.#cluster, { history, log, noted, signal });
    const watch = new ClusterWatch(this.#cluster, this.#api, view, {
      ...this.#deps,
      ...{ faults, rules },
      counted: () => guard.counted(),
      deleted: (pod) => builtIn.see(pod),
      gone: (pods) => gone.add(pods),
      tell: (subjects, wake) => outbox.mark(this.#cluster, subjects, wake),
    });
    const takeover = keepTakeover(
      this.#cluster,
      {
        ...this.#deps,
        api: this.#api,
        policy: () => rulesNow().policy,
        connectionState: () => watch.connectionState.kind,
        holdsLease: () => this.#keeper.canSend(),
        whyStalled: async (keys) => (await guard.whyUnwritable()) ?? (await stalled.why(keys)),
        prove: (asked) => prover.prove(this.#cluster, asked),
        told: (state, reason) => {
          if (this.#seeing) this.#seeing.takeoverState = state;
          faults.note({ type: 'heartbeat-suspended' }, reason);
        },
      },
      signal,
    );
    this.#seeing = { view, watch, guard, rules, takeover, takeoverState: 'none', gone, nobodyEvicts: false };
    const canSend = () => this.#keeper.canSend() && guard.mayTell;
    outbox.open(this.#cluster, view, canSend, (by, error) =>
      faults.note({ type: 'queue-failing' }, error, { by }),
    );
    watch.start();
  }

  /**
   * Says which evicted pods do not leave, when that has changed. Of which pods the relay before this one said so, and where
   * pods were evicted lately, is read first: their nodes may have no taints any more.
   */
  async #reportStuck(lease: Lease): Promise<void> {
    const seeing = this.#seeing;
    const { leases, history, clock, log } = this.#deps;
    // What is not listed yet is not known not to be there.
    if (seeing?.watch.connectionState.kind !== 'live') return;
    try {
      if (!seeing.reported) {
        const reported = await leases.stuck(this.#cluster);
        const evictedFrom = await history.nodesEvictedFrom(this.#cluster, clock.now() - EVICTED_WITHIN_MS);
        seeing.watch.expectLeaving(evictedFrom.union(new Set(reported.map(({ node }) => node))));
        seeing.reported = reported;
        return;
      }
      const stuck = this.stuck.slice(0, MAX_STUCK);
      if (isDeepStrictEqual(stuck, seeing.reported)) return;
      await leases.reportStuck(lease, stuck);
      this.#faults.end(STORE_FAILING, 'stuck');
      for (const pod of stuck) {
        if (!seeing.reported.some(({ uid }) => uid === pod.uid))
          log.warn('pod.stuck-terminating', stuckFields(this.#cluster, pod));
      }
      seeing.reported = stuck;
    } catch (error) {
      this.#faults.begin(STORE_FAILING, error, { by: 'stuck', lastsMs: UNSTORED_MS });
      log.error('relay.lease-failed', { cluster: this.#cluster, error });
    }
  }

  /** Says which clocks differ by more than 30 s, once for each time that they begin to. What was held for that is woken when it is over. */
  #lookAtClocks(): void {
    const seeing = this.#seeing;
    if (!seeing) return;
    const { clocks } = seeing;
    const { log, holder } = this.#deps;
    const { skews } = this.#api;
    const text = apartText(skews, `relay ${holder}`);
    const isHold = areApart(skews);
    const follows = isHold
      ? 'evictions are held.'
      : 'evictions wait until their deadlines have passed by both clocks.';
    const reason = text && `${capitalized(text)}: ${follows}`;
    this.#faults.note({ type: 'clocks-differ' }, reason);
    if (reason && clocks === undefined) log.warn('cluster.clocks-differ', { cluster: this.#cluster, reason });
    if (text === undefined) delete seeing.clocks;
    else seeing.clocks = isHold ? 'hold' : 'differ';
    if (clocks !== 'hold' || isHold) return;
    this.#retell(seeing.view, true);
  }

  /** Tells of all nodes that are followed once more; `wake`: what is held is looked at again. */
  #retell(view: ClusterView, wake: boolean): void {
    const subjects = view.followed().map((node) => ({ node }));
    this.#deps.outbox.mark(this.#cluster, subjects, wake);
  }

  #lookWhoEvicts(): void {
    const seeing = this.#seeing;
    if (!seeing) return;
    const { clock, log } = this.#deps;
    const before = seeing.nobodyEvicts;
    const { mode } = this;
    seeing.nobodyEvicts =
      mode !== 'enforce' &&
      seeing.watch.connectionState.kind === 'live' &&
      seeing.view.hasForgotten(clock.now() - FORGOTTEN_MS);
    const reason = `Pods are more than ${FORGOTTEN_MS / 60_000} minutes overdue. The built-in controller isn't evicting, and policy doesn't let Taintward (mode ${mode}).`;
    this.#faults.note({ type: 'no-eviction-controller' }, seeing.nobodyEvicts ? reason : undefined);
    if (seeing.nobodyEvicts && !before)
      log.warn('cluster.no-eviction-controller', { cluster: this.#cluster, reason });
  }

  /** Replicas have names of their own, and are no rivals of each other: each marks while it leads. */
  #lookForRival(heldAt: EpochMs): void {
    const { installation, markedAt } = this.#api.lastRival ?? { markedAt: 0 };
    const lastsMs = markedAt + RIVAL_FOR_MS - this.#deps.clock.now();
    if (markedAt < heldAt + FOLLOWED_MS || lastsMs <= 0) return;
    const error = `Another Taintward, ${installation}, evicts in this cluster, too, by rules of its own: end one of the two, or take the cluster from it.`;
    this.#faults.begin({ type: 'conflicting-installation' }, error, { lastsMs });
  }

  #giveAwayIfDeaf(): void {
    if ((this.#seeing?.watch.outageMs ?? 0) >= DEAF_MS) this.#keeper.giveAway();
  }

  async #drain(): Promise<void> {
    const drained = new AbortController();
    const draining = this.#deps.outbox.drained().then(() => drained.abort());
    await Promise.race([draining, pause(DRAIN_MS, drained.signal)]);
  }
}

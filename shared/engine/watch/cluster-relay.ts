import { isDeepStrictEqual } from 'node:util';
import { clusterGate } from '#shared/eviction/gate.ts';
import type { GuardCounts } from '#shared/eviction/guard.ts';
import {
  type ClusterName,
  type ClusterUids,
  identifies,
  isSameCluster,
  sameClusterText,
} from '#shared/eviction/identity.ts';
import type { Rules, Trip } from '#shared/eviction/policy.ts';
import { apartText, areApart } from '#shared/eviction/skew.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Fault } from '#shared/state/fault.ts';
import type { History, RecentEvictions } from '#shared/state/history.ts';
import { LEASE_TTL_MS, type Lease, type LeaseRecord, MAX_STUCK } from '#shared/state/lease.ts';
import type { RulesStore } from '#shared/state/rules-store.ts';
import type { Store } from '#shared/state/store.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import { BuiltInEvictions } from './built-in-evictions.ts';
import { ClusterFaults } from './cluster-faults.ts';
import type { ClusterRelayState, ModeInForce } from './cluster-state.ts';
import { ClusterView, type ViewCounts } from './cluster-view.ts';
import { ClusterWatch } from './cluster-watch.ts';
import type { PodFollowLimits } from './follow-pods.ts';
import { GuardController } from './guard-controller.ts';
import { type LeaseEnd, LeaseManager, type LeaseManagerDeps } from './lease-manager.ts';
import { watchPermissions } from './permission-watch.ts';
import type { Outbox, Prover } from './ports.ts';
import type { RelayMetrics } from './relay-metrics.ts';
import { RemovalRecorder } from './removal-recorder.ts';
import type { RulesWatch } from './rules-watch.ts';
import { StalledNodes } from './stalled-nodes.ts';
import { keepTakeover, type TakeoverState } from './takeover-heartbeat.ts';

/** Maximum time that a stopping relay waits for the queues. The next relay sends the remaining deltas again. */
const DRAIN_MS = 5_000;
/** A relay that is disconnected for this long hands the lease off: another relay may be able to connect. */
export const DISCONNECTED_MS = 3 * 60_000;
/** Interval of the relay's checks, and of the guard's, because trips can reset by time alone. */
export const CHECK_MS = 10_000;
/** Pods that are overdue for this long show that the built-in controller doesn't evict: it needs a second. */
export const FORGOTTEN_MS = 10 * 60_000;
/** The history is searched this far back for evicted pods. Most grace periods are 30 s. */
export const EVICTED_WITHIN_MS = 10 * 60_000;

export interface ClusterRelayDeps extends LeaseManagerDeps {
  readonly store: Store;
  readonly outbox: Outbox;
  readonly rules: Pick<RulesWatch, 'follow'>;
  readonly rulesStore: Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'>;
  readonly history: Pick<History, 'noteGone'> & RecentEvictions;
  readonly limits: PodFollowLimits;
  readonly prover: Prover;
  readonly metrics: RelayMetrics;
  /** Leases of other clusters; `fresh`: read after the call. Absent: this process may read no other. */
  readonly otherLeases?: (cluster: ClusterName, fresh: boolean) => Promise<readonly LeaseRecord[]>;
}

interface LeaseSession {
  readonly view: ClusterView;
  readonly watch: ClusterWatch;
  readonly guard: GuardController;
  readonly takeover: Promise<void>;
  takeoverState: TakeoverState;
  readonly gone: RemovalRecorder;
  rules: Rules;
  nobodyEvicts: boolean;
  /** The clock difference as last logged: `hold` if it holds evictions; absent: the clocks agree. */
  clocks?: 'differ' | 'hold';
  /** The pods that were last reported as stuck terminating; absent: the previous report isn't read yet. */
  reported?: readonly StuckPod[];
}

/** Duration of the fault after a failed write, if the next attempt isn't known to follow soon. */
const UNSTORED_MS = 10 * 60_000;
/** An older action of another installation doesn't show that the installation is still active. */
export const RIVAL_FOR_MS = 3_600_000;
/** By then, the previous leader has marked its last pod. */
const FOLLOWED_MS = 2 * LEASE_TTL_MS;
const STORE_FAILING = { type: 'store-failing' } as const;

export const NO_COUNTS: ViewCounts = { nodes: 0, tainted: 0, pods: 0 };

const stuckFields = (cluster: ClusterName, { node, uid, namespace, name, ...why }: StuckPod) => {
  const { gracePeriodEndedAt, finalizers, nodeState } = why;
  return { cluster, node, namespace, pod: name, uid, gracePeriodEndedAt, finalizers, nodeState };
};

/** Watches one cluster while it holds the cluster's lease. Waits for the lease while another relay holds it. */
export class ClusterRelay {
  readonly #cluster: ClusterName;
  readonly #api: KubernetesApi;
  readonly #deps: ClusterRelayDeps;
  readonly #keeper: LeaseManager;
  readonly #faults: ClusterFaults;
  /** The lease is held; the session starts as soon as the cluster's rules are read. */
  #held = false;
  #session: LeaseSession | undefined;
  /** The UIDs of the cluster, since it was claimed under this name. */
  #uids: ClusterUids | undefined;

  constructor(cluster: ClusterName, api: KubernetesApi, deps: ClusterRelayDeps) {
    this.#cluster = cluster;
    this.#api = api;
    this.#deps = deps;
    this.#faults = new ClusterFaults(deps.clock);
    this.#keeper = new LeaseManager(
      cluster,
      {
        held: (lease, signal) => this.#hold(lease, signal),
        // Send the changes that were seen while the lease could not be renewed.
        regained: () => {
          this.#session?.guard.review();
          deps.outbox.send();
        },
        lastContactAt: () => this.#session?.watch.lastContactAt,
        nodes: () => (this.#session?.view.listed ? this.#session.view.counts.nodes : undefined),
        breakerOpen: () => api.breakerOpen,
        faults: () => this.#faults.list,
        tripProgress: () => this.#session?.guard.progress ?? [],
        reached: (error) => this.#faults.note(STORE_FAILING, error, { by: 'lease' }),
      },
      deps,
    );
  }

  get state(): ClusterRelayState {
    return this.#session?.watch.connectionState ?? { kind: this.#held ? 'syncing' : 'standby' };
  }

  get counts(): ViewCounts {
    return this.#session?.view.counts ?? NO_COUNTS;
  }

  /** The last contact with the cluster; `undefined`: none since this relay acquired the lease. */
  get lastContactAt(): EpochMs | undefined {
    return this.#session?.watch.lastContactAt;
  }

  get tally(): GuardCounts | undefined {
    return this.#session?.guard.counts;
  }

  get stuck(): readonly StuckPod[] {
    return this.#session?.view.stuck(this.#deps.clock.now()) ?? [];
  }

  get trips(): readonly Trip[] {
    return this.#session?.guard.trips ?? [];
  }

  /** Only the holder of the lease notices all of them. */
  get faults(): readonly Fault[] {
    return this.#faults.list;
  }

  /**
   * Notes that decisions about the cluster were stored or, with an error, not. The decider in the same process calls
   * it.
   */
  stored(error?: unknown): void {
    this.#faults.note(STORE_FAILING, error, { by: 'decided', lastsMs: UNSTORED_MS });
  }

  get takeover(): TakeoverState {
    return this.#session?.takeoverState ?? 'none';
  }

  /** Pods are overdue, the built-in controller doesn't evict them, and policy forbids it to this service. */
  get nobodyEvicts(): boolean {
    return this.#session?.nobodyEvicts ?? false;
  }

  /** Milliseconds that the API server's clock is ahead; `undefined`: unknown, or another relay holds the lease. */
  get skewMs(): number | undefined {
    return this.#held ? this.#api.skewMs : undefined;
  }

  get mode(): ModeInForce | undefined {
    const { clock } = this.#deps;
    return this.#session && (clusterGate(this.#session.rules, clock.now())?.kind ?? 'enforce');
  }

  start(): void {
    this.#keeper.start();
  }

  /** Sends the pending deltas, releases the lease, and ends. */
  async stop(): Promise<void> {
    await this.#keeper.stop();
  }

  async #hold(lease: Lease, signal: AbortSignal): Promise<void> {
    const { outbox, rules } = this.#deps;
    this.#held = true;
    const heldAt = this.#deps.clock.now();
    void watchPermissions(this.#api, this.#faults, signal, () => this.#session?.watch.answered());
    rules.follow(
      this.#cluster,
      (found) => {
        if (this.#session) {
          this.#session.rules = found;
          this.#session.guard.ruled(found);
          this.#session.watch.ruled(found);
        } else {
          this.#startSession(lease, found, signal);
        }
      },
      signal,
      (error) => this.#faults.note(STORE_FAILING, error, { by: 'rules' }),
    );
    while (!signal.aborted) {
      await pause(CHECK_MS, signal);
      if (signal.aborted) break;
      this.#releaseIfDisconnected();
      this.#session?.guard.review();
      this.#checkClocks();
      this.#checkWhoEvicts();
      this.#checkForRival(heldAt);
      await this.#checkClaim(lease, signal);
      await this.#reportStuck(lease);
    }
    await this.#session?.watch.stop();
    await this.#session?.takeover;
    await this.#session?.gone.written();
    if (signal.reason !== ('lost' satisfies LeaseEnd)) await this.#drainOutbox();
    outbox.dropCluster(this.#cluster);
    this.#session = undefined;
    this.#uids = undefined;
    this.#faults.clear();
    this.#held = false;
  }

  #startSession(lease: Lease, rules: Rules, signal: AbortSignal): void {
    const { outbox, store, rulesStore, history, prover, clock, metrics, log } = this.#deps;
    const faults = this.#faults;
    const view = new ClusterView(this.#cluster, lease.epoch, clock);
    const guard = new GuardController(this.#cluster, view, rules, {
      rulesStore,
      clock,
      log,
      signal,
      knows: () => view.listed && watch.connectionState.kind !== 'disconnected' && this.#keeper.canSend(),
      saved: (error) => faults.note({ type: 'guard-unsaved' }, error),
      freed: () => outbox.send(),
      retell: (wake) => this.#retell(view, wake),
    });
    const rulesNow = () => this.#session?.rules ?? rules;
    const { epoch } = lease;
    const stalled = new StalledNodes(this.#cluster, { store, view, rules: rulesNow, epoch, clock });
    const builtIn = new BuiltInEvictions(this.#cluster, {
      view,
      rules: rulesNow,
      faults,
      metrics,
      clock,
      log,
    });
    const noted = (error?: unknown) => faults.note(STORE_FAILING, error, { by: 'history' });
    const gone = new RemovalRecorder(this.#cluster, { history, log, noted, signal });
    const watch = new ClusterWatch(this.#cluster, this.#api, view, {
      ...this.#deps,
      faults,
      rules,
      claim: async () => this.#claim(lease, await this.#api.uids()),
      counted: () => {
        guard.counted();
        // The first node of a cluster without any identifies it.
        if (this.#uids && !identifies(this.#uids)) void this.#checkClaim(lease, signal);
      },
      deleted: (pod) => builtIn.see(pod),
      gone: (pods) => gone.add(pods),
      mark: (subjects, wake) => outbox.mark(this.#cluster, subjects, wake),
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
        prove: (signal) => prover.prove(this.#cluster, signal),
        onState: (state, reason) => {
          if (this.#session) this.#session.takeoverState = state;
          faults.note({ type: 'heartbeat-suspended' }, reason);
        },
      },
      signal,
    );
    this.#session = { view, watch, guard, rules, takeover, takeoverState: 'none', gone, nobodyEvicts: false };
    const canSend = () => this.#keeper.canSend() && guard.maySend && identifies(this.#uids);
    outbox.open(this.#cluster, view, canSend, (by, error) =>
      faults.note({ type: 'queue-failing' }, error, { by }),
    );
    watch.start();
  }

  /**
   * Rejects if another name has claimed the cluster: that name's holds and stops are in force. Of two simultaneous
   * claims, at least one finds the other, because each writes before it reads.
   */
  async #claim(lease: Lease, uids: ClusterUids): Promise<void> {
    const { leases, otherLeases, clock } = this.#deps;
    const before = this.#uids;
    const write = (claim: Pick<LeaseRecord, 'uids' | 'sameAs'>) =>
      leases.renew(lease, { renewedAt: clock.now(), claim });
    const findTwin = async (fresh: boolean) =>
      (await otherLeases?.(this.#cluster, fresh))?.find((other) => isSameCluster(other.uids, uids));
    if (!isSameCluster(before, uids)) this.#uids = undefined;
    let twin = await findTwin(false);
    if (!twin && !isDeepStrictEqual(before, uids)) {
      await write({ uids });
      twin = await findTwin(true);
    }
    // Another call, with newer UIDs, was faster.
    if (before && isSameCluster(before, uids) && this.#uids !== before) return;
    const error = twin && new ApiError(sameClusterText(this.#cluster, twin.cluster), 0);
    this.#faults.note({ type: 'same-cluster' }, error);
    this.#uids = twin ? undefined : uids;
    if (twin) {
      await write({ sameAs: twin.cluster });
      throw error;
    }
    if (!identifies(before) && this.#session) this.#retell(this.#session.view, true);
  }

  async #checkClaim(lease: Lease, signal: AbortSignal): Promise<void> {
    try {
      if (identifies(this.#uids)) return await this.#claim(lease, this.#uids);
      // Of two relays that find each other's claims, one is first next time.
      if (!this.#uids) await pause(Math.random() * CHECK_MS, signal);
      if (this.#session) await this.#claim(lease, await this.#api.uids());
    } catch {
      // The fault, the list of nodes, or the lease's next renewal reports the error.
    }
  }

  /**
   * The first call reads the previous relay's report and the nodes of recent evictions, which may have no taints
   * anymore.
   */
  async #reportStuck(lease: Lease): Promise<void> {
    const session = this.#session;
    const { leases, history, clock, log } = this.#deps;
    // Until the lists are complete, a pod that isn't listed may still exist.
    if (session?.watch.connectionState.kind !== 'live') return;
    try {
      if (!session.reported) {
        const reported = await leases.stuck(this.#cluster);
        const evictedFrom = await history.nodesEvictedFrom(this.#cluster, clock.now() - EVICTED_WITHIN_MS);
        session.watch.expectLeaving(evictedFrom.union(new Set(reported.map(({ node }) => node))));
        session.reported = reported;
        return;
      }
      const stuck = this.stuck.slice(0, MAX_STUCK);
      if (isDeepStrictEqual(stuck, session.reported)) return;
      await leases.reportStuck(lease, stuck);
      this.#faults.end(STORE_FAILING, 'stuck');
      for (const pod of stuck) {
        if (!session.reported.some(({ uid }) => uid === pod.uid))
          log.warn('pod.stuck-terminating', stuckFields(this.#cluster, pod));
      }
      session.reported = stuck;
    } catch (error) {
      this.#faults.begin(STORE_FAILING, error, { by: 'stuck', lastsMs: UNSTORED_MS });
      log.error('relay.lease-failed', { cluster: this.#cluster, error });
    }
  }

  /** Logs clocks that differ by more than 30 s, once. When it is over, wakes the evictions that it held. */
  #checkClocks(): void {
    const session = this.#session;
    if (!session) return;
    const { clocks } = session;
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
    if (text === undefined) delete session.clocks;
    else session.clocks = isHold ? 'hold' : 'differ';
    if (clocks !== 'hold' || isHold) return;
    this.#retell(session.view, true);
  }

  #retell(view: ClusterView, wake: boolean): void {
    const subjects = view.followed().map((node) => ({ node }));
    this.#deps.outbox.mark(this.#cluster, subjects, wake);
  }

  #checkWhoEvicts(): void {
    const session = this.#session;
    if (!session) return;
    const { clock, log } = this.#deps;
    const before = session.nobodyEvicts;
    const { mode } = this;
    session.nobodyEvicts =
      mode !== 'enforce' &&
      session.watch.connectionState.kind === 'live' &&
      session.view.hasForgotten(clock.now() - FORGOTTEN_MS);
    const reason = `Pods are more than ${FORGOTTEN_MS / 60_000} minutes overdue. The built-in controller isn't evicting, and policy doesn't let Taintward (mode ${mode}).`;
    this.#faults.note({ type: 'no-eviction-controller' }, session.nobodyEvicts ? reason : undefined);
    if (session.nobodyEvicts && !before)
      log.warn('cluster.no-eviction-controller', { cluster: this.#cluster, reason });
  }

  /**
   * Notes another installation that evicts here. A replica marks pods only while it leads, so its earlier marks don't
   * count.
   */
  #checkForRival(heldAt: EpochMs): void {
    const { installation, markedAt } = this.#api.lastRival ?? { markedAt: 0 };
    const lastsMs = markedAt + RIVAL_FOR_MS - this.#deps.clock.now();
    if (markedAt < heldAt + FOLLOWED_MS || lastsMs <= 0) return;
    const error = `Another Taintward, ${installation}, also evicts in this cluster, by its own rules: stop one of the two, or remove the cluster from it.`;
    this.#faults.begin({ type: 'conflicting-installation' }, error, { lastsMs });
  }

  #releaseIfDisconnected(): void {
    const isTwin = this.#faults.list.some(({ type }) => type === 'same-cluster');
    if (!isTwin && (this.#session?.watch.outageMs ?? 0) >= DISCONNECTED_MS) this.#keeper.giveAway();
  }

  async #drainOutbox(): Promise<void> {
    await endsWithin(DRAIN_MS, this.#deps.outbox.drained());
  }
}

import { isDeepStrictEqual } from 'node:util';
import { defined } from '#shared/defined.ts';
import { clusterGate } from '#shared/eviction/gate.ts';
import {
  type ClusterName,
  type ClusterUids,
  identifies,
  isSameCluster,
  sameClusterText,
} from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { apartText, areApart } from '#shared/eviction/skew.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { History } from '#shared/state/history.ts';
import { type Lease, type LeaseRecord, type LeaseReport, MAX_STUCK } from '#shared/state/lease.ts';
import type { RulesStore } from '#shared/state/rules-store.ts';
import type { Store } from '#shared/state/store.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import { durationText } from '#shared/time/duration.ts';
import { pause } from '#shared/time/pause.ts';
import { builtInEvictions } from './built-in-evictions.ts';
import { type ClusterFaults, STORE_FAILING, UNSTORED_MS } from './cluster-faults.ts';
import type { ModeInForce } from './cluster-state.ts';
import { ClusterView } from './cluster-view.ts';
import { ClusterWatch } from './cluster-watch.ts';
import type { PodFollowLimits } from './follow-pods.ts';
import { GuardController } from './guard-controller.ts';
import type { LeaseManagerDeps } from './lease-manager.ts';
import type { Outbox, Prover } from './ports.ts';
import type { RelayMetrics, SessionGauges } from './relay-metrics.ts';
import { RemovalRecorder } from './removal-recorder.ts';
import { stalledNodes } from './stalled-nodes.ts';
import { keepTakeover, type TakeoverHeartbeatDeps } from './takeover-heartbeat.ts';

/** Interval of {@link LeaseSession.check}: trips can reset by time alone. */
export const CHECK_MS = 10_000;
/** Pods that are overdue for this long show that the built-in controller doesn't evict: it needs a second. */
export const FORGOTTEN_MS = 10 * 60_000;
/** The history is searched this far back for evicted pods. Most grace periods are 30 s. */
export const EVICTED_WITHIN_MS = 10 * 60_000;

/** The dependencies that the sessions of all clusters share. */
export interface SessionPorts extends Omit<LeaseManagerDeps, 'fleet'> {
  readonly store: Store;
  readonly outbox: Outbox;
  readonly rulesStore: Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'>;
  readonly history: Pick<History, 'noteGone' | 'nodesEvictedFrom'>;
  readonly limits: PodFollowLimits;
  readonly prover: Prover;
  readonly metrics: RelayMetrics;
  /** Leases of other clusters; `fresh`: read after the call. Absent: this process may read no other. */
  readonly otherLeases?: (cluster: ClusterName, fresh: boolean) => Promise<readonly LeaseRecord[]>;
}

export interface LeaseSessionDeps extends SessionPorts {
  readonly api: KubernetesApi;
  readonly lease: Lease;
  /** The cluster's rules at the start; see {@link LeaseSession.ruled}. */
  readonly rules: Rules;
  readonly faults: ClusterFaults;
  /** Reports whether the lease is valid now. */
  readonly holdsLease: () => boolean;
  /** Aborts when the session must end. */
  readonly signal: AbortSignal;
}

/**
 * Watches one cluster under one lease, from its first rules: claims the cluster, follows its nodes and pods, runs its
 * guard, renews its takeover, and has deltas sent while claim, guard, and lease allow it.
 */
export class LeaseSession {
  readonly guard: GuardController;
  readonly watch: ClusterWatch;
  readonly #cluster: ClusterName;
  readonly #deps: LeaseSessionDeps;
  readonly #view: ClusterView;
  readonly #whyStalled: ReturnType<typeof stalledNodes>;
  readonly #gone: RemovalRecorder;
  #rules: Rules;
  #takeover: Promise<void> | undefined;
  #nobodyEvicts = false;
  /** The UIDs of the cluster, since it was claimed under this name. */
  #uids: ClusterUids | undefined;
  /** The clock difference as last logged: `hold` if it holds evictions; absent: the clocks agree. */
  #clocks: 'differ' | 'hold' | undefined;
  /** The pods that were last reported as stuck terminating; absent: the previous report isn't read yet. */
  #reported: readonly StuckPod[] | undefined;

  constructor(cluster: ClusterName, deps: LeaseSessionDeps) {
    const { api, lease, rules, faults, outbox } = deps;
    this.#cluster = cluster;
    this.#deps = deps;
    this.#rules = rules;
    const view = new ClusterView(cluster, lease.epoch, deps.clock);
    this.#view = view;
    this.guard = new GuardController(cluster, view, rules, {
      ...deps,
      knows: () => this.#knowsNodes(),
      saved: (error) => faults.note({ type: 'guard-unsaved' }, error),
      freed: () => outbox.send(),
      retell: (wake) => this.#retell(wake),
    });
    const current = { ...deps, view, rules: () => this.#rules };
    this.#whyStalled = stalledNodes(cluster, { ...current, epoch: lease.epoch });
    const noted = (error?: unknown) => faults.note(STORE_FAILING, error, { by: 'history' });
    this.#gone = new RemovalRecorder(cluster, { ...deps, noted });
    this.watch = new ClusterWatch(cluster, api, view, {
      ...deps,
      claim: async () => this.#claim(await api.uids()),
      counted: () => this.#nodesChanged(),
      deleted: builtInEvictions(cluster, current),
      gone: (pods) => this.#gone.add(pods),
      mark: (subjects, wake) => outbox.mark(cluster, subjects, wake),
    });
  }

  get gauges(): SessionGauges {
    return {
      mode: this.#mode,
      counts: this.#view.counts,
      stuck: this.#view.stuck(this.#deps.clock.now()).length,
      trips: this.guard.trips,
    };
  }

  /** Returns what the lease says of the cluster. */
  get report(): Pick<LeaseReport, 'tripProgress' | 'lastContactAt' | 'nodes'> {
    const { lastContactAt } = this.watch;
    return {
      tripProgress: this.guard.progress,
      ...defined({ lastContactAt }),
      ...(this.#view.listed ? { nodes: this.#view.counts.nodes } : {}),
    };
  }

  get #mode(): ModeInForce {
    return clusterGate(this.#rules, this.#deps.clock.now())?.kind ?? 'enforce';
  }

  start(): void {
    const { outbox, faults, signal } = this.#deps;
    this.#takeover = keepTakeover(this.#cluster, this.#takeoverDeps, signal);
    outbox.open(
      this.#cluster,
      this.#view,
      () => this.#canSend(),
      // The answer to a call may come when the lease, and its faults, are another relay's.
      (by, error) => !signal.aborted && faults.note({ type: 'queue-failing' }, error, { by }),
    );
    this.watch.start();
  }

  ruled(rules: Rules): void {
    this.#rules = rules;
    this.guard.ruled(rules);
    this.watch.ruled(rules);
  }

  /** Checks what changes by time alone, or outside the cluster. To be called every `CHECK_MS`. Never rejects. */
  async check(): Promise<void> {
    this.guard.review();
    this.#checkClocks();
    this.#checkWhoEvicts();
    await this.#checkClaim();
    await this.#reportStuck();
  }

  /** Resolves when nothing of an aborted session runs anymore. Pending deltas may still be sent. */
  async ended(): Promise<void> {
    await this.watch.stop();
    await this.#takeover;
    await this.#gone.written();
  }

  #knowsNodes(): boolean {
    return this.#view.listed && this.watch.connectionState.kind !== 'disconnected' && this.#deps.holdsLease();
  }

  #canSend(): boolean {
    return this.#deps.holdsLease() && this.guard.maySend && identifies(this.#uids);
  }

  #nodesChanged(): void {
    this.guard.counted();
    // The first node of a cluster without any identifies it.
    if (this.#uids && !identifies(this.#uids)) void this.#checkClaim();
  }

  get #takeoverDeps(): TakeoverHeartbeatDeps {
    return {
      ...this.#deps,
      policy: () => this.#rules.policy,
      connectionState: () => this.watch.connectionState.kind,
      whyStalled: async (keys) => (await this.guard.whyUnwritable()) ?? (await this.#whyStalled(keys)),
      prove: (signal) => this.#deps.prover.prove(this.#cluster, signal),
      onState: (_, reason) => this.#deps.faults.note({ type: 'heartbeat-suspended' }, reason),
    };
  }

  /**
   * Rejects if another name has claimed the cluster: that name's holds and stops are in force. Of two simultaneous
   * claims, at least one finds the other, because each writes before it reads.
   */
  async #claim(uids: ClusterUids): Promise<void> {
    const { lease, leases, otherLeases, faults, clock } = this.#deps;
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
    faults.note({ type: 'same-cluster' }, error);
    this.#uids = twin ? undefined : uids;
    if (twin) {
      await write({ sameAs: twin.cluster });
      throw error;
    }
    if (!identifies(before)) this.#retell(true);
  }

  async #checkClaim(): Promise<void> {
    try {
      if (identifies(this.#uids)) return await this.#claim(this.#uids);
      // Two relays that found each other's claims retry at different times, so that one claims first.
      if (!this.#uids) await pause(Math.random() * CHECK_MS, this.#deps.signal);
      await this.#claim(await this.#deps.api.uids());
    } catch {
      // The fault, the list of nodes, or the lease's next renewal reports the error.
    }
  }

  /** The first call reads the previous relay's report, and the nodes of recent evictions: they may have no taints. */
  async #reportStuck(): Promise<void> {
    const { lease, leases, history, faults, clock, log } = this.#deps;
    // Until the lists are complete, a pod that isn't listed may still exist.
    if (this.watch.connectionState.kind !== 'live') return;
    const before = this.#reported;
    try {
      if (!before) {
        const reported = await leases.stuck(this.#cluster);
        const evictedFrom = await history.nodesEvictedFrom(this.#cluster, clock.now() - EVICTED_WITHIN_MS);
        this.watch.expectLeaving(evictedFrom.union(new Set(reported.map(({ node }) => node))));
        this.#reported = reported;
        return;
      }
      const stuck = this.#view.stuck(clock.now()).slice(0, MAX_STUCK);
      if (isDeepStrictEqual(stuck, before)) return;
      await leases.reportStuck(lease, stuck);
      faults.end(STORE_FAILING, 'stuck');
      for (const { node, namespace, name, uid, ...why } of stuck) {
        if (before.some((pod) => pod.uid === uid)) continue;
        const about = { cluster: this.#cluster, node, namespace, pod: name, uid };
        log.warn('pod.stuck-terminating', { ...about, ...why });
      }
      this.#reported = stuck;
    } catch (error) {
      faults.begin(STORE_FAILING, error, { by: 'stuck', lastsMs: UNSTORED_MS });
      log.error('relay.lease-failed', { cluster: this.#cluster, error });
    }
  }

  /** Logs clocks that differ by more than 30 s, once. When it is over, wakes the evictions that it held. */
  #checkClocks(): void {
    const { api, log, holder, faults } = this.#deps;
    const before = this.#clocks;
    const text = apartText(api.skews, `relay ${holder}`);
    const isHold = areApart(api.skews);
    const follows = isHold
      ? 'evictions are held.'
      : 'evictions wait until their deadlines have passed by both clocks.';
    const reason = text && `${capitalized(text)}: ${follows}`;
    faults.note({ type: 'clocks-differ' }, reason);
    if (reason && !before) log.warn('cluster.clocks-differ', { cluster: this.#cluster, reason });
    if (text === undefined) this.#clocks = undefined;
    else this.#clocks = isHold ? 'hold' : 'differ';
    if (before === 'hold' && !isHold) this.#retell(true);
  }

  /** Has all followed nodes sent again; `wake`: overdue evictions there are checked immediately. */
  #retell(wake: boolean): void {
    const subjects = this.#view.followed().map((node) => ({ node }));
    this.#deps.outbox.mark(this.#cluster, subjects, wake);
  }

  #checkWhoEvicts(): void {
    const { clock, log, faults } = this.#deps;
    const before = this.#nobodyEvicts;
    const mode = this.#mode;
    this.#nobodyEvicts =
      mode !== 'enforce' &&
      this.watch.connectionState.kind === 'live' &&
      this.#view.hasForgotten(clock.now() - FORGOTTEN_MS);
    const reason = `Pods are more than ${durationText(FORGOTTEN_MS)} overdue. The built-in controller isn't evicting, and policy doesn't let Taintward (mode ${mode}).`;
    faults.note({ type: 'no-eviction-controller' }, this.#nobodyEvicts ? reason : undefined);
    if (this.#nobodyEvicts && !before)
      log.warn('cluster.no-eviction-controller', { cluster: this.#cluster, reason });
  }
}

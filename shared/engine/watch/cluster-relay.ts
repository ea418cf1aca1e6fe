import type { GuardCounts, TripReport } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Fault } from '#shared/state/fault.ts';
import { LEASE_TTL_MS, type Lease } from '#shared/state/lease.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import { ClusterFaults, type FaultKind, STORE_FAILING, UNSTORED_MS } from './cluster-faults.ts';
import type { ClusterRelayState } from './cluster-state.ts';
import { type LeaseEnd, LeaseManager, type LeaseManagerDeps } from './lease-manager.ts';
import { CHECK_MS, LeaseSession, type SessionPorts } from './lease-session.ts';
import { watchPermissions } from './permission-watch.ts';
import { type ClusterGauges, NO_SESSION } from './relay-metrics.ts';
import type { RulesWatch } from './rules-watch.ts';

/** Maximum time that a stopping relay waits for the queues. The next relay sends the remaining deltas again. */
const DRAIN_MS = 5_000;
/** A relay that is disconnected for this long hands the lease off: another relay may be able to connect. */
export const DISCONNECTED_MS = 3 * 60_000;

/** An older action of another installation doesn't show that the installation is still active. */
export const RIVAL_FOR_MS = 3_600_000;
/** By then, the previous leader has marked its last pod. */
const FOLLOWED_MS = 2 * LEASE_TTL_MS;

export interface ClusterRelayDeps extends LeaseManagerDeps, SessionPorts {
  readonly rules: Pick<RulesWatch, 'follow'>;
}

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
        report: () => ({ ...this.#session?.report, breakerOpen: api.breakerOpen, faults: this.faults }),
        reached: (error) => this.#faults.note({ type: 'lease-unavailable' }, error),
      },
      deps,
    );
  }

  get state(): ClusterRelayState {
    const state = this.#session?.watch.connectionState ?? { kind: this.#held ? 'syncing' : 'standby' };
    return state.kind === 'live' && this.#api.breakerOpen ? { ...state, breakerOpen: true } : state;
  }

  /** The last contact with the cluster; `undefined`: none since this relay acquired the lease. */
  get lastContactAt(): EpochMs | undefined {
    return this.#session?.watch.lastContactAt;
  }

  get gauges(): Omit<ClusterGauges, 'cluster'> {
    return { ...(this.#session?.gauges ?? NO_SESSION), state: this.state, faults: this.faults };
  }

  get trips(): readonly TripReport[] {
    return this.#session?.guard.reports ?? [];
  }

  get tally(): GuardCounts | undefined {
    return this.#session?.guard.counts;
  }

  /** Only the holder of the lease notices all of them. */
  get faults(): readonly Fault[] {
    return this.#faults.list;
  }

  /** Notes what another part of this process met in its work for the cluster: an error or, without one, a success. */
  noted(kind: FaultKind, error?: unknown): void {
    this.#faults.note(kind, error, { by: 'process', lastsMs: UNSTORED_MS });
  }

  /** Milliseconds that the API server's clock is ahead; `undefined`: unknown, or another relay holds the lease. */
  get skewMs(): number | undefined {
    return this.#held ? this.#api.skewMs : undefined;
  }

  start(): void {
    this.#keeper.start();
  }

  /** Sends the pending deltas, releases the lease, and ends. */
  async stop(): Promise<void> {
    await this.#keeper.stop();
  }

  async #hold(lease: Lease, signal: AbortSignal): Promise<void> {
    const { outbox, rules, clock } = this.#deps;
    this.#held = true;
    const heldAt = clock.now();
    void watchPermissions(this.#api, this.#faults, signal, () => this.#session?.watch.answered());
    rules.follow(
      this.#cluster,
      (found) => {
        if (this.#session) this.#session.ruled(found);
        else this.#startSession(lease, found, signal);
      },
      signal,
      (error) => this.#faults.note(STORE_FAILING, error, { by: 'rules' }),
    );
    while (!signal.aborted) {
      await pause(CHECK_MS, signal);
      if (signal.aborted) break;
      this.#releaseIfDisconnected();
      this.#checkForRival(heldAt);
      await this.#session?.check();
    }
    await this.#session?.ended();
    if (signal.reason !== ('lost' satisfies LeaseEnd)) await endsWithin(DRAIN_MS, outbox.drained());
    outbox.dropCluster(this.#cluster);
    this.#session = undefined;
    this.#faults.clear();
    this.#held = false;
  }

  #startSession(lease: Lease, rules: Rules, signal: AbortSignal): void {
    const own = { api: this.#api, lease, rules, faults: this.#faults, signal };
    const holdsLease = () => this.#keeper.canSend();
    this.#session = new LeaseSession(this.#cluster, { ...this.#deps, ...own, holdsLease });
    this.#session.start();
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
    const isTwin = this.faults.some(({ type }) => type === 'same-cluster');
    if (!isTwin && (this.#session?.watch.outageMs ?? 0) >= DISCONNECTED_MS) this.#keeper.giveAway();
  }
}

import { once } from 'node:events';
import type { TripReport } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Fault } from '#shared/state/fault.ts';
import {
  CLOCK_SKEW,
  GUARD_TRIPS,
  NOBODY_EVICTS,
  STUCK_PODS,
  TAKEOVERS_WITHHELD,
} from '#shared/telemetry/metrics.ts';
import { stopwatchMs } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { FaultKind } from './cluster-faults.ts';
import { ClusterRelay, type ClusterRelayDeps } from './cluster-relay.ts';
import type { ClusterRelayState } from './cluster-state.ts';
import { Fleet } from './fleet.ts';
import { PodFollowLimits } from './follow-pods.ts';
import { LeaseManager } from './lease-manager.ts';
import { type ClusterGauges, NO_SESSION } from './relay-metrics.ts';

/** Interval at which a relay checks whether it should have more clusters, and reports its load, jittered by half. */
const SHARE_MS = 5_000;

/** Smaller clock skews are usual and not reported. */
export const REPORTED_SKEW_MS = 1_000;

interface Reported {
  readonly keeper: LeaseManager;
  readonly faults: () => readonly Fault[];
}

/** Follows many clusters in one process, each while it holds that cluster's lease. */
export class Relay {
  readonly #clusters = new Map<ClusterName, ClusterRelay>();
  readonly #deps: ClusterRelayDeps;
  /** Clusters that are no longer followed, until their last deltas are sent. */
  readonly #leaving = new Map<ClusterName, Promise<unknown>>();
  /** Clusters that this process can't access yet. */
  readonly #reported = new Map<ClusterName, Reported>();
  readonly #fleet: Fleet;
  readonly #stopping = new AbortController();
  readonly #sharing: Promise<void>;

  /** `nodeBudget`: the capacity in nodes, while other relays are available for the rest. */
  constructor({
    nodeBudget,
    ...deps
  }: Omit<ClusterRelayDeps, 'fleet' | 'limits'> & { readonly nodeBudget: number }) {
    const { holder, clock } = deps;
    this.#fleet = new Fleet({ holder, budget: nodeBudget, stopwatch: () => stopwatchMs(clock) });
    this.#deps = { ...deps, fleet: this.#fleet, limits: new PodFollowLimits() };
    this.#sharing = this.#share();
    deps.metrics.observe(() => [
      ...[...this.#clusters].map(([cluster, { gauges }]) => ({ ...gauges, cluster })),
      ...[...this.#reported].map(([cluster, { faults }]) => {
        return { ...NO_SESSION, cluster, state: { kind: 'syncing' } as const, faults: faults() };
      }),
    ]);
  }

  /** Follows a cluster from now on, or as soon as its previous relay in this process has ended. */
  add(name: ClusterName, api: KubernetesApi): void {
    const cluster = new ClusterRelay(name, api, this.#deps);
    this.#clusters.set(name, cluster);
    this.#deps.metrics.begin(name);
    this.#endReport(name);
    const start = () => {
      if (this.#clusters.get(name) === cluster) cluster.start();
    };
    const leaving = this.#leaving.get(name);
    // The last deltas and the release of the previous lease must not be mistaken for those of the new relay.
    if (leaving) void leaving.then(start);
    else start();
  }

  /** Holds the lease of a cluster that can't be accessed, to report its faults there, until the cluster is added. */
  report(name: ClusterName, faults: Reported['faults']): void {
    const keeper = new LeaseManager(
      name,
      {
        held: async (_, signal) => void (await once(signal, 'abort')),
        regained: () => undefined,
        report: () => ({ breakerOpen: false, faults: faults() }),
        reached: () => undefined,
      },
      this.#deps,
    );
    this.#reported.set(name, { keeper, faults });
    this.#deps.metrics.begin(name);
    keeper.start();
  }

  #endReport(name: ClusterName): void {
    const { keeper } = this.#reported.get(name) ?? {};
    if (!keeper) return;
    this.#reported.delete(name);
    void this.#leave(name, keeper.stop());
  }

  #leave(name: ClusterName, ended: Promise<void>): Promise<unknown> {
    const left = Promise.all([this.#leaving.get(name), ended]).then(() => {
      if (this.#leaving.get(name) === left) this.#leaving.delete(name);
    });
    this.#leaving.set(name, left);
    return left;
  }

  /** Stops following a cluster; resolves when its pending deltas are sent and its lease is released. */
  async remove(name: ClusterName): Promise<void> {
    const cluster = this.#clusters.get(name);
    if (!cluster) return;
    this.#clusters.delete(name);
    await this.#leave(name, cluster.stop());
    if (this.#clusters.has(name)) return;
    this.#fleet.forget(name);
    this.#deps.metrics.end(name);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const keepers = [...this.#reported.values()].map(({ keeper }) => keeper);
    await Promise.all([
      this.#sharing,
      ...[...this.#clusters.values(), ...keepers].map((each) => each.stop()),
    ]);
    this.#deps.outbox.stop();
  }

  states(): ReadonlyMap<ClusterName, ClusterRelayState> {
    return new Map([...this.#clusters].map(([name, cluster]) => [name, cluster.state]));
  }

  clusters(): ReadonlyMap<ClusterName, Pick<ClusterRelay, 'gauges' | 'lastContactAt' | 'tally'>> {
    return this.#clusters;
  }

  trips(): ReadonlyMap<ClusterName, readonly TripReport[]> {
    return new Map([...this.#clusters].map(([name, cluster]) => [name, cluster.trips]));
  }

  faults(): ReadonlyMap<ClusterName, readonly Fault[]> {
    const reported = [...this.#reported].map(([name, { faults }]) => [name, faults()] as const);
    const followed = [...this.#clusters].map(([name, { faults }]) => [name, faults] as const);
    return new Map([...reported, ...followed]);
  }

  /** Notes what another part of this process met in its work for a cluster: an error or, without one, a success. */
  noted(cluster: ClusterName, kind: FaultKind, error?: unknown): void {
    this.#clusters.get(cluster)?.noted(kind, error);
  }

  /** Requests clusters while another relay's load is clearly higher, and reports a load above this relay's capacity. */
  async #share(): Promise<void> {
    const { leases, holder, log, metrics } = this.#deps;
    const { signal } = this.#stopping;
    let wasOver = false;
    while (!signal.aborted) {
      await pause(SHARE_MS * (0.5 + Math.random() / 2), signal);
      const { load, excess } = this.#fleet;
      metrics.load.set(load);
      metrics.overBudget(excess);
      const clusters = [...this.#clusters.values()];
      for (const [name, value] of alarmingValues(clusters)) metrics.put(name, value);
      if (excess > 0 && !wasOver) log.warn('relay.over-capacity', { load, excess });
      wasOver = excess > 0;
      const lease = signal.aborted ? undefined : this.#fleet.wanted(this.#clusters.size);
      if (!lease) continue;
      try {
        await leases.bid(lease, { holder, load });
      } catch (error) {
        log.error('relay.lease-failed', { cluster: lease.cluster, error });
      }
    }
  }
}

/** Returns the values of all clusters that alarms wait for. One that is zero is not reported. */
export function alarmingValues(
  clusters: readonly {
    readonly gauges: Omit<ClusterGauges, 'cluster'>;
    readonly skewMs: number | undefined;
  }[],
): readonly (readonly [metric: string, value: number])[] {
  const gauges = clusters.map((cluster) => cluster.gauges);
  const faults = gauges.flatMap((each) => each.faults.map(({ type }) => type));
  const skewMs = Math.max(...clusters.map((cluster) => Math.abs(cluster.skewMs ?? 0)));
  const values = {
    [GUARD_TRIPS]: gauges.flatMap(({ trips }) => trips).length,
    [TAKEOVERS_WITHHELD]: faults.filter((type) => type === 'heartbeat-suspended').length,
    [NOBODY_EVICTS]: faults.filter((type) => type === 'no-eviction-controller').length,
    [STUCK_PODS]: gauges.reduce((sum, { stuck }) => sum + stuck, 0),
    [CLOCK_SKEW]: skewMs > REPORTED_SKEW_MS ? skewMs / 1000 : 0,
  };
  return Object.entries(values).filter(([, value]) => value > 0);
}

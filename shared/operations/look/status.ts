import {
  type ClusterFacts,
  CONDITIONS,
  type ConnectionStatus,
  connectionStatusOf,
  type FleetFacts,
  type Issue,
  isOutOfReach,
  isRenewed,
  issuesOf,
  LATE_MS,
} from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import { downSince, holdsBy, isOn } from '#shared/eviction/gate.ts';
import { type ReportedProgress, reportOf, type TripReport } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type GuardPolicy, type Hold, type Trip } from '#shared/eviction/policy.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import type { ServiceClusterView } from '#shared/operations/fleet/service-view.ts';
import type { Fault } from '#shared/state/fault.ts';
import { stopsInForce } from '#shared/state/rules-store.ts';
import { taintText } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { VERSION } from '#shared/version.ts';
import type { ClusterRead, LiveFacts, Snapshot, StoredFacts } from './look.ts';
import type { PendingEviction } from './pending.ts';
import { countsOf, lateOf, nextOf, type PendingCounts, retryOf } from './pending-state.ts';

/** Status of a fleet. Times are epoch milliseconds. */
export interface FleetStatus extends FleetFacts {
  readonly where: string;
  readonly versions: {
    readonly cli: string;
    /** Release of the `npm start`. Absent: none runs, or the fleet has none. */
    readonly service?: string;
    /** Release of a deployment's functions. Absent: the fleet has none, or the release is unknown. */
    readonly functions?: string;
    /** Distinct releases of the relays that report them. */
    readonly relays?: readonly string[];
  };
  /** Relays that hold at least one of the leases. */
  readonly relays: readonly RelayStatus[];
  readonly clusters: readonly ClusterStatus[];
  /** Facts that are unknown, as sentences. */
  readonly unknown: readonly string[];
  /** Problems that require an action, most urgent first. */
  readonly issues: readonly Issue[];
}

export interface RelayStatus {
  readonly holder: string;
  /** Release of the relay. Absent: the relay doesn't report it. */
  readonly version?: string;
  readonly clusters: readonly ClusterName[];
  /** Number of nodes in these clusters, as far as known. */
  readonly nodes: number;
  /** Time of its last renewal of any of these leases. */
  readonly renewedAt: EpochMs;
}

/** A trip with what it holds, now or once it is due, also if another rule holds it, too. */
export interface HoldingTrip extends TripReport {
  readonly pods: number;
  readonly onNodes: number;
  /** Formatted as by kubectl. */
  readonly taints: readonly string[];
}

export interface ClusterStatus extends ClusterFacts, LiveFacts, Partial<PendingCounts> {
  readonly trips?: readonly HoldingTrip[];
  readonly policyRevision?: number;
  readonly service?: ServiceClusterView;
  readonly nodes?: number;
  readonly tainted?: number;
  /** Absent: every future deadline is held, or there is none. */
  readonly nextAt?: EpochMs;
  /** Absent: not known. */
  readonly guard?: 'watching' | 'dry-run' | 'off';
  /** Scopes that an operator released, which trip again above `tripsAbove` nodes. Absent: not counted yet. */
  readonly releasedScopes?: readonly { readonly scope: string; readonly tripsAbove?: number }[];
  readonly holds?: readonly Hold[];
}

export function statusOf(seen: Snapshot): FleetStatus {
  const { at, kind, where, process, service, functions, deadLetters, backlog, fleetStop, silence } = seen;
  const clusters = seen.clusters.map((each) => clusterStatus(each, seen));
  const relays = relaysOf(seen.clusters);
  const resumed = clusters.flatMap(({ cluster, error, stop }) =>
    stop || error !== undefined ? [] : [cluster],
  );
  const releases = [...new Set(relays.flatMap(({ version }) => version ?? []))];
  const status = {
    at,
    where,
    versions: {
      cli: VERSION,
      ...defined({ service: service?.version, functions }),
      // The one process is also the relay.
      ...(kind === 'local' || releases.length === 0 ? {} : { relays: releases }),
    },
    relays,
    ...defined({ process }),
    ...(fleetStop && isOn(fleetStop.until, at)
      ? { stop: { ...fleetStop, ...(resumed.length === 0 ? {} : { resumed }) } }
      : {}),
    clusters,
    ...(deadLetters ? { deadLetters: Object.fromEntries(deadLetters) } : {}),
    ...(backlog ? { backlog: Object.fromEntries(backlog) } : {}),
    unknown: [...seen.unknown, ...seen.clusters.flatMap((each) => unreported(each, seen))],
  };
  const issues = issuesOf(status);
  // A process that does not respond is one fact, which its issue tells if there is one.
  const isKnown = issues.some(({ type }) => CONDITIONS[type].check === 'process');
  const others = status.unknown.filter((sentence) => sentence !== silence);
  const unknown = [...(isKnown || silence === undefined ? [] : [silence]), ...others];
  return { ...status, unknown, issues };
}

function relaysOf(clusters: readonly ClusterRead[]): readonly RelayStatus[] {
  const leases = clusters.flatMap((read) => {
    const { lease, renewedAt = 0 } = read;
    return lease ? [{ ...lease, renewedAt, nodes: nodesOf(read) ?? 0 }] : [];
  });
  return [...Map.groupBy(leases, ({ holder }) => holder)]
    .flatMap(([holder, held]): readonly RelayStatus[] => {
      if (holder === undefined) return [];
      const [version] = held.flatMap((lease) => lease.version ?? []);
      return [
        {
          holder,
          ...defined({ version }),
          clusters: held.map(({ cluster }) => cluster),
          nodes: held.reduce((sum, { nodes }) => sum + nodes, 0),
          renewedAt: Math.max(...held.map(({ renewedAt }) => renewedAt)),
        },
      ];
    })
    .sort((a, b) => (a.holder < b.holder ? -1 : 1));
}

const nodesOf = ({ lease, service }: ClusterRead): number | undefined =>
  service?.state === 'live' ? service.nodes : lease?.nodes;

/** Reports whether a lease holder reports the state of a cluster at present. */
const isCurrent = ({ service, lease, renewedAt }: ClusterRead, { process, at }: Snapshot): boolean =>
  service !== undefined ||
  (process !== 'not-running' && lease?.holder !== undefined && isRenewed(renewedAt, at));

const faultsOf = (read: ClusterRead, seen: Snapshot): readonly Fault[] | undefined =>
  isCurrent(read, seen) ? (read.service ?? read.lease)?.faults : undefined;

const progressOf = (read: ClusterRead, seen: Snapshot): readonly ReportedProgress[] =>
  isCurrent(read, seen) && isRenewed(read.renewedAt, seen.at) ? (read.lease?.tripProgress ?? []) : [];

/** Reports whether the lease holder has just acquired the lease, and has not reported the state yet. */
const isNew = (read: ClusterRead, seen: Snapshot): boolean =>
  read.service === undefined && read.lease?.renewals === 0 && isCurrent(read, seen);

/** Returns a sentence about a relay that has not reported yet. */
const unreported = (read: ClusterRead, seen: Snapshot): readonly string[] =>
  read.lease && isCurrent(read, seen) && !faultsOf(read, seen)
    ? [`The state of cluster ${read.cluster} is not known yet: its relay has just acquired the lease.`]
    : [];

function clusterStatus(read: ClusterRead, seen: Snapshot): ClusterStatus {
  const { at } = seen;
  if (read.error !== undefined) return { cluster: read.cluster, error: read.error };
  const { cluster, lease, renewedAt, service, live, tainted, pending, stuck } = read;
  const lastContactAt = service?.lastContactAt ?? lease?.lastContactAt;
  const breakerOpen = (service ?? (isCurrent(read, seen) ? lease : undefined))?.breakerOpen;
  const connection =
    lastContactAt === undefined && isNew(read, seen) ? undefined : connectionOf(read, lastContactAt, seen);
  const late = lateOf(pending, at);
  const [{ eviction, delayMs } = { delayMs: 0 }] = late;
  const delayCause = eviction && (retryOf(eviction, at)?.error ?? eviction.record.blocked?.reason);
  return {
    cluster,
    ...ruledBy(read, at, progressOf(read, seen)),
    ...live,
    ...defined({ holder: lease?.holder, lastContactAt, renewedAt, connection }),
    ...defined({ faults: faultsOf(read, seen), breakerOpen, service, nodes: nodesOf(read) }),
    // Nothing is known of a cluster that no relay has seen yet.
    ...(lastContactAt === undefined && tainted.length === 0
      ? {}
      : { tainted: tainted.length, ...countsOf(pending, at), stuck: stuck.length }),
    delayMs,
    delayed: late.filter((each) => each.delayMs >= LATE_MS).length,
    ...defined({ delayCause, nextAt: nextOf(pending, at) }),
  };
}

function connectionOf(
  read: ClusterRead,
  lastContactAt: EpochMs | undefined,
  seen: Snapshot,
): ConnectionStatus {
  const status = connectionStatusOf(lastContactAt, seen.at);
  if (status !== 'connected') return status;
  if (!isCurrent(read, seen)) return 'stale';
  return isOutOfReach(read.service, read.lease) ? 'disconnected' : status;
}

/** Whether the guard can hold evictions. Trips and releases say what it does at present. */
const guardStateOf = ({ dryRun, cluster, zone, customTaints }: GuardPolicy) =>
  dryRun ? 'dry-run' : cluster || zone || customTaints ? 'watching' : 'off';

/** The evictions that a trip holds, by the taints for which it does. */
function holdingOf(trip: Trip, pending: readonly PendingEviction[]) {
  const held = pending.flatMap(({ node, zone, state, record, gates }) => {
    const pod = { zone, downSince: downSince(state?.taints) };
    const causes = record.causes.filter(({ taint }) => holdsBy(trip, pod, taint.key));
    return causes.length > 0 && gates.some(({ kind }) => kind === 'guard') ? [{ node, causes }] : [];
  });
  const taints = held.flatMap(({ causes }) => causes.map(({ taint }) => taintText(taint)));
  return {
    pods: held.length,
    onNodes: new Set(held.map(({ node }) => node)).size,
    taints: [...new Set(taints)].sort(),
  };
}

function ruledBy(
  { storedRules, pending }: Pick<StoredFacts, 'storedRules' | 'pending'>,
  now: EpochMs,
  progress: readonly ReportedProgress[],
): Partial<ClusterStatus> {
  const { orders, guard } = storedRules;
  const policy = orders.policy?.read ?? DEFAULT_POLICY;
  const stops = stopsInForce(storedRules, now);
  const [stop] = stops;
  const own = stops.filter(({ scope }) => scope === 'cluster');
  const [ownStop] = own;
  return {
    mode: policy.mode,
    policyRevision: orders.policy?.revision ?? 0,
    trips: guard.trips.map((trip) => ({ ...reportOf(trip, progress), ...holdingOf(trip, pending) })),
    releasedScopes: (guard.released ?? []).map((trip) => ({
      scope: scopeText(trip),
      ...('upTo' in trip ? { tripsAbove: trip.upTo } : {}),
    })),
    holds: orders.holds.filter(({ until }) => isOn(until, now)),
    guard: guardStateOf(policy.guard),
    ...defined({ stop }),
    ...(ownStop && ownStop !== stop ? { ownStop } : {}),
    ...(own.length > 1 ? { stops: own.length } : {}),
  };
}

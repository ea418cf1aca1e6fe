import { reportOf, type TripReport } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { isOn, modeOf } from '#shared/eviction/in-force.ts';
import { DEFAULT_POLICY, type Mode } from '#shared/eviction/policy.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import type { ServiceClusterView } from '#shared/operations/fleet/service-view.ts';
import type { Fault } from '#shared/state/fault.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { VERSION } from '#shared/version.ts';
import {
  type ConnectionStatus,
  connectionStatusOf,
  type Issue,
  isRenewed,
  issuesOf,
  latenessOf,
} from './issues.ts';
import type { ClusterLook, Snapshot } from './look.ts';
import { type HoldOutput, holdOutput, type StopOutput, stopOutput } from './output-records.ts';
import { PENDING_STATES, type PendingState, pendingStateOf } from './pending-state.ts';

/** How a fleet does; moments are epoch milliseconds. */
export interface FleetStatus {
  readonly at: EpochMs;
  /** For people: which fleet. */
  readonly where: string;
  readonly versions: {
    readonly cli: string;
    /** Of the `npm start`; absent: none runs, or it is none. */
    readonly service?: string;
    /** Of the functions of a deployment; absent: it is none, or does not say. */
    readonly functions?: string;
    /** Of the relays that say it, each once. */
    readonly relays?: readonly string[];
  };
  /** Who speaks for at least one of the clusters. */
  readonly relays: readonly RelayStatus[];
  /** Whether the one process answers that runs the fleet; absent: there is none. */
  readonly process?: Snapshot['process'];
  /** Of all clusters together. */
  readonly stop?: StopOutput;
  readonly clusters: readonly ClusterStatus[];
  /** How many dead letters there are, by their queue; absent: nobody says, and `unknown` why. */
  readonly deadLetters?: Readonly<Record<string, number>>;
  /** How many messages wait, by queue; likewise. */
  readonly backlog?: Readonly<Record<string, number>>;
  /** What cannot be known, as sentences. */
  readonly unknown: readonly string[];
  /** What does not go on well by itself; the most urgent first. */
  readonly issues: readonly Issue[];
}

export interface RelayStatus {
  /** Its name in leases. */
  readonly holder: string;
  /** Its release; absent: it does not say. */
  readonly version?: string;
  readonly clusters: readonly ClusterName[];
  /** Of these clusters, as far as they are known. */
  readonly nodes: number;
  /** When it last renewed one of their leases. */
  readonly renewedAt: EpochMs;
}

export interface ClusterStatus {
  readonly cluster: ClusterName;
  /** What of it cannot be read; then nothing else is known. */
  readonly error?: string;
  readonly mode?: Mode;
  readonly pausedUntil?: EpochMs;
  readonly policyRevision?: number;
  readonly builtIn?: BuiltIn;
  /** Of its API server. */
  readonly kubernetes?: string;
  /** Who speaks for it; absent: nobody. */
  readonly holder?: string;
  /** When its lease was last renewed. */
  readonly renewedAt?: EpochMs;
  /** What who speaks for it finds wrong with it; absent: that is not known. */
  readonly faults?: readonly Fault[];
  /**
   * Whether the process that speaks for it has stopped asking its API server for some seconds, because that does not answer;
   * absent: nobody says it.
   */
  readonly breakerOpen?: boolean;
  /** When a relay last heard from it. */
  readonly lastContactAt?: EpochMs;
  /** Absent: nobody says it yet. */
  readonly connection?: ConnectionStatus;
  /** As the process says that runs it. */
  readonly service?: ServiceClusterView;
  readonly nodes?: number;
  readonly tainted?: number;
  /** Of the tainted nodes, those where evictions failed and are tried again. */
  readonly retrying?: number;
  readonly pending?: number;
  /** Of the pending: they are due, and something forbids it. */
  readonly held?: number;
  readonly failed?: number;
  /** How many of the pending stand how. */
  readonly states?: Readonly<Record<PendingState, number>>;
  /** Evicted pods that do not leave. */
  readonly stuck?: number;
  /** For how long that is due which is due longest and held by nothing. */
  readonly delayMs?: number;
  readonly nextAt?: EpochMs;
  /** What the guard holds. */
  readonly trips?: readonly TripReport[];
  readonly holds?: readonly HoldOutput[];
  /** Of this cluster alone. */
  readonly stop?: StopOutput;
}

/** How a fleet does by what was seen of it. */
export function statusOf(seen: Snapshot): FleetStatus {
  const { at, kind, where, process, service, functions, deadLetters, backlog, fleetStop } = seen;
  const clusters = seen.clusters.map((each) => clusterStatus(each, seen));
  const relays = relaysOf(seen.clusters);
  const releases = [...new Set(relays.flatMap(({ version }) => version ?? []))];
  const status = {
    at,
    where,
    versions: {
      cli: VERSION,
      ...(service ? { service: service.version } : {}),
      ...(functions === undefined ? {} : { functions }),
      // The one process is its relay, too.
      ...(kind === 'local' || releases.length === 0 ? {} : { relays: releases }),
    },
    relays,
    ...(process === undefined ? {} : { process }),
    ...(fleetStop && isOn(fleetStop.until, at) ? { stop: stopOutput(fleetStop) } : {}),
    clusters,
    ...(deadLetters ? { deadLetters: Object.fromEntries(deadLetters) } : {}),
    ...(backlog ? { backlog: Object.fromEntries(backlog) } : {}),
    unknown: [...seen.unknown, ...seen.clusters.flatMap((each) => unreported(each, seen))],
  };
  const asked = kind === 'context' ? clusters.filter(({ error }) => error !== undefined) : clusters;
  return { ...status, issues: issuesOf({ ...status, clusters: asked }) };
}

/** Who holds the leases of these clusters, by name. */
function relaysOf(clusters: readonly ClusterLook[]): readonly RelayStatus[] {
  const leases = clusters.flatMap((each) => {
    const { lease, renewedAt = 0 } = each;
    return lease ? [{ ...lease, renewedAt, nodes: nodesOf(each) ?? 0 }] : [];
  });
  return [...Map.groupBy(leases, ({ holder }) => holder)]
    .flatMap(([holder, held]): readonly RelayStatus[] => {
      if (holder === undefined) return [];
      const [version] = held.flatMap((lease) => lease.version ?? []);
      return [
        {
          holder,
          ...(version === undefined ? {} : { version }),
          clusters: held.map(({ cluster }) => cluster),
          nodes: held.reduce((sum, { nodes }) => sum + nodes, 0),
          renewedAt: Math.max(...held.map(({ renewedAt }) => renewedAt)),
        },
      ];
    })
    .sort((a, b) => (a.holder < b.holder ? -1 : 1));
}

const nodesOf = ({ lease, service }: ClusterLook): number | undefined =>
  service?.state === 'live' ? service.nodes : lease?.nodes;

/** Whether who speaks for a cluster says how it does, as of now. */
const isCurrent = ({ service, lease, renewedAt }: ClusterLook, { process, at }: Snapshot): boolean =>
  service !== undefined ||
  (process !== 'not-running' && lease?.holder !== undefined && isRenewed(renewedAt, at));

const faultsOf = (each: ClusterLook, seen: Snapshot): readonly Fault[] | undefined =>
  isCurrent(each, seen) ? (each.service ?? each.lease)?.faults : undefined;

/** Whether who speaks for it has just taken its lease, and is about to say how it does. */
const isNew = (each: ClusterLook, seen: Snapshot): boolean =>
  each.service === undefined && each.lease?.renewals === 0 && isCurrent(each, seen);

/** That its relay does not say yet how it does, or says nothing of faults, as older releases do. */
function unreported(each: ClusterLook, seen: Snapshot): readonly string[] {
  const { cluster, lease } = each;
  if (isNew(each, seen))
    return [`The state of cluster ${cluster} is not known yet: its relay has just acquired the lease.`];
  if (!lease || !isCurrent(each, seen) || faultsOf(each, seen)) return [];
  const release = lease.version ?? 'unknown';
  return [`Faults of cluster ${cluster} are unknown: its relay (release ${release}) does not report them.`];
}

function clusterStatus(each: ClusterLook, seen: Snapshot): ClusterStatus {
  const { at } = seen;
  const { cluster, error, storedRules, lease, renewedAt, service, live, tainted, pending, stuck } = each;
  if (error !== undefined) return { cluster, error };
  if (!storedRules || !tainted || !stuck) return { cluster, ...live };
  const heardAt = service?.heardAt ?? lease?.heardAt;
  const breakerOpen = (service ?? (isCurrent(each, seen) ? lease : undefined))?.breakerOpen;
  const nodes = nodesOf(each);
  const connectionState =
    heardAt === undefined && isNew(each, seen) ? undefined : connectionStatusOf(heardAt, at);
  const faults = faultsOf(each, seen);
  const records = pending.map(({ record }) => record);
  const standings = Object.fromEntries(PENDING_STATES.map((standing) => [standing, 0])) as Record<
    PendingState,
    number
  >;
  for (const look of pending) standings[pendingStateOf(look, storedRules, at).state]++;
  const next = records.map(({ fireAt }) => fireAt).find((fireAt) => fireAt > at);
  return {
    cluster,
    ...ruledBy(storedRules, at),
    ...live,
    ...(lease?.holder === undefined ? {} : { holder: lease.holder }),
    ...(heardAt === undefined ? {} : { lastContactAt: heardAt }),
    ...(renewedAt === undefined ? {} : { renewedAt }),
    ...(connectionState
      ? { connection: connectionState === 'connected' && !isCurrent(each, seen) ? 'stale' : connectionState }
      : {}),
    ...(faults ? { faults } : {}),
    ...(breakerOpen === undefined ? {} : { breakerOpen }),
    ...(service ? { service } : {}),
    ...(nodes === undefined ? {} : { nodes }),
    tainted: tainted.length,
    retrying: tainted.filter(({ state }) => state.retry).length,
    pending: records.length,
    held: records.filter(({ held, gaveUpAt }) => held && gaveUpAt === undefined).length,
    failed: standings['failed'],
    states: standings,
    stuck: stuck.length,
    delayMs: latenessOf(pending, at),
    ...(next === undefined ? {} : { nextAt: next }),
  };
}

function ruledBy({ orders, guard }: StoredRules, now: EpochMs): Partial<ClusterStatus> {
  const policy = orders.policy?.read ?? DEFAULT_POLICY;
  const { pausedUntil } = policy;
  return {
    mode: modeOf(policy, now),
    ...(pausedUntil !== undefined && isOn(pausedUntil, now) ? { pausedUntil } : {}),
    policyRevision: orders.policy?.revision ?? 0,
    trips: guard.trips.map(reportOf),
    holds: orders.holds.filter(({ until }) => isOn(until, now)).map(holdOutput),
    ...(orders.stop && isOn(orders.stop.until, now) ? { stop: stopOutput(orders.stop) } : {}),
  };
}

import pMap from 'p-map';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Stop } from '#shared/eviction/policy.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import { textOf } from '#shared/kubernetes/http/api-json.ts';
import { unlessDenied } from '#shared/kubernetes/permissions.ts';
import type { ServiceClusterView, ServiceView } from '#shared/operations/fleet/service-view.ts';
import { isSameLease, LEASE_TTL_MS, type LeaseRecord } from '#shared/state/lease.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { TaintedNode } from '#shared/state/store.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import type { Clusters, Fleet } from '../fleet/fleet.ts';
import { type LiveCluster, withCluster } from '../fleet/live-cluster.ts';
import { builtInOf } from './built-in.ts';
import { type PendingEviction, pendingOn } from './pending.ts';
import { type Zones, zonesOf } from './zones.ts';

const PARALLEL_CLUSTERS = 8;
/** Timeout for the state of a cluster's built-in controller. */
const LIVE_MS = 5_000;

/** Maximum time between lease renewals of a live holder: three seconds and the time of the write. */
const RENEWED_WITHIN_MS = 4_000;

/** The state of a fleet at one time, without conclusions. */
export interface Snapshot {
  readonly at: EpochMs;
  readonly kind: Fleet['kind'];
  readonly where: string;
  /** `not-responding`: it runs but doesn't respond. Absent: the fleet has relays instead. */
  readonly process?: 'responding' | 'not-responding' | 'not-running';
  readonly service?: ServiceView;
  /** Why the process does not respond. */
  readonly silence?: string;
  /** Release of a deployment's functions. */
  readonly functions?: string;
  /** Number of waiting messages and of dead letters, by queue. Absent: not known. */
  readonly backlog?: ReadonlyMap<string, number>;
  readonly deadLetters?: ReadonlyMap<string, number>;
  readonly fleetStop?: Stop;
  readonly clusters: readonly ClusterRead[];
  /** Facts that could not be read, as sentences. */
  readonly unknown: readonly string[];
}

export type ClusterRead = StoredRead & {
  readonly service?: ServiceClusterView;
  readonly live: LiveFacts;
};

export interface StoredFacts extends LeaseSeen {
  readonly storedRules: StoredRules;
  readonly tainted: readonly TaintedNode[];
  readonly zones?: Zones;
  /** Earliest deadline first. */
  readonly pending: readonly PendingEviction[];
  readonly stuck: readonly StuckPod[];
}

interface LeaseSeen {
  readonly lease?: LeaseRecord;
  /** Time at which its holder acquired or last renewed the lease, by the caller's clock. */
  readonly renewedAt?: EpochMs;
}

/** The stored state of a cluster, or the error of the read. */
type StoredRead = { readonly cluster: ClusterName } & (
  | (StoredFacts & { readonly error?: undefined })
  | ({ readonly error: string } & { readonly [Fact in keyof StoredFacts]?: undefined })
);

/** Facts that only the cluster has. */
export interface LiveFacts {
  readonly builtIn?: BuiltIn;
  /** Version of its API server. */
  readonly kubernetes?: string;
}

/** The parts of a fleet that every look reads. */
export type ViewedFleet = Pick<
  Fleet,
  'kind' | 'where' | 'rulesStore' | 'store' | 'leases' | 'clusters' | 'cluster' | 'service'
>;

export interface ReadDeps {
  readonly clock: Clock;
  readonly progress?: (text: string) => void;
  /** The previous snapshot. A lease that changed since then is held, whatever the clocks show. */
  readonly before?: Snapshot | undefined;
  /** Present: the nodes and their pending evictions are not read. */
  readonly isWithoutNodes?: true;
}

/** A cluster that cannot be read doesn't affect the others. */
export async function readClusters(
  fleet: Fleet,
  clusters: readonly ClusterName[],
  deps: ReadDeps,
): Promise<Snapshot> {
  const { unknown, orUnknown } = asking();
  const [functions, queues, seen] = await Promise.all([
    fleet.account && orUnknown(fleet.account.release()),
    queuesOf(fleet),
    view(fleet, clusters, (cluster) => liveFacts(fleet, cluster), deps),
  ]);
  return withQueues({ ...seen, ...defined({ functions }), unknown: [...unknown, ...seen.unknown] }, queues);
}

/** Reads the numbers of messages. Those that can't be read are absent. */
export async function queuesOf({ deadLetters, backlog }: Pick<Fleet, 'deadLetters' | 'backlog'>) {
  const { unknown, orUnknown } = asking();
  const count = deadLetters ? orUnknown(deadLetters.count()) : new Map<string, number>();
  const [letters, waiting] = await Promise.all([count, orUnknown(backlog())]);
  return { ...defined({ deadLetters: letters, backlog: waiting }), unknown };
}

export type QueueCounts = Awaited<ReturnType<typeof queuesOf>>;

export const withQueues = (seen: Snapshot, { unknown, ...counts }: QueueCounts): Snapshot => ({
  ...seen,
  ...counts,
  unknown: [...new Set([...unknown, ...seen.unknown])],
});

/** Does the same as {@link readClusters}, without the requests that cost money: to queues and the AWS account. */
export async function view(
  fleet: ViewedFleet,
  clusters: readonly ClusterName[],
  live: (cluster: ClusterName) => LiveFacts | Promise<LiveFacts>,
  deps: ReadDeps,
): Promise<Snapshot> {
  const { clock, progress = () => undefined } = deps;
  // Take the time first, so that a slow response doesn't make other facts look older.
  const at = clock.now();
  const { unknown, orUnknown } = asking();
  let silence: string | undefined;
  const answer = fleet.service().catch((error: unknown) => {
    silence = errorMessage(error);
    return undefined;
  });
  const [service, fleetStop] = await Promise.all([answer, orUnknown(fleet.rulesStore.fleetStop())]);
  const process = silence !== undefined ? 'not-responding' : service ? 'responding' : 'not-running';
  let done = 0;
  const found = await pMap(
    clusters,
    async (cluster) => {
      const [read, facts] = await Promise.all([readCluster(fleet, cluster, deps), live(cluster)]);
      done += 1;
      progress(`Clusters asked: ${done} of ${clusters.length}`);
      const view = service?.clusters[cluster];
      return { ...read, live: facts, ...defined({ service: view }) };
    },
    { concurrency: PARALLEL_CLUSTERS },
  );
  return {
    at,
    kind: fleet.kind,
    where: fleet.where,
    clusters: found,
    unknown,
    ...(fleet.kind === 'local' ? { process } : {}),
    ...defined({ service, fleetStop, silence }),
  };
}

/** Collects the errors of requests that may fail independently. */
function asking() {
  const unknown: string[] = [];
  const orUnknown = <T>(ask: Promise<T>): Promise<T | undefined> =>
    ask.catch((error: unknown) => {
      unknown.push(errorMessage(error));
      return undefined;
    });
  return { unknown, orUnknown };
}

async function readCluster(fleet: ViewedFleet, cluster: ClusterName, deps: ReadDeps): Promise<StoredRead> {
  try {
    const [storedRules, lease, stuck, tainted] = await Promise.all([
      fleet.rulesStore.read(cluster),
      leaseOf(fleet, cluster, deps),
      fleet.leases.stuck(cluster),
      deps.isWithoutNodes ? [] : Array.fromAsync(fleet.store.taintedNodes(cluster)),
    ]);
    const now = deps.clock.now();
    const before = deps.before?.clusters.find((each) => each.cluster === cluster)?.zones;
    const zones = tainted.length === 0 ? undefined : await zonesOf(fleet, cluster, storedRules, now, before);
    const pending = await pendingOn(fleet.store, cluster, tainted, [storedRules, zones], now);
    return { cluster, storedRules, ...lease, stuck, tainted, ...defined({ zones }), pending };
  } catch (error) {
    return { cluster, error: errorMessage(error) };
  }
}

/** Reads a lease. A lease that seems expired is read twice, because its holder's clock may be behind. */
async function leaseOf(
  { kind, leases }: ViewedFleet,
  cluster: ClusterName,
  { clock, before }: ReadDeps,
): Promise<LeaseSeen> {
  const lease = await leases.read(cluster);
  if (!lease) return {};
  const seen = before?.clusters.find((each) => each.cluster === cluster);
  if (seen?.renewedAt !== undefined && isSameLease(seen.lease, lease))
    return { lease, renewedAt: seen.renewedAt };
  const now = clock.now();
  const renewedAt = Math.min(lease.renewedAt, now);
  const isOld = lease.holder !== undefined && now - renewedAt > LEASE_TTL_MS;
  if (!isOld || kind === 'local') return { lease, renewedAt };
  if (seen?.lease) return { lease, renewedAt: now };
  await pause(RENEWED_WITHIN_MS);
  const again = await leases.read(cluster);
  return !again || isSameLease(lease, again)
    ? { lease, renewedAt }
    : { lease: again, renewedAt: clock.now() };
}

async function liveFacts(fleet: Clusters, cluster: ClusterName): Promise<LiveFacts> {
  const unknown = (evidence: string) => ({ builtIn: { state: 'unknown', evidence } as const });
  const facts = async ({ objects }: LiveCluster) => {
    const version = textOf((await unlessDenied(objects.get('/version')))?.['gitVersion']);
    return { builtIn: await builtInOf(objects), ...(version === '' ? {} : { kubernetes: version }) };
  };
  return withCluster(fleet, cluster, async (live) => {
    const found = facts(live);
    if (await endsWithin(LIVE_MS, found)) return found;
    return unknown(`no response within ${durationText(LIVE_MS)}`);
  }).catch((error: unknown) => unknown(errorMessage(error)));
}

import pMap from 'p-map';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Stop } from '#shared/eviction/policy.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import { fieldsOf, itemsOf } from '#shared/kubernetes/http/api-json.ts';
import type { ServiceClusterView, ServiceView } from '#shared/operations/fleet/service-view.ts';
import { isSameLease, LEASE_TTL_MS, type LeaseRecord } from '#shared/state/lease.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { TaintedNode } from '#shared/state/store.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import type { Clusters, ContextFleet, Fleet } from '../fleet/fleet.ts';
import { builtInOf } from './built-in.ts';
import { type PendingLook, pendingOn } from './pending.ts';

/** Clusters that are read at a time. */
const PARALLEL_CLUSTERS = 8;
/** A cluster that does not say by then whether its built-in controller runs is not waited for. */
const LIVE_MS = 5_000;

/** Who lives renews a lease within this, three seconds and the time to write it. */
const RENEWED_WITHIN_MS = 4_000;

/** What is known of a fleet at one moment, and nothing that is concluded from it. */
export interface Snapshot {
  readonly at: EpochMs;
  readonly kind: Fleet['kind'] | ContextFleet['kind'];
  /** For people: which fleet. */
  readonly where: string;
  /** Whether the one process answers that runs this fleet; `silent`: it lives, and does not. Absent: there is none, as there are relays. */
  readonly process?: 'responding' | 'not-responding' | 'not-running';
  /** What it says of itself. */
  readonly service?: ServiceView;
  /** The release of a deployment's functions. */
  readonly functions?: string;
  /** How many messages wait, by queue, and how many dead letters there are; absent: nobody says. */
  readonly backlog?: ReadonlyMap<string, number>;
  readonly deadLetters?: ReadonlyMap<string, number>;
  readonly fleetStop?: Stop;
  readonly clusters: readonly ClusterLook[];
  /** What could not be found out, as sentences. */
  readonly unknown: readonly string[];
}

/** What is known of one cluster. */
export interface ClusterLook {
  readonly cluster: ClusterName;
  /** What could not be read of it; then the rest may be missing. */
  readonly error?: string;
  readonly storedRules?: StoredRules;
  readonly lease?: LeaseRecord;
  /** When its holder took or last renewed that, by the clock of who looks. */
  readonly renewedAt?: EpochMs;
  /** As the process says that runs it. */
  readonly service?: ServiceClusterView;
  /** As it says itself. */
  readonly live: LiveFacts;
  readonly tainted?: readonly TaintedNode[];
  /** What is to be evicted, the first to go first. */
  readonly pending: readonly PendingLook[];
  readonly stuck?: readonly StuckPod[];
}

/** What only a cluster itself can say. */
export interface LiveFacts {
  readonly builtIn?: BuiltIn;
  /** Of its API server. */
  readonly kubernetes?: string;
  readonly nodes?: number;
  readonly tainted?: number;
}

/** Of a fleet, what is looked at each time. */
export type ViewedFleet = Pick<
  Fleet,
  'kind' | 'where' | 'rulesStore' | 'store' | 'leases' | 'clusters' | 'service'
>;

export interface LookDeps {
  readonly clock: Clock;
  readonly progress?: (text?: string) => void;
  /** What was seen before: a lease that has changed since is alive, whatever clocks say. */
  readonly before?: Snapshot | undefined;
}

/** All that is known of a fleet and of these clusters. What cannot be found out of one keeps nothing of the others back. */
export async function look(
  fleet: Fleet | ContextFleet,
  clusters: readonly ClusterName[],
  deps: LookDeps,
): Promise<Snapshot> {
  if (fleet.kind === 'context') return lookAtContext(fleet, clusters, deps);
  const { unknown, orUnknown } = asking();
  const [functions, deadLetters, backlog, seen] = await Promise.all([
    fleet.account && orUnknown(fleet.account.release()),
    orUnknown(fleet.deadLetters.count()),
    orUnknown(fleet.backlog()),
    view(fleet, clusters, (cluster) => liveFacts(fleet, cluster), deps),
  ]);
  return {
    ...seen,
    ...(functions === undefined ? {} : { functions }),
    ...(deadLetters ? { deadLetters } : {}),
    ...(backlog ? { backlog } : {}),
    unknown: [...new Set([...unknown, ...seen.unknown])],
  };
}

/** As {@link look}, without what is paid for by question: queues, and the account they are in. */
export async function view(
  fleet: ViewedFleet,
  clusters: readonly ClusterName[],
  live: (cluster: ClusterName) => LiveFacts | Promise<LiveFacts>,
  deps: LookDeps,
): Promise<Snapshot> {
  const { clock, progress = () => undefined } = deps;
  // What is slow to answer makes nothing else old.
  const at = clock.now();
  const { unknown, orUnknown } = asking();
  let silent = false;
  const asked = fleet.service().catch((error: unknown) => {
    silent = true;
    throw error;
  });
  const [service, fleetStop] = await Promise.all([orUnknown(asked), orUnknown(fleet.rulesStore.fleetStop())]);
  const process = silent ? 'not-responding' : service ? 'responding' : 'not-running';
  let done = 0;
  const found = await pMap(
    clusters,
    async (cluster) => {
      const [read, facts] = await Promise.all([readCluster(fleet, cluster, deps), live(cluster)]);
      done += 1;
      progress(`Clusters asked: ${done} of ${clusters.length}`);
      const said = service?.clusters[cluster];
      return { ...read, live: facts, ...(said ? { service: said } : {}) };
    },
    { concurrency: PARALLEL_CLUSTERS },
  );
  progress();
  return {
    ...{ at, kind: fleet.kind, where: fleet.where, clusters: found, unknown },
    ...(fleet.kind === 'local' ? { process } : {}),
    ...(service ? { service } : {}),
    ...(fleetStop ? { fleetStop } : {}),
  };
}

/** Questions of which each may fail, and why those did. */
function asking() {
  const unknown: string[] = [];
  const orUnknown = <T>(ask: Promise<T>): Promise<T | undefined> =>
    ask.catch((error: unknown) => {
      unknown.push(errorMessage(error));
      return undefined;
    });
  return { unknown, orUnknown };
}

async function readCluster(
  fleet: ViewedFleet,
  cluster: ClusterName,
  deps: LookDeps,
): Promise<Omit<ClusterLook, 'live' | 'service'>> {
  try {
    const [storedRules, lease, stuck, tainted] = await Promise.all([
      fleet.rulesStore.read(cluster),
      leaseOf(fleet, cluster, deps),
      fleet.leases.stuck(cluster),
      Array.fromAsync(fleet.store.taintedNodes(cluster)),
    ]);
    const pending = await pendingOn(fleet.store, cluster, tainted, storedRules, deps.clock.now());
    return { cluster, storedRules, ...lease, stuck, tainted, pending };
  } catch (error) {
    return { cluster, error: errorMessage(error), pending: [] };
  }
}

/** One that seems to be old is looked at twice: the clock of its holder may be behind. */
async function leaseOf(
  { kind, leases }: ViewedFleet,
  cluster: ClusterName,
  { clock, before }: LookDeps,
): Promise<Pick<ClusterLook, 'lease' | 'renewedAt'>> {
  const lease = await leases.look(cluster);
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
  const again = await leases.look(cluster);
  return !again || isSameLease(lease, again)
    ? { lease, renewedAt }
    : { lease: again, renewedAt: clock.now() };
}

/** What only the cluster itself can say; it is not waited for for long. */
async function liveFacts(fleet: Clusters, cluster: ClusterName): Promise<LiveFacts> {
  const unknown = (evidence: string) => ({ builtIn: { state: 'unknown', evidence } as const });
  let live: Awaited<ReturnType<Fleet['cluster']>>;
  try {
    live = await fleet.cluster(cluster);
  } catch (error) {
    return unknown(errorMessage(error));
  }
  const { objects } = live;
  const over = new AbortController();
  const late = pause(LIVE_MS, over.signal).then(() => unknown(`no response within ${LIVE_MS / 1000} s`));
  const facts = async () => {
    try {
      const version = await objects.get('/version');
      return { builtIn: await builtInOf(objects), kubernetes: String(version?.['gitVersion'] ?? '') };
    } catch (error) {
      return unknown(errorMessage(error));
    }
  };
  try {
    return await Promise.race([facts(), late]);
  } finally {
    over.abort();
    live.close();
  }
}

/** Of clusters of which nothing is known but what they say themselves. */
async function lookAtContext(
  fleet: ContextFleet,
  clusters: readonly ClusterName[],
  { clock }: LookDeps,
): Promise<Snapshot> {
  const found = await pMap(clusters, (cluster) => askContext(fleet, cluster));
  const only =
    'Only the cluster was read. Pending evictions and rules are in the table or the state directory of the service.';
  return { at: clock.now(), kind: fleet.kind, where: fleet.where, clusters: found, unknown: [only] };
}

async function askContext(fleet: ContextFleet, cluster: ClusterName): Promise<ClusterLook> {
  const live = await fleet.cluster(cluster);
  try {
    const { objects } = live;
    const version = await objects.get('/version');
    const nodes = await Array.fromAsync(objects.list('/api/v1/nodes'), ({ spec }) =>
      itemsOf(fieldsOf(spec)['taints']).map(fieldsOf),
    );
    const facts = {
      builtIn: await builtInOf(objects),
      kubernetes: String(version?.['gitVersion'] ?? ''),
      nodes: nodes.length,
      tainted: nodes.filter((taints) => taints.some(({ effect }) => effect === 'NoExecute')).length,
    };
    return { cluster, live: facts, pending: [] };
  } catch (error) {
    return { cluster, error: errorMessage(error), live: {}, pending: [] };
  } finally {
    live.close();
  }
}

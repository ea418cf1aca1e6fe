import pMap from 'p-map';
import type { ServiceClusterView, ServiceView } from '#functions/local/service-view.ts';
import type { LeaseRecord } from '#shared/clusters/lease.ts';
import type { Rulings } from '#shared/clusters/rulebook.ts';
import { errorMessage } from '#shared/error-message.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { isOn, modeOf } from '#shared/eviction/in-force.ts';
import { DEFAULT_POLICY, type Mode, type Stop, type Trip } from '#shared/eviction/policy.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import { fieldsOf, itemsOf } from '#shared/kubernetes/api-json.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { VERSION } from '#shared/version.ts';
import { builtInOf } from './built-in.ts';
import type { ContextFleet, Fleet } from './fleet.ts';
import { latenessOf, type Need, needsOf } from './needs.ts';
import { pendingOn } from './pending.ts';

/** Clusters that are asked at a time. */
const PARALLEL_CLUSTERS = 8;
/** A cluster that does not say by then whether its built-in controller runs is not waited for. */
const LIVE_MS = 5_000;

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
  /** Of all clusters together. */
  readonly stop?: Stop;
  readonly clusters: readonly ClusterStatus[];
  /** How many dead letters there are, by their queue; absent: nobody says, and `unknown` why. */
  readonly deadLetters?: Readonly<Record<string, number>>;
  /** How many messages wait, by queue; likewise. */
  readonly backlog?: Readonly<Record<string, number>>;
  /** What cannot be known, as sentences. */
  readonly unknown: readonly string[];
  /** What does not go on well by itself; the most urgent first. */
  readonly needs: readonly Need[];
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
  /**
   * Whether the process that speaks for it has stopped asking its API server for some seconds, because that does not answer;
   * absent: nobody says it.
   */
  readonly breakerOpen?: boolean;
  /** When a relay last heard from it. */
  readonly heardAt?: EpochMs;
  /** How long ago that was, in milliseconds. */
  readonly lagMs?: number;
  /** As the process says that runs it. */
  readonly service?: ServiceClusterView;
  readonly nodes?: number;
  readonly tainted?: number;
  /** Of the tainted nodes, those where evictions failed and are tried again. */
  readonly retrying?: number;
  readonly pending?: number;
  /** Of the pending: they are due, and something forbids it. */
  readonly held?: number;
  readonly gaveUp?: number;
  /** Evicted pods that do not leave. */
  readonly stuck?: number;
  /** For how long that is due which is due longest and held by nothing. */
  readonly lateMs?: number;
  readonly nextAt?: EpochMs;
  readonly trips?: readonly Trip[];
  /** Of this cluster alone. */
  readonly stop?: Stop;
}

export interface StatusDeps {
  readonly clock: Clock;
  readonly progress: (text?: string) => void;
}

/**
 * How these clusters do. What cannot be known of one is said of it, and keeps nothing of the others back. Of a context alone
 * that is what its API server says.
 */
export async function statusOf(
  fleet: Fleet | ContextFleet,
  clusters: readonly ClusterName[],
  deps: StatusDeps,
): Promise<FleetStatus> {
  if (fleet.kind === 'context') return contextStatus(fleet, clusters, deps);
  const { clock, progress } = deps;
  const unknown: string[] = [];
  const orUnknown = async <T>(ask: Promise<T>): Promise<T | undefined> => {
    try {
      return await ask;
    } catch (error) {
      unknown.push(errorMessage(error));
      return undefined;
    }
  };
  const [service, functions, deadLetters, backlog, stop] = await Promise.all([
    orUnknown(fleet.service()),
    fleet.account && orUnknown(fleet.account.release()),
    orUnknown(fleet.deadLetters.count()),
    orUnknown(fleet.backlog()),
    orUnknown(fleet.rulebook.fleetStop()),
  ]);
  let done = 0;
  const found = await pMap(
    clusters,
    async (cluster) => {
      const status = await clusterStatus(fleet, cluster, service, clock);
      done += 1;
      progress(`Clusters asked: ${done} of ${clusters.length}`);
      return status;
    },
    { concurrency: PARALLEL_CLUSTERS },
  );
  progress();
  const at = clock.now();
  const runs: readonly string[] =
    fleet.kind === 'local' && !service ? ['No npm start runs on this state directory now.'] : [];
  const relays = relaysOf(
    found.flatMap(({ lease, status: { nodes = 0 } }) => (lease ? [{ ...lease, nodes }] : [])),
  );
  const releases = [...new Set(relays.flatMap(({ version }) => version ?? []))];
  const status = {
    at,
    where: fleet.where,
    versions: {
      cli: VERSION,
      ...(service ? { service: service.version } : {}),
      ...(functions === undefined ? {} : { functions }),
      // The one process is its relay, too.
      ...(fleet.kind === 'local' || releases.length === 0 ? {} : { relays: releases }),
    },
    relays,
    ...(stop && isOn(stop.until, at) ? { stop } : {}),
    clusters: found.map(({ status: each }) => each),
    ...(deadLetters ? { deadLetters: Object.fromEntries(deadLetters) } : {}),
    ...(backlog ? { backlog: Object.fromEntries(backlog) } : {}),
    unknown: [...runs, ...new Set(unknown)],
  };
  return { ...status, needs: needsOf(status) };
}

/** Who holds these leases, by name. */
function relaysOf(leases: readonly (LeaseRecord & { readonly nodes: number })[]): readonly RelayStatus[] {
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

/** Of clusters of which nothing is known but what they say themselves. */
async function contextStatus(
  fleet: ContextFleet,
  clusters: readonly ClusterName[],
  { clock }: StatusDeps,
): Promise<FleetStatus> {
  const found = await pMap(clusters, (cluster) => contextClusterStatus(fleet, cluster));
  const at = clock.now();
  return {
    at,
    where: fleet.where,
    versions: { cli: VERSION },
    relays: [],
    clusters: found,
    unknown: [
      'Only the cluster was asked: what a service knows of it is in its table, or in its state directory.',
    ],
    needs: needsOf({ at, clusters: found.filter(({ error }) => error !== undefined) }),
  };
}

async function contextClusterStatus(fleet: ContextFleet, cluster: ClusterName): Promise<ClusterStatus> {
  const live = await fleet.cluster(cluster);
  try {
    const { objects } = live;
    const version = await objects.get('/version');
    const nodes = await Array.fromAsync(objects.list('/api/v1/nodes'), ({ spec }) =>
      itemsOf(fieldsOf(spec)['taints']).map(fieldsOf),
    );
    return {
      cluster,
      builtIn: await builtInOf(objects),
      kubernetes: String(version?.['gitVersion'] ?? ''),
      nodes: nodes.length,
      tainted: nodes.filter((taints) => taints.some(({ effect }) => effect === 'NoExecute')).length,
    };
  } catch (error) {
    return { cluster, error: errorMessage(error) };
  } finally {
    live.close();
  }
}

async function clusterStatus(
  fleet: Fleet,
  cluster: ClusterName,
  service: ServiceView | undefined,
  clock: Clock,
): Promise<{ readonly status: ClusterStatus; readonly lease?: LeaseRecord | undefined }> {
  try {
    const [rulings, lease, stuck, { tainted, pending }, live] = await Promise.all([
      fleet.rulebook.read(cluster),
      fleet.leases.look(cluster),
      fleet.leases.stuck(cluster),
      waiting(fleet, cluster, clock),
      liveFacts(fleet, cluster),
    ]);
    const now = clock.now();
    const view = service?.clusters[cluster];
    const heardAt = view?.heardAt ?? lease?.heardAt;
    const breakerOpen = view?.breakerOpen ?? lease?.breakerOpen;
    const records = pending.map(({ record }) => record);
    const states = new Map(tainted.map(({ node, state }) => [node, state]));
    const next = records.map(({ fireAt }) => fireAt).find((fireAt) => fireAt > now);
    const nodes = view?.state === 'live' ? view.nodes : lease?.nodes;
    const status = {
      cluster,
      ...rulesOf(rulings, now),
      ...live,
      ...(lease?.holder === undefined ? {} : { holder: lease.holder }),
      ...(heardAt === undefined ? {} : { heardAt, lagMs: Math.max(0, now - heardAt) }),
      ...(breakerOpen === undefined ? {} : { breakerOpen }),
      ...(view ? { service: view } : {}),
      ...(nodes === undefined ? {} : { nodes }),
      tainted: tainted.length,
      retrying: tainted.filter(({ state }) => state.retry).length,
      pending: records.length,
      held: records.filter(({ held, gaveUpAt }) => held && gaveUpAt === undefined).length,
      gaveUp: records.filter(({ gaveUpAt }) => gaveUpAt !== undefined).length,
      stuck: stuck.length,
      lateMs: latenessOf(
        pending.map(({ node, record }) => ({ record, state: states.get(node) })),
        now,
      ),
      ...(next === undefined ? {} : { nextAt: next }),
    };
    return { status, lease };
  } catch (error) {
    return { status: { cluster, error: errorMessage(error) } };
  }
}

/** What is to be evicted, and the nodes that have it. */
async function waiting({ store }: Fleet, cluster: ClusterName, clock: Clock) {
  const tainted = await Array.fromAsync(store.taintedNodes(cluster));
  return { tainted, pending: await pendingOn(tainted, store, cluster, clock.now()) };
}

function rulesOf({ orders, guard }: Rulings, now: EpochMs): Partial<ClusterStatus> {
  const policy = orders.policy?.read ?? DEFAULT_POLICY;
  const { pausedUntil } = policy;
  return {
    mode: modeOf(policy, now),
    ...(pausedUntil !== undefined && isOn(pausedUntil, now) ? { pausedUntil } : {}),
    policyRevision: orders.policy?.revision ?? 0,
    trips: guard.trips,
    ...(orders.stop && isOn(orders.stop.until, now) ? { stop: orders.stop } : {}),
  };
}

/** What only the cluster itself can say; it is not waited for for long. */
async function liveFacts(
  fleet: Fleet,
  cluster: ClusterName,
): Promise<Pick<ClusterStatus, 'builtIn' | 'kubernetes'>> {
  const unknown = (evidence: string) => ({ builtIn: { state: 'unknown', evidence } as const });
  let live: Awaited<ReturnType<Fleet['cluster']>>;
  try {
    live = await fleet.cluster(cluster);
  } catch (error) {
    return unknown(errorMessage(error));
  }
  const { objects } = live;
  const over = new AbortController();
  const late = pause(LIVE_MS, over.signal).then(() =>
    unknown(`it did not answer within ${LIVE_MS / 1000} s`),
  );
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

import pMap from 'p-map';
import type { ServiceClusterView, ServiceView } from '#functions/local/service-view.ts';
import type { Rulings } from '#shared/clusters/rulebook.ts';
import { tripText } from '#shared/eviction/guard.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Mode, type Stop, type Trip } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { VERSION } from '#shared/version.ts';
import { type BuiltIn, builtInOf } from './built-in.ts';
import type { Fleet } from './fleet.ts';
import { pendingOf } from './pending.ts';

/** Clusters that are asked at a time. */
const PARALLEL_CLUSTERS = 8;
/** A cluster that does not say by then whether its built-in controller runs is not waited for. */
const LIVE_MS = 5_000;
/** A cluster in which nothing happens is heard once a minute: what was not heard of for so long is not heard. */
export const DEAF_MS = 2 * 60_000;
/** What is due for longer, and held by nothing, is late. */
const LATE_MS = 60_000;

/** How a fleet does; moments are epoch milliseconds. */
export interface FleetStatus {
  readonly at: EpochMs;
  /** For people: which fleet. */
  readonly where: string;
  readonly versions: {
    readonly cli: string;
    /** Of the `npm start`; absent: none runs, or it is a deployment, which does not say. */
    readonly service?: string;
  };
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

/** Something that needs somebody. */
export interface Need {
  readonly kind:
    | 'unreadable'
    | 'refused'
    | 'guard-tripped'
    | 'deaf'
    | 'late'
    | 'given-up'
    | 'dead-letters'
    | 'stuck'
    | 'stopped';
  /** Absent: the fleet. */
  readonly cluster?: ClusterName;
  /** A sentence that says what to do. */
  readonly text: string;
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
  /** When a relay last heard from it. */
  readonly heardAt?: EpochMs;
  /** How long ago that was, in milliseconds. */
  readonly lagMs?: number;
  /** As the process says that runs it. */
  readonly service?: ServiceClusterView;
  readonly nodes?: number;
  readonly tainted?: number;
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

/** How these clusters do. What cannot be known of one is said of it, and keeps nothing of the others back. */
export async function statusOf(
  fleet: Fleet,
  clusters: readonly ClusterName[],
  { clock, progress }: StatusDeps,
): Promise<FleetStatus> {
  const unknown: string[] = [];
  const orUnknown = async <T>(ask: Promise<T>): Promise<T | undefined> => {
    try {
      return await ask;
    } catch (error) {
      unknown.push(messageOf(error));
      return undefined;
    }
  };
  const [service, deadLetters, backlog, stop] = await Promise.all([
    orUnknown(fleet.service()),
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
  const status = {
    at,
    where: fleet.where,
    versions: { cli: VERSION, ...(service ? { service: service.version } : {}) },
    ...(stop && isOn(stop, at) ? { stop } : {}),
    clusters: found,
    ...(deadLetters ? { deadLetters: Object.fromEntries(deadLetters) } : {}),
    ...(backlog ? { backlog: Object.fromEntries(backlog) } : {}),
    unknown: [...runs, ...new Set(unknown)],
  };
  return { ...status, needs: needsOf(status) };
}

async function clusterStatus(
  fleet: Fleet,
  cluster: ClusterName,
  service: ServiceView | undefined,
  clock: Clock,
): Promise<ClusterStatus> {
  try {
    const [rulings, lease, stuck, pending, live] = await Promise.all([
      fleet.rulebook.read(cluster),
      fleet.leases.look(cluster),
      fleet.leases.stuck(cluster),
      pendingOf(fleet.store, cluster, clock.now()),
      liveFacts(fleet, cluster),
    ]);
    const tainted = await Array.fromAsync(fleet.store.taintedNodes(cluster));
    const now = clock.now();
    const view = service?.clusters[cluster];
    const heardAt = view?.heardAt ?? lease?.heardAt;
    const records = pending.map(({ record }) => record);
    const next = records.map(({ fireAt }) => fireAt).find((fireAt) => fireAt > now);
    const nodes = view?.state === 'live' ? view.nodes : lease?.nodes;
    return {
      cluster,
      ...rulesOf(rulings, now),
      ...live,
      ...(lease?.holder === undefined ? {} : { holder: lease.holder }),
      ...(heardAt === undefined ? {} : { heardAt, lagMs: Math.max(0, now - heardAt) }),
      ...(view ? { service: view } : {}),
      ...(nodes === undefined ? {} : { nodes }),
      tainted: tainted.length,
      pending: records.length,
      held: records.filter(({ held, gaveUpAt }) => held && gaveUpAt === undefined).length,
      gaveUp: records.filter(({ gaveUpAt }) => gaveUpAt !== undefined).length,
      stuck: stuck.length,
      lateMs: Math.max(0, ...records.map((record) => latenessMs(record, now))),
      ...(next === undefined ? {} : { nextAt: next }),
    };
  } catch (error) {
    return { cluster, error: messageOf(error) };
  }
}

function rulesOf({ orders, guard }: Rulings, now: EpochMs): Partial<ClusterStatus> {
  const { mode, pausedUntil } = orders.policy?.read ?? DEFAULT_POLICY;
  const isOver = mode === 'paused' && pausedUntil !== undefined && now >= pausedUntil;
  return {
    mode: isOver ? 'enforce' : mode,
    ...(isOver || pausedUntil === undefined ? {} : { pausedUntil }),
    policyRevision: orders.policy?.revision ?? 0,
    trips: guard.trips,
    ...(orders.stop && isOn(orders.stop, now) ? { stop: orders.stop } : {}),
  };
}

const isOn = ({ until }: Stop, now: EpochMs): boolean => until === undefined || now < until;

/** What it has not been done for, although nothing forbids it. */
function latenessMs({ fireAt, held, gaveUpAt, blocked, turnAt }: EvictionRecord, now: EpochMs): number {
  return held || gaveUpAt !== undefined || blocked || turnAt !== undefined ? 0 : now - fireAt;
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
    return unknown(messageOf(error));
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
      return unknown(messageOf(error));
    }
  };
  try {
    return await Promise.race([facts(), late]);
  } finally {
    over.abort();
    live.close();
  }
}

function needsOf(status: Omit<FleetStatus, 'needs'>): readonly Need[] {
  const { clusters, stop, deadLetters = {}, at } = status;
  const dead = Object.entries(deadLetters).filter(([, count]) => count > 0);
  return [
    ...clusters.flatMap((each) => needsOfCluster(each, at)),
    ...dead.map(
      ([queue, count]): Need => ({
        kind: 'dead-letters',
        text: `${count === 1 ? '1 dead letter' : `${count} dead letters`} of ${queue}: taintward dead-letters list shows why, redrive sends them again.`,
      }),
    ),
    ...(stop
      ? [
          {
            kind: 'stopped',
            text: `All clusters are stopped by ${stop.who} (${stop.why}): taintward resume --all goes on.`,
          } as const,
        ]
      : []),
  ].sort((a, b) => URGENCY.indexOf(a.kind) - URGENCY.indexOf(b.kind));
}

const URGENCY: readonly Need['kind'][] = [
  'unreadable',
  'refused',
  'guard-tripped',
  'deaf',
  'late',
  'given-up',
  'dead-letters',
  'stuck',
  'stopped',
];

function needsOfCluster(status: ClusterStatus, at: EpochMs): readonly Need[] {
  const { cluster, error, service, trips = [], gaveUp = 0, stuck = 0, lateMs = 0, stop } = status;
  const need = (kind: Need['kind'], text: string): Need => ({ kind, cluster, text });
  if (error !== undefined) return [need('unreadable', `Cluster ${cluster} cannot be read: ${error}`)];
  return [
    ...(service?.state === 'refused'
      ? [need('refused', `Cluster ${cluster} does not let the service in: ${service.why ?? 'see its log'}`)]
      : hearingNeeds(status, at).map((text) => need('deaf', text))),
    ...trips.map((trip) =>
      need(
        'guard-tripped',
        `The guard of cluster ${cluster} holds evictions: ${tripText(trip)}; if that is no mistake, taintward release guard ${cluster}.`,
      ),
    ),
    ...(lateMs > LATE_MS
      ? [
          need(
            'late',
            `An eviction in cluster ${cluster} is ${Math.round(lateMs / 1000)} s late, and nothing holds it: taintward pending ${cluster} says which, taintward doctor why.`,
          ),
        ]
      : []),
    ...(gaveUp > 0
      ? [
          need(
            'given-up',
            `${gaveUp} evictions in cluster ${cluster} were given up: mend what taintward pending ${cluster} says, then taintward retry ${cluster}.`,
          ),
        ]
      : []),
    ...(stuck > 0
      ? [
          need(
            'stuck',
            `${stuck} evicted pods of cluster ${cluster} do not leave: taintward pending ${cluster} --stuck says what helps.`,
          ),
        ]
      : []),
    ...(stop
      ? [
          need(
            'stopped',
            `Cluster ${cluster} is stopped by ${stop.who} (${stop.why}): taintward resume ${cluster} goes on.`,
          ),
        ]
      : []),
  ];
}

/** What keeps a cluster from being heard. */
function hearingNeeds({ cluster, heardAt, holder, service }: ClusterStatus, at: EpochMs): readonly string[] {
  if (service?.state === 'syncing') return [];
  if (heardAt === undefined) {
    return [
      `No relay ever heard from cluster ${cluster}: taintward doctor ${cluster} says whether one could.`,
    ];
  }
  if (at - heardAt < DEAF_MS) return [];
  const who = holder === undefined ? 'nobody speaks for it' : `${holder} speaks for it`;
  return [
    `Cluster ${cluster} was last heard from ${Math.round((at - heardAt) / 1000)} s ago, and ${who}: look whether the relay runs, and taintward doctor ${cluster}.`,
  ];
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

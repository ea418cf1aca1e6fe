import { setImmediate as turn } from 'node:timers/promises';
import pMap from 'p-map';
import type { ServiceClusterView, ServiceView } from '#functions/local/service-view.ts';
import type { Fleet } from '#functions/operator/fleet.ts';
import { firstDue } from '#functions/operator/pending.ts';
import type { LeaseRecord } from '#shared/clusters/lease.ts';
import { type Rulings, rulesOf } from '#shared/clusters/rulebook.ts';
import type { StuckPod } from '#shared/clusters/stuck.ts';
import { errorMessage } from '#shared/error-message.ts';
import type { ClusterName, EpochMs, NodeName } from '#shared/eviction/identity.ts';
import type { Rules, Stop } from '#shared/eviction/policy.ts';
import type { EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import type { Store, TaintedNode } from '#shared/store/store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import { taintText } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { PendingDelta, PendingRow } from './api.ts';
import { standingOf } from './standing.ts';

/** Clusters, and nodes of each, that are read at a time. */
const PARALLEL_CLUSTERS = 4;
const PARALLEL_NODES = 16;
/** No more than this part of the time is spent on reading, so that nothing else in this process waits long. */
const READING_SHARE = 0.1;

/** What was known of the fleet at one moment. */
export interface Seen {
  readonly at: EpochMs;
  /** Grows with each change of what is pending. */
  readonly version: number;
  readonly fleetStop?: Stop;
  readonly clusters: readonly ClusterSeen[];
  /** What is to be evicted, the first to go first. */
  readonly pending: readonly PendingSeen[];
}

export interface ClusterSeen {
  readonly cluster: ClusterName;
  /** What could not be read of it; then it is as if nothing were there. */
  readonly error?: string;
  readonly rulings?: Rulings;
  readonly rules?: Rules;
  readonly lease?: LeaseRecord;
  /** As the process says that runs it. */
  readonly service?: ServiceClusterView;
  readonly builtIn: BuiltIn;
  readonly tainted: readonly TaintedNode[];
  readonly stuck: readonly StuckPod[];
}

export interface PendingSeen {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly state: NodeState | undefined;
  readonly record: EvictionRecord;
  readonly row: PendingRow;
}

/** Of a fleet, what the console looks at. */
export type ViewedFleet = Pick<Fleet, 'rulebook' | 'store' | 'leases' | 'clusters' | 'service'>;

export interface FleetViewDeps {
  readonly fleet: ViewedFleet;
  /** What is known of a cluster's built-in controller. */
  readonly builtIn: (cluster: ClusterName) => BuiltIn;
  readonly matching: MatchOptions;
  readonly clock: Clock;
  /** What was seen is relied on for so long. */
  readonly maxAgeMs: number;
}

/** What is known of a fleet, read once for all who ask at about the same time. */
export class FleetView {
  readonly #deps: FleetViewDeps;
  readonly #listeners = new Set<(seen: Seen, delta: PendingDelta) => void>();
  #seen: Seen | undefined;
  #reading: Promise<Seen> | undefined;
  /** Until then what was seen does. */
  #goodUntil: EpochMs = 0;

  constructor(deps: FleetViewDeps) {
    this.#deps = deps;
  }

  /** As of now, or of a moment ago. Rejects with `StoreError` where nothing at all can be read. */
  async look(): Promise<Seen> {
    const { clock } = this.#deps;
    if (this.#seen && clock.now() < this.#goodUntil) return this.#seen;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** As {@link look}, but nothing older than this call: somebody has changed something. */
  async lookAnew(): Promise<Seen> {
    await this.#reading?.catch(() => undefined);
    this.#goodUntil = 0;
    return this.look();
  }

  /** Calls `listener` after each look with what was seen, and what changed of it since the look before. */
  listen(listener: (seen: Seen, delta: PendingDelta) => void): { readonly end: () => void } {
    this.#listeners.add(listener);
    return { end: () => void this.#listeners.delete(listener) };
  }

  async #read(): Promise<Seen> {
    const { clock, maxAgeMs } = this.#deps;
    const at = clock.now();
    const found = await readFleet(this.#deps, at);
    const before = this.#seen;
    const delta = changes(before, found.pending, at);
    const seen = { ...found, version: delta.version };
    this.#seen = seen;
    const tookMs = clock.now() - at;
    this.#goodUntil = at + Math.max(maxAgeMs, tookMs / READING_SHARE);
    for (const listener of this.#listeners) listener(seen, delta);
    return seen;
  }
}

const keyOf = ([uid, cluster]: PendingRow): string => `${uid} ${cluster}`;

function changes(before: Seen | undefined, pending: readonly PendingSeen[], at: EpochMs): PendingDelta {
  const from = before?.version ?? 0;
  const old = new Map(before?.pending.map(({ row }) => [keyOf(row), row]));
  const put: PendingRow[] = [];
  for (const { row } of pending) {
    const known = old.get(keyOf(row));
    old.delete(keyOf(row));
    if (!known || row.some((field, index) => field !== known[index])) put.push(row);
  }
  const gone = [...old.values()].map(([uid, cluster]) => [cluster, uid] as const);
  const isSame = before !== undefined && put.length === 0 && gone.length === 0;
  return { from, version: isSame ? from : from + 1, at, put, gone };
}

async function readFleet(deps: FleetViewDeps, at: EpochMs): Promise<Omit<Seen, 'version'>> {
  const { fleet } = deps;
  const [clusters, fleetStop, service] = await Promise.all([
    fleet.clusters(),
    fleet.rulebook.fleetStop(),
    // A process that does not answer keeps nothing else back.
    fleet.service().catch(() => undefined),
  ]);
  const read = await pMap(clusters, (cluster) => readCluster(cluster, service, deps, at), {
    concurrency: PARALLEL_CLUSTERS,
  });
  return {
    at,
    ...(fleetStop ? { fleetStop } : {}),
    clusters: read.map(({ seen }) => seen),
    pending: read.flatMap(({ pending }) => pending).sort(firstDue),
  };
}

async function readCluster(
  cluster: ClusterName,
  service: ServiceView | undefined,
  { fleet, builtIn, matching }: FleetViewDeps,
  at: EpochMs,
): Promise<{ readonly seen: ClusterSeen; readonly pending: readonly PendingSeen[] }> {
  const view = service?.clusters[cluster];
  const known = { cluster, builtIn: builtIn(cluster), ...(view ? { service: view } : {}) };
  try {
    const [rulings, lease, stuck, tainted] = await Promise.all([
      fleet.rulebook.read(cluster),
      fleet.leases.look(cluster),
      fleet.leases.stuck(cluster),
      Array.fromAsync(fleet.store.taintedNodes(cluster)),
    ]);
    const pending = await pMap(tainted, ({ node }) => readNode(cluster, node, fleet.store, rulings, at), {
      concurrency: PARALLEL_NODES,
    });
    const rules = rulesOf(rulings, matching);
    return {
      seen: { ...known, rulings, rules, ...(lease ? { lease } : {}), tainted, stuck },
      pending: pending.flat(),
    };
  } catch (error) {
    const reason = errorMessage(error);
    return { seen: { ...known, error: reason, tainted: [], stuck: [] }, pending: [] };
  }
}

async function readNode(
  cluster: ClusterName,
  node: NodeName,
  store: Pick<Store, 'load'>,
  rulings: Rulings,
  at: EpochMs,
): Promise<readonly PendingSeen[]> {
  // A store in this process answers at once: what else waits here goes first.
  await turn();
  const { scheduled, node: state } = await store.load({ cluster, node }, at);
  return [...scheduled.values()].map((record) => {
    const { uid, namespace, name, fireAt, reasons } = record;
    const { standing, note } = standingOf(record, rulings, at);
    const taints = reasons.map(({ taint }) => taintText(taint)).join(', ');
    const row = [uid, cluster, node, namespace, name, fireAt, standing, taints, note] as const;
    return { cluster, node, state, record, row };
  });
}

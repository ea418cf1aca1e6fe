import { setImmediate as turn } from 'node:timers/promises';
import pMap from 'p-map';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { EvictionRecord, NodeState, Partition } from '#shared/eviction/records.ts';
import { storedGates } from '#shared/explain/recorded-forecast.ts';
import { rulesOf, type StoredRules } from '#shared/state/rules-store.ts';
import type { Store, TaintedNode } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Fleet } from '../fleet/fleet.ts';

/** Nodes that are read at a time. */
const PARALLEL_NODES = 16;

/** A pod that is to be evicted. */
export interface Pending {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly record: EvictionRecord;
}

/** With what is known of its node, and all that keeps it, now or once it is due. */
export interface PendingLook extends Pending {
  readonly state: NodeState | undefined;
  readonly gates: readonly EvictionGate[];
}

/** No toleration is matched by what is stored. */
export const MATCHING = { comparisonOperators: false };

/** What is to be evicted from a node. */
function pendingIn(partition: Partition, storedRules: StoredRules, now: EpochMs): readonly PendingLook[] {
  const { ref, node: state, scheduled } = partition;
  const gatesOf = storedGates(partition, rulesOf(storedRules, MATCHING), now);
  return [...scheduled.values()].map((record) => {
    // Where nothing is evicted anyway, a countdown is told as what would happen, until it is over.
    const gates = gatesOf(record).filter(({ kind }) => kind !== 'observe' || record.held !== undefined);
    return { ...ref, state, record, gates };
  });
}

/** What is to be evicted in a cluster, the first to go first, with all that keeps it. Rejects with `StoreError`. */
export async function pendingLook(
  { store, rulesStore }: Pick<Fleet, 'store' | 'rulesStore'>,
  cluster: ClusterName,
  now: EpochMs,
): Promise<readonly PendingLook[]> {
  const nodes = await Array.fromAsync(store.taintedNodes(cluster));
  return pendingOn(store, cluster, nodes, await rulesStore.read(cluster), now);
}

/** As {@link pendingLook}, of these nodes and by these rulings. */
export const pendingOn = (
  store: Pick<Store, 'load'>,
  cluster: ClusterName,
  nodes: readonly TaintedNode[],
  storedRules: StoredRules,
  now: EpochMs,
): Promise<PendingLook[]> =>
  readNodes(store, cluster, nodes, now, (partition) => pendingIn(partition, storedRules, now));

/**
 * What is to be evicted in a cluster, the first to go first, and by name; what ended in this moment may still be among it. Rejects with
 * `StoreError`.
 */
export const pendingOf = async (
  store: Store,
  cluster: ClusterName,
  now: EpochMs,
): Promise<readonly Pending[]> =>
  readNodes(
    store,
    cluster,
    await Array.fromAsync(store.taintedNodes(cluster)),
    now,
    ({ ref, scheduled }): readonly Pending[] => [...scheduled.values()].map((record) => ({ ...ref, record })),
  );

async function readNodes<Found extends Pending>(
  store: Pick<Store, 'load'>,
  cluster: ClusterName,
  nodes: readonly TaintedNode[],
  now: EpochMs,
  found: (partition: Partition) => readonly Found[],
): Promise<Found[]> {
  const read = async ({ node }: TaintedNode) => {
    // A store in this process answers at once: what else waits here goes first.
    await turn();
    return found(await store.load({ cluster, node }, now));
  };
  return (await pMap(nodes, read, { concurrency: PARALLEL_NODES })).flat().sort(firstDue);
}

/** By deadline, and at one moment by name: a table whose rows change places cannot be read. */
export const firstDue = (a: Pending, b: Pending): number =>
  a.record.fireAt - b.record.fireAt || (placeOf(a) < placeOf(b) ? -1 : 1);

const placeOf = ({ cluster, record }: Pending): string =>
  `${cluster}/${record.namespace}/${record.name}/${record.uid}`;

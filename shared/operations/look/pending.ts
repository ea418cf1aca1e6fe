import { setImmediate as turn } from 'node:timers/promises';
import pMap from 'p-map';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { EvictionRecord, NodeState, Partition } from '#shared/eviction/records.ts';
import { storedGates } from '#shared/explain/recorded-forecast.ts';
import { rulesOf, type StoredRules } from '#shared/state/rules-store.ts';
import type { Store, TaintedNode } from '#shared/state/store.ts';
import { NO_RULES } from '#shared/state/stored-rules.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type Zones, zonesOf } from './zones.ts';

const PARALLEL_NODES = 16;

/** A pending eviction with the state of its node, and all gates that hold it now or once it is due. */
export interface PendingEviction {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly record: EvictionRecord;
  readonly state: NodeState | undefined;
  /** Absent: not known. Empty: another one than the zones for which the guard tripped. */
  readonly zone?: string;
  readonly gates: readonly EvictionGate[];
}

/** Stored records don't require matching tolerations again. */
export const MATCHING = { comparisonOperators: false };

/** The rules of a cluster, and the zones that they name. */
type RulesHere = readonly [StoredRules, zones: Zones | undefined];

function pendingIn(partition: Partition, [storedRules, zones]: RulesHere, now: EpochMs): PendingEviction[] {
  const { ref, node: state, scheduled } = partition;
  const place = zones?.nodes ? { zone: zones.nodes.get(ref.node) ?? '' } : {};
  const gatesOf = storedGates({ ...partition, ...place }, rulesOf(storedRules, MATCHING), now);
  return [...scheduled.values()].map((record) => {
    // In observe mode, a future deadline is shown as what would happen, and the gate once it is due.
    const gates = gatesOf(record).filter(({ kind }) => kind !== 'observe' || record.held !== undefined);
    return { ...ref, ...place, state, record, gates };
  });
}

/** Earliest deadline first, with all gates that hold them. Rejects with `StoreError`. */
export async function pendingEvictions(
  fleet: Pick<Fleet, 'store' | 'rulesStore' | 'cluster'>,
  cluster: ClusterName,
  now: EpochMs,
): Promise<readonly PendingEviction[]> {
  const nodes = await Array.fromAsync(fleet.store.taintedNodes(cluster));
  const rules = await fleet.rulesStore.read(cluster);
  return pendingOn(fleet.store, cluster, nodes, [rules, await zonesOf(fleet, cluster, rules, now)], now);
}

/** Does the same as {@link pendingEvictions}, for these nodes and under these rules. */
export async function pendingOn(
  store: Pick<Store, 'load'>,
  cluster: ClusterName,
  nodes: readonly TaintedNode[],
  rules: RulesHere,
  now: EpochMs,
): Promise<PendingEviction[]> {
  const read = async ({ node }: TaintedNode) => {
    // A store in this process answers synchronously, so let other work run first.
    await turn();
    return pendingIn(await store.load({ cluster, node }, now), rules, now);
  };
  return (await pMap(nodes, read, { concurrency: PARALLEL_NODES })).flat().sort(firstDue);
}

/** Does the same as {@link pendingEvictions}, without gates and zones: it reads no rules. */
export const pendingOf = async (
  store: Store,
  cluster: ClusterName,
  now: EpochMs,
): Promise<readonly Pick<PendingEviction, 'cluster' | 'node' | 'record'>[]> => {
  const nodes = await Array.fromAsync(store.taintedNodes(cluster));
  return pendingOn(store, cluster, nodes, [NO_RULES, undefined], now);
};

/** Compares by deadline, and then by name: a table whose rows change places is unreadable. */
export const firstDue = (a: PendingEviction, b: PendingEviction): number =>
  a.record.dueAt - b.record.dueAt || (placeOf(a) < placeOf(b) ? -1 : 1);

const placeOf = ({ cluster, record }: PendingEviction): string =>
  `${cluster}/${record.namespace}/${record.name}/${record.uid}`;

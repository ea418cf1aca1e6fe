import { defined } from '#shared/defined.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import { type Budget, budgetsOf } from '#shared/explain/budgets.ts';
import { knownOr } from '#shared/explain/known.ts';
import type { Replicas } from '#shared/explain/what-if.ts';
import { type Workload, workloadText } from '#shared/explain/workload.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { PendingEviction } from '../look/pending.ts';
import { countsOf, nextOf, type PendingCounts } from '../look/pending-state.ts';
import { zonesIn } from '../look/zones.ts';
import { budgetsInAll } from './budgets.ts';
import { factOf } from './facts.ts';
import { reach } from './reach.ts';
import { podsOf } from './what-if.ts';
import { WorkloadFinder } from './workload-finder.ts';

export const GROUPINGS = ['workload', 'node', 'zone'] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** The pending evictions of a workload, a node, or a zone, which is absent if it is not known. */
export interface PendingGroup extends PendingCounts {
  readonly cluster: ClusterName;
  readonly place: Workload | { readonly node: NodeName } | { readonly zone?: string };
  /** The next deadline that no rule holds. Absent: none. */
  readonly nextAt?: EpochMs;
  /** Absent: unknown, or the workload keeps no number of pods ready. */
  readonly replicas?: Replicas;
  /** Disruption budgets that select one of the pods. Absent: unknown. */
  readonly budgets?: readonly Budget[];
}

interface Places {
  placeOf(eviction: PendingEviction): PendingGroup['place'];
  factsOf?(its: readonly PendingEviction[]): Pick<PendingGroup, 'replicas' | 'budgets'>;
  readonly unknown?: readonly string[];
}

/** Groups by stored data alone: instead of the workload, the controller that created the pod. */
const STORED: { readonly [Kind in Grouping]: Places['placeOf'] } = {
  workload: ({ record: { namespace, name, owner } }) => ({ namespace, ...(owner ?? { kind: 'Pod', name }) }),
  node: ({ node }) => ({ node }),
  zone: () => ({}),
};

/** Groups pending evictions of a cluster, by what the cluster shows; `unknown` lists what could not be read. */
export async function pendingGroups(
  fleet: Fleet,
  { cluster, pending }: { readonly cluster: ClusterName; readonly pending: readonly PendingEviction[] },
  grouping: Grouping,
  at: EpochMs,
): Promise<{ readonly groups: readonly PendingGroup[]; readonly unknown: readonly string[] }> {
  const { placeOf, factsOf, unknown = [] } = await placesIn(fleet, cluster, grouping, pending);
  const groups = [...Map.groupBy(pending, (each) => JSON.stringify(placeOf(each)))]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([place, its]) => ({
      cluster,
      place: JSON.parse(place),
      ...countsOf(its, at),
      ...defined({ nextAt: nextOf(its, at) }),
      ...factsOf?.(its),
    }));
  return { groups, unknown };
}

async function placesIn(
  fleet: Fleet,
  cluster: ClusterName,
  grouping: Grouping,
  pending: readonly PendingEviction[],
): Promise<Places> {
  const stored = { placeOf: STORED[grouping] };
  if (grouping === 'node' || pending.length === 0) return stored;
  const { ask, close } = await reach(fleet, cluster);
  try {
    const places = await ask(({ objects }) =>
      grouping === 'zone' ? zonePlaces(objects) : workloadsIn(objects, pending),
    );
    if ('value' in places) return places.value;
    return { ...stored, unknown: [`The ${grouping}s of cluster ${cluster} are unknown: ${places.unknown}.`] };
  } finally {
    close();
  }
}

async function zonePlaces(objects: ClusterObjects): Promise<Places> {
  const zones = await zonesIn(objects);
  return { placeOf: ({ node }) => defined({ zone: zones.get(node) }) };
}

async function workloadsIn(objects: ClusterObjects, pending: readonly PendingEviction[]): Promise<Places> {
  const nodes = new Set(pending.map(({ node }) => node));
  const pods = await podsOf(
    objects,
    [...nodes].map((name) => ({ name })),
  );
  const finder = new WorkloadFinder(objects);
  const workloads = await finder.ofEach(pods);
  const namespaces = new Set(pending.map(({ record }) => record.namespace));
  const budgets = await factOf(() => budgetsInAll(objects, [...namespaces]));
  const labels = new Map(pods.map(({ pod }) => [pod.uid, pod.labels]));
  const selecting = ({ record: { uid, namespace } }: PendingEviction) =>
    budgetsOf(knownOr(budgets, undefined)?.get(namespace) ?? [], labels.get(uid) ?? {});
  return {
    placeOf: (eviction) => workloads.get(eviction.record.uid) ?? STORED.workload(eviction),
    factsOf: (its) => {
      const [workload] = its.flatMap(({ record: { uid } }) => workloads.get(uid) ?? []);
      return {
        ...defined({ replicas: workload && finder.replicas.get(workloadText(workload)) }),
        ...('value' in budgets ? { budgets: [...new Set(its.flatMap(selecting))] } : {}),
      };
    },
    unknown: [
      ...finder.unknown,
      ...('unknown' in budgets ? [`Disruption budgets are unknown: ${budgets.unknown}.`] : []),
    ],
  };
}

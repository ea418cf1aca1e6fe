import { defined } from '#shared/defined.ts';
import { isTarget } from '#shared/eviction/gate.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { type Budget, budgetsOf } from '#shared/explain/budgets.ts';
import { keptLabel } from '#shared/explain/gate-text.ts';
import { knownOr } from '#shared/explain/known.ts';
import type { Replicas } from '#shared/explain/what-if.ts';
import { type Workload, workloadText } from '#shared/explain/workload.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type LiveCluster, withCluster } from '../fleet/live-cluster.ts';
import type { PendingEviction } from '../look/pending.ts';
import { countsOf, nextOf, type PendingCounts } from '../look/pending-state.ts';
import { zonesIn } from '../look/zones.ts';
import { budgetsInAll } from './budgets.ts';
import { factOf } from './facts.ts';
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
  /** A hold of it holds all of these evictions. Absent: none does. */
  readonly target?: HoldTarget;
  /** IDs of the holds that hold one of them. */
  readonly holds: readonly string[];
}

export interface Places {
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

/**
 * Groups pending evictions of a cluster, by what the cluster shows; `unknown` lists what could not be read. `places`: those
 * of earlier evictions.
 */
export async function pendingGroups(
  fleet: Fleet,
  { cluster, pending }: { readonly cluster: ClusterName; readonly pending: readonly PendingEviction[] },
  grouping: Grouping,
  at: EpochMs,
  places?: Places,
): Promise<{ readonly groups: readonly PendingGroup[]; readonly unknown: readonly string[] }> {
  const { placeOf, factsOf, unknown = [] } = places ?? (await placesIn(fleet, cluster, grouping, pending));
  const groups = [...Map.groupBy(pending, (each) => JSON.stringify(placeOf(each)))]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([text, its]) => {
      const place: PendingGroup['place'] = JSON.parse(text);
      const holds = its.flatMap(({ gates }) => gates.flatMap((by) => (by.kind === 'hold' ? by.id : [])));
      return {
        cluster,
        place,
        ...countsOf(its, at),
        ...defined({ nextAt: nextOf(its, at), target: targetOf(place, its) }),
        holds: [...new Set(holds)],
        ...factsOf?.(its),
      };
    });
  return { groups, unknown };
}

function targetOf(place: PendingGroup['place'], its: readonly PendingEviction[]): HoldTarget | undefined {
  if ('node' in place) return { kind: 'node', node: place.node };
  if (!('namespace' in place)) return place.zone ? { kind: 'zone', zone: place.zone } : undefined;
  const { namespace, kind, name } = place;
  const target: HoldTarget =
    kind === 'Pod'
      ? { kind: 'pod', namespace, name }
      : { kind: 'workload', namespace, owner: { kind, name } };
  return its.every((each) => isTarget(target, { zone: undefined, traits: each.record, ...each }))
    ? target
    : undefined;
}

/** The texts of a group in a table. */
export const groupTexts = ({ place, replicas, budgets = [], ...counts }: PendingGroup) => ({
  name:
    'namespace' in place ? workloadText(place) : 'node' in place ? place.node : (place.zone ?? '(unknown)'),
  keptBy: heldText(counts),
  ready: replicas ? `${replicas.ready} of ${replicas.desired}` : '',
  budget: budgets.map(({ name, allowed }) => `${name} allows ${allowed}`).join(', '),
});

/** "2 on hold, 1 failed". */
function heldText({ heldBy, blocked, retrying, failed }: PendingCounts): string {
  const gates = Object.entries(heldBy).map(
    ([kind, count]) => [keptLabel(kind as keyof typeof heldBy), count] as const,
  );
  return [...gates, ...Object.entries({ blocked, retrying, failed })]
    .flatMap(([label, count]) => (count === 0 ? [] : [`${count} ${label}`]))
    .join(', ');
}

/** Reads the places of pending evictions, as far as the cluster shows them. Never rejects. */
export async function placesIn(
  fleet: Fleet,
  cluster: ClusterName,
  grouping: Grouping,
  pending: readonly PendingEviction[],
): Promise<Places> {
  const stored = { placeOf: STORED[grouping] };
  if (grouping === 'node' || pending.length === 0) return stored;
  const read = ({ objects }: LiveCluster) =>
    grouping === 'zone' ? zonePlaces(objects) : workloadsIn(objects, pending);
  const places = await factOf(() => withCluster(fleet, cluster, read));
  if ('value' in places) return places.value;
  return { ...stored, unknown: [`The ${grouping}s of cluster ${cluster} are unknown: ${places.unknown}.`] };
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
  const ofOwner = new Map(
    pending.map(({ record }) => [ownerText(record), workloads.get(record.uid)] as const),
  );
  const labels = new Map(pods.map(({ pod }) => [pod.uid, pod.labels]));
  const selecting = ({ record: { uid, namespace } }: PendingEviction) =>
    budgetsOf(knownOr(budgets, undefined)?.get(namespace) ?? [], labels.get(uid) ?? {});
  return {
    placeOf: (eviction) =>
      workloads.get(eviction.record.uid) ??
      ofOwner.get(ownerText(eviction.record)) ??
      STORED.workload(eviction),
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

/** A pod without an owner has no other pod's workload. */
const ownerText = ({ namespace, owner, uid }: EvictionRecord): string =>
  owner ? workloadText({ namespace, ...owner }) : uid;

import { isDeepStrictEqual } from 'node:util';
import { FEATURE_GATES, taintsOf, tolerationsOf } from '../objects/admission.ts';
import type { PodSpec, TolerationObject } from '../objects/core-kinds.ts';
import {
  type DaemonSetObject,
  type EpochMs,
  type NodeObject,
  type PodObject,
  refOf,
} from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { Controller } from './reconcile-loop.ts';
import { isSelected, pinnedTo, schedulerVerdict } from './scheduler.ts';
import {
  adopt,
  availability,
  createPod,
  deletePod,
  earliest,
  hasEnded,
  isReady,
  isStaying,
  podsOf,
  scaled,
  templateHash,
} from './workload-pods.ts';

const REVISION = 'controller-revision-hash';

/** Keeps one pod of each DaemonSet on each node that it selects and whose taints it tolerates, pinned there. */
export function daemonSetController(store: ObjectStore): Controller {
  return {
    name: 'daemonset',
    reconcile: (now) => earliest(store.all('daemonsets').map((set) => reconcile(store, set, now))),
  };
}

function reconcile(store: ObjectStore, set: DaemonSetObject, now: EpochMs): EpochMs | undefined {
  adopt(store, 'pods', set);
  for (const pod of podsOf(store, set)) {
    if (pod.metadata.deletionTimestamp !== undefined) continue;
    const node = store.find('nodes', { namespace: '', name: nodeOf(pod) });
    // The garbage collector handles the pods of deleted nodes.
    if (hasEnded(pod.status.phase) || (node !== undefined && !verdict(set, node).staysOn)) {
      deletePod(store, set, pod);
    }
  }
  const covered = new Set(podsOf(store, set).filter(isStaying).map(nodeOf));
  for (const node of store.all('nodes')) {
    const { name } = node.metadata;
    if (covered.has(name) || !verdict(set, node).runsOn) continue;
    createPod(store, set, set.spec.template, {
      named: { generateName: `${set.metadata.name}-` },
      labels: { [REVISION]: templateHash(set.spec.template) },
      spec: daemonSpec(set.spec.template.spec, name),
    });
  }
  update(store, set, now);
  return keepStatus(store, set, now);
}

const nodeOf = ({ spec }: PodObject): string => spec.nodeName ?? pinnedTo(spec)?.[0] ?? '';

/**
 * Reports whether a new pod may start on the node, and whether an existing pod may stay there. Upstream:
 * `NodeShouldRunDaemonPod`.
 */
function verdict({ spec }: DaemonSetObject, node: NodeObject): { runsOn: boolean; staysOn: boolean } {
  const template = spec.template.spec;
  if (!isSelected({ spec: template }, node)) return { runsOn: false, staysOn: false };
  const tolerations = tolerationsOf([...(template.tolerations ?? []), ...DAEMON_TOLERATIONS]);
  const { firstUntolerated, noExecute } = schedulerVerdict(taintsOf(node), tolerations, FEATURE_GATES);
  return { runsOn: firstUntolerated === undefined, staysOn: noExecute };
}

const daemonSpec = (template: PodSpec, node: string) => ({
  tolerations: [...(template.tolerations ?? []), ...DAEMON_TOLERATIONS],
  affinity: {
    ...template.affinity,
    nodeAffinity: {
      ...template.affinity?.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
      },
    },
  },
});

/**
 * The tolerations that the real DaemonSet controller adds to every pod that it creates. Upstream:
 * `AddOrUpdateDaemonPodTolerations`.
 */
const DAEMON_TOLERATIONS: readonly TolerationObject[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
];

const isUpdated = (set: DaemonSetObject, { metadata }: PodObject): boolean =>
  metadata.labels?.[REVISION] === templateHash(set.spec.template);

/** Replaces the pods of an older template, at most `maxUnavailable` at a time; `maxSurge` is not simulated. */
function update(store: ObjectStore, set: DaemonSetObject, now: EpochMs): void {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type !== 'RollingUpdate') return;
  const pods = podsOf(store, set).filter(isStaying);
  const desired = desiredNodes(store, set).length;
  const limit = Math.max(1, scaled(rollingUpdate?.maxUnavailable, desired, 'up'));
  const { available } = availability(pods, set.spec.minReadySeconds, now);
  const outdated = pods.filter((pod) => !isUpdated(set, pod));
  // Deleting an unavailable pod does not reduce availability.
  const [down, up] = [outdated.filter((pod) => !isReady(pod)), outdated.filter(isReady)];
  const room = Math.max(0, limit - Math.max(0, desired - available));
  for (const pod of [...down, ...up.slice(0, room)]) deletePod(store, set, pod);
}

const desiredNodes = (store: ObjectStore, set: DaemonSetObject): readonly string[] =>
  store
    .all('nodes')
    .filter((node) => verdict(set, node).runsOn)
    .map(({ metadata }) => metadata.name);

function keepStatus(store: ObjectStore, set: DaemonSetObject, now: EpochMs): EpochMs | undefined {
  const nodes = new Set(desiredNodes(store, set));
  const pods = podsOf(store, set).filter(isStaying);
  const placed = pods.filter((pod) => nodes.has(nodeOf(pod)));
  const { available, nextAt } = availability(placed, set.spec.minReadySeconds, now);
  const updated = placed.filter((pod) => isUpdated(set, pod)).length;
  const status = {
    currentNumberScheduled: new Set(placed.map(nodeOf)).size,
    numberMisscheduled: pods.length - placed.length,
    desiredNumberScheduled: nodes.size,
    numberReady: placed.filter(isReady).length,
    observedGeneration: set.metadata.generation ?? 0,
    ...(updated === 0 ? {} : { updatedNumberScheduled: updated }),
    ...(available === 0 ? {} : { numberAvailable: available }),
    ...(nodes.size - available <= 0 ? {} : { numberUnavailable: nodes.size - available }),
  };
  if (!isDeepStrictEqual(status, set.status)) {
    store.update('daemonsets', refOf(set), 'status', (one) => ({ ...one, status }));
  }
  return nextAt;
}

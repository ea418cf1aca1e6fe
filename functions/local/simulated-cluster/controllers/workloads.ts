import { createHash } from 'node:crypto';
import { FEATURE_GATES, taintsOf, tolerationsOf } from '../objects/admission.ts';
import type { TolerationObject } from '../objects/core-kinds.ts';
import { controllerOf, type PodObject } from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { Controller } from './reconcile-loop.ts';
import { pinnedTo, schedulerVerdict } from './scheduler.ts';

interface PodTemplate {
  readonly namespace: string;
  readonly name: string;
  readonly image: string;
  readonly tolerations: readonly TolerationObject[];
}

/** What keeps pods running; known to its controller only, for this cluster has no objects of these kinds. */
export type Workload =
  | (PodTemplate & { readonly kind: 'Deployment' | 'StatefulSet'; readonly replicas: number })
  | (PodTemplate & { readonly kind: 'DaemonSet' });

/** A workload's controller: makes the pods that are missing, as the real one of that kind would. */
export function workloadController(store: ObjectStore, workload: Workload): Controller {
  return {
    name: `${workload.kind} ${workload.name}`,
    reconcile() {
      const { uid } = ownerOf(workload);
      const pods = store.all('pods').filter((pod) => controllerOf(pod)?.uid === uid);
      switch (workload.kind) {
        case 'Deployment':
          fillDeployment(store, workload, pods, workload.replicas);
          return undefined;
        case 'StatefulSet':
          fillStatefulSet(store, workload, workload.replicas);
          return undefined;
        case 'DaemonSet':
          fillDaemonSet(store, workload, pods);
          return undefined;
        default:
          return workload satisfies never;
      }
    },
  };
}

/** A pod that is on its way out is replaced at once. */
function fillDeployment(
  store: ObjectStore,
  workload: Workload,
  pods: readonly PodObject[],
  replicas: number,
): void {
  const missing = replicas - pods.filter(isStaying).length;
  for (let made = 0; made < missing; made += 1) {
    create(store, workload, { generateName: `${replicaSetName(workload)}-` });
  }
}

/** A pod is replaced under its own name, so only when it is gone. */
function fillStatefulSet(store: ObjectStore, workload: Workload, replicas: number): void {
  for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
    const name = `${workload.name}-${ordinal}`;
    if (store.find('pods', { namespace: workload.namespace, name }) === undefined) {
      create(store, workload, { name });
    }
  }
}

/** One pod for each node whose taints it tolerates, pinned there. */
function fillDaemonSet(store: ObjectStore, workload: Workload, pods: readonly PodObject[]): void {
  const covered = new Set(pods.filter(isStaying).flatMap(({ spec }) => pinnedTo(spec) ?? []));
  const tolerations = tolerationsOf([...workload.tolerations, ...DAEMON_TOLERATIONS]);
  for (const node of store.all('nodes')) {
    const { name } = node.metadata;
    if (covered.has(name)) continue;
    if (schedulerVerdict(taintsOf(node), tolerations, FEATURE_GATES).firstUntolerated !== undefined) continue;
    create(store, workload, { generateName: `${workload.name}-` }, name);
  }
}

const isStaying = ({ metadata, status }: PodObject): boolean =>
  metadata.deletionTimestamp === undefined && status.phase !== 'Succeeded' && status.phase !== 'Failed';

function create(store: ObjectStore, workload: Workload, named: object, node?: string): void {
  const { kind, namespace, name, image, tolerations } = workload;
  store.create('pods', namespace, {
    metadata: { ...named, labels: { app: name }, ownerReferences: [ownerOf(workload)] },
    spec: {
      containers: [{ name, image, imagePullPolicy: 'IfNotPresent', resources: {} }],
      tolerations: [...tolerations, ...(kind === 'DaemonSet' ? DAEMON_TOLERATIONS : [])],
      ...(node === undefined ? {} : { affinity: pinTo(node) }),
    },
  });
}

const pinTo = (node: string) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
    },
  },
});

/** What the real DaemonSet controller puts on every pod of its own. Upstream: `AddOrUpdateDaemonPodTolerations`. */
const DAEMON_TOLERATIONS: readonly TolerationObject[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
];

/** A Deployment's pods belong to its ReplicaSet. */
function ownerOf(workload: Workload) {
  const isDeployment = workload.kind === 'Deployment';
  return {
    apiVersion: 'apps/v1',
    kind: isDeployment ? 'ReplicaSet' : workload.kind,
    name: isDeployment ? replicaSetName(workload) : workload.name,
    uid: uidOf(workload),
    controller: true,
    blockOwnerDeletion: true,
  };
}

const replicaSetName = (workload: Workload): string =>
  `${workload.name}-${digestOf(workload).slice(0, REPLICA_SET_HASH_LENGTH)}`;

const REPLICA_SET_HASH_LENGTH = 10;

/** The same at every start, so that a workload knows its pods again. */
const uidOf = (workload: Workload): string =>
  digestOf(workload).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');

const digestOf = ({ kind, namespace, name }: Workload): string =>
  createHash('sha256').update(`${kind}/${namespace}/${name}`).digest('hex');

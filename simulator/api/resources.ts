import type { ResourceName } from '../objects/kinds.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** The API of one kind of object, beside the kind's name and API version. */
export interface Resource {
  readonly singularName: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  readonly subresources: readonly Subresource[];
  /** `all`: the kind is part of `kubectl get all`. */
  readonly categories?: readonly string[];
  /** The fields that the real server supports in field selectors, apart from name and namespace. */
  readonly selectableFields?: readonly string[];
}

export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly Verb[];
  /** The API version of the subresource's kind, if it differs from the object's. */
  readonly apiVersion?: string;
}

const READ: readonly Verb[] = ['get', 'list', 'watch'];
const WRITE: readonly Verb[] = ['create', 'update', 'patch', 'delete'];
const VERBS: readonly Verb[] = [...READ, ...WRITE];

const statusOf = (kind: string): Subresource => ({
  name: 'status',
  kind,
  verbs: ['get', 'patch', 'update'],
});

const SCALE: Subresource = {
  name: 'scale',
  kind: 'Scale',
  apiVersion: 'autoscaling/v1',
  verbs: ['get', 'patch', 'update'],
};

/** A subresource that needs containers; the simulated cluster has none. */
const streamed = (name: string, kind: string): Subresource => ({ name, kind, verbs: ['get', 'create'] });

const ALL = ['all'];

export const RESOURCES: { readonly [R in ResourceName]: Resource } = {
  nodes: {
    singularName: 'node',
    shortNames: ['no'],
    namespaced: false,
    verbs: VERBS,
    subresources: [statusOf('Node')],
    selectableFields: ['spec.unschedulable'],
  },
  pods: {
    singularName: 'pod',
    shortNames: ['po'],
    namespaced: true,
    verbs: VERBS,
    categories: ALL,
    subresources: [
      streamed('attach', 'PodAttachOptions'),
      { name: 'binding', kind: 'Binding', verbs: ['create'] },
      { name: 'eviction', kind: 'Eviction', apiVersion: 'policy/v1', verbs: ['create'] },
      streamed('exec', 'PodExecOptions'),
      { name: 'log', kind: 'Pod', verbs: ['get'] },
      streamed('portforward', 'PodPortForwardOptions'),
      statusOf('Pod'),
    ],
    selectableFields: [
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'status.phase',
      'status.podIP',
    ],
  },
  events: {
    singularName: 'event',
    shortNames: ['ev'],
    namespaced: true,
    verbs: VERBS,
    subresources: [],
    selectableFields: [
      'involvedObject.kind',
      'involvedObject.namespace',
      'involvedObject.name',
      'involvedObject.uid',
      'involvedObject.apiVersion',
      'involvedObject.resourceVersion',
      'involvedObject.fieldPath',
      'reason',
      'reportingComponent',
      'source',
      'type',
    ],
  },
  namespaces: {
    singularName: 'namespace',
    shortNames: ['ns'],
    namespaced: false,
    // Deleting a namespace would delete all objects in it, which is not simulated.
    verbs: [...READ, 'create', 'update', 'patch'],
    subresources: [],
    selectableFields: ['status.phase'],
  },
  deployments: {
    singularName: 'deployment',
    shortNames: ['deploy'],
    namespaced: true,
    verbs: VERBS,
    categories: ALL,
    subresources: [SCALE, statusOf('Deployment')],
  },
  replicasets: {
    singularName: 'replicaset',
    shortNames: ['rs'],
    namespaced: true,
    verbs: VERBS,
    categories: ALL,
    subresources: [SCALE, statusOf('ReplicaSet')],
    selectableFields: ['status.replicas'],
  },
  statefulsets: {
    singularName: 'statefulset',
    shortNames: ['sts'],
    namespaced: true,
    verbs: VERBS,
    categories: ALL,
    subresources: [SCALE, statusOf('StatefulSet')],
  },
  daemonsets: {
    singularName: 'daemonset',
    shortNames: ['ds'],
    namespaced: true,
    verbs: VERBS,
    categories: ALL,
    subresources: [statusOf('DaemonSet')],
  },
  poddisruptionbudgets: {
    singularName: 'poddisruptionbudget',
    shortNames: ['pdb'],
    namespaced: true,
    verbs: VERBS,
    subresources: [statusOf('PodDisruptionBudget')],
  },
};

import * as z from 'zod';
import { event, namespace, node, pod, stringMap } from './core-kinds.ts';
import { fieldsOf, itemsOf, textOf, withoutNulls } from './json.ts';
import { badRequest, schemaFault } from './status.ts';
import { daemonSet, deployment, disruptionBudget, replicaSet, statefulSet } from './workload-kinds.ts';

/**
 * The kinds of object in the simulated cluster, as Kubernetes' own JSON. Only the fields in use are declared; every other field
 * passes through unchanged.
 */

/** Milliseconds since the Unix epoch. */
export type EpochMs = number;

/** Returns a time as `metav1.Time`: RFC 3339 in UTC, truncated to the second. */
export const kubernetesTime = (at: EpochMs): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');

const text = z.string();

const ownerReference = z.looseObject({
  apiVersion: text,
  kind: text,
  name: text,
  uid: text,
  controller: z.boolean().exactOptional(),
});

const givenMetadata = {
  name: text.exactOptional(),
  generateName: text.exactOptional(),
  namespace: text.exactOptional(),
  uid: text.exactOptional(),
  resourceVersion: text.exactOptional(),
  labels: stringMap.exactOptional(),
  annotations: stringMap.exactOptional(),
  ownerReferences: z.array(ownerReference).exactOptional(),
};

/** Metadata as sent by a client. Fields that only the server sets are dropped, as on the real server. */
const draftMetadata = z
  .looseObject(givenMetadata)
  .transform(
    ({
      creationTimestamp,
      deletionTimestamp,
      deletionGracePeriodSeconds,
      generation,
      managedFields,
      ...given
    }) => given,
  );

/** The owner of some fields, and since when. Upstream: `metav1.ManagedFieldsEntry`. */
const managedFields = z.looseObject({
  manager: text,
  operation: text,
  apiVersion: text,
  time: text,
  subresource: text.exactOptional(),
  fieldsV1: z.record(text, z.unknown()),
});
export type ManagedFields = z.infer<typeof managedFields>;

/** Metadata of a stored object. */
const storedMetadata = z.looseObject({
  ...givenMetadata,
  name: text,
  uid: text,
  resourceVersion: text,
  creationTimestamp: text,
  deletionTimestamp: text.exactOptional(),
  deletionGracePeriodSeconds: z.int().exactOptional(),
  generation: z.int().exactOptional(),
  managedFields: z.array(managedFields).exactOptional(),
});

/** A kind of object by its plural, as in the API's paths. */
export const KINDS = {
  nodes: 'Node',
  pods: 'Pod',
  events: 'Event',
  namespaces: 'Namespace',
  deployments: 'Deployment',
  replicasets: 'ReplicaSet',
  statefulsets: 'StatefulSet',
  daemonsets: 'DaemonSet',
  poddisruptionbudgets: 'PodDisruptionBudget',
} as const;
export type ResourceName = keyof typeof KINDS;
export const RESOURCE_NAMES = Object.keys(KINDS) as readonly ResourceName[];

/** The API version that a kind is served under; upstream's other versions are not served. */
export const API_VERSIONS = {
  nodes: 'v1',
  pods: 'v1',
  events: 'v1',
  namespaces: 'v1',
  deployments: 'apps/v1',
  replicasets: 'apps/v1',
  statefulsets: 'apps/v1',
  daemonsets: 'apps/v1',
  poddisruptionbudgets: 'policy/v1',
} as const satisfies Readonly<Record<ResourceName, string>>;
export type ApiVersion = (typeof API_VERSIONS)[ResourceName];

const drafted = <R extends ResourceName, Fields extends z.ZodRawShape>(resource: R, fields: Fields) =>
  z.looseObject({
    kind: z.literal(KINDS[resource]).default(KINDS[resource]),
    apiVersion: z.literal(API_VERSIONS[resource]).default(API_VERSIONS[resource]),
    metadata: draftMetadata.default({}),
    ...fields,
  });

const stored = <R extends ResourceName, Fields extends z.ZodRawShape>(resource: R, fields: Fields) =>
  z.looseObject({
    kind: z.literal(KINDS[resource]),
    apiVersion: z.literal(API_VERSIONS[resource]),
    metadata: storedMetadata,
    ...fields,
  });

const drafts = {
  nodes: drafted('nodes', node),
  pods: drafted('pods', pod),
  events: drafted('events', event),
  namespaces: drafted('namespaces', namespace),
  deployments: drafted('deployments', deployment),
  replicasets: drafted('replicasets', replicaSet),
  statefulsets: drafted('statefulsets', statefulSet),
  daemonsets: drafted('daemonsets', daemonSet),
  poddisruptionbudgets: drafted('poddisruptionbudgets', disruptionBudget),
};

const objects = {
  nodes: stored('nodes', node),
  pods: stored('pods', pod),
  events: stored('events', event),
  namespaces: stored('namespaces', namespace),
  deployments: stored('deployments', deployment),
  replicasets: stored('replicasets', replicaSet),
  statefulsets: stored('statefulsets', statefulSet),
  daemonsets: stored('daemonsets', daemonSet),
  poddisruptionbudgets: stored('poddisruptionbudgets', disruptionBudget),
};

/** A stored object. Objects are never changed in place: each change creates a new one. */
export type Objects = { readonly [R in ResourceName]: z.infer<(typeof objects)[R]> };
/** An object as requested by a client. */
export type Drafts = { readonly [R in ResourceName]: z.infer<(typeof drafts)[R]> };

export type NodeObject = Objects['nodes'];
export type PodObject = Objects['pods'];
export type DeploymentObject = Objects['deployments'];
export type ReplicaSetObject = Objects['replicasets'];
export type StatefulSetObject = Objects['statefulsets'];
export type DaemonSetObject = Objects['daemonsets'];
export type DisruptionBudgetObject = Objects['poddisruptionbudgets'];

/** The fields that objects of every kind have in common. */
export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: z.infer<typeof storedMetadata>;
  readonly [field: string]: unknown;
}

/** Reports whether an object is selected. */
export type Selector = (object: ApiObject) => boolean;

const draftSchemas: { readonly [R in ResourceName]: z.ZodType<Drafts[R]> } = drafts;
/** The schemas of stored objects. Throws `ZodError`. */
export const objectSchemas: { readonly [R in ResourceName]: z.ZodType<Objects[R]> } = objects;

/** Returns an object sent by a client after checking its shape. Throws 400. */
export function parseDraft<R extends ResourceName>(resource: R, body: unknown): Drafts[R] {
  const parsed = draftSchemas[resource].safeParse(withoutNulls(body));
  if (parsed.success) return parsed.data;
  const [kind, version] = [KINDS[resource], API_VERSIONS[resource].replace(/^.*\//, '')];
  throw badRequest(
    `${kind} in version "${version}" cannot be handled as a ${kind}: ${schemaFault(parsed.error)}`,
  );
}

/** The identity of an object within its kind: `namespace` is "" for nodes and namespaces. */
export interface ObjectRef {
  readonly namespace: string;
  readonly name: string;
}

export const refOf = (object: ApiObject): ObjectRef => ({
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name,
});

/** Returns the key by which the objects of a kind are stored and ordered. */
export const keyOf = ({ namespace, name }: ObjectRef): string => `${namespace}/${name}`;

/** Returns the workload, or other controller, that created an object and replaces it when it is deleted. */
export const controllerOf = ({ metadata }: ApiObject) =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

/** Returns a node's address inside the cluster; "" when it has none. */
export function internalIp(node: ApiObject): string {
  const addresses = itemsOf(fieldsOf(node['status'])['addresses']).map(fieldsOf);
  return textOf(addresses.find(({ type }) => type === 'InternalIP')?.['address']);
}

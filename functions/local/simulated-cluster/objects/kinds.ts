import * as z from 'zod';
import { fieldsOf, itemsOf, textOf, withoutNulls } from './json.ts';
import { badRequest, schemaFault } from './status.ts';

/**
 * The kinds of object the simulated cluster knows, as Kubernetes' own JSON. Only what is acted upon is declared;
 * every other field passes through untouched.
 */

/** Milliseconds since the Unix epoch. */
export type EpochMs = number;

/** `metav1.Time`: RFC 3339 in UTC, cut to the second. */
export const kubernetesTime = (at: EpochMs): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');

const text = z.string();
const texts = z.record(text, text);
const INT64_MAX = 2n ** 63n - 1n;

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
  labels: texts.exactOptional(),
  annotations: texts.exactOptional(),
  ownerReferences: z.array(ownerReference).exactOptional(),
};

/** Metadata as a client sends it: what only the server sets is dropped, as the real one does. */
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

/** Who owns which fields, and since when. Upstream: `metav1.ManagedFieldsEntry`. */
const managedFields = z.looseObject({ manager: text, time: text });

/** Metadata of an object that is there. */
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

const condition = z.looseObject({
  type: text.default(''),
  status: text.default(''),
  reason: text.exactOptional(),
  message: text.exactOptional(),
  lastTransitionTime: text.exactOptional(),
});

const taint = z.looseObject({
  key: text.default(''),
  value: text.exactOptional(),
  effect: text.default(''),
});

const toleration = z.looseObject({
  key: text.exactOptional(),
  operator: text.exactOptional(),
  value: text.exactOptional(),
  effect: text.exactOptional(),
  tolerationSeconds: z
    .union(
      [
        z.int(),
        z
          .bigint()
          .min(-INT64_MAX - 1n)
          .max(INT64_MAX),
      ],
      'must be a 64-bit integer',
    )
    .exactOptional(),
});

const container = z.looseObject({ name: text.default(''), image: text.exactOptional() });

const nodeSelectorTerm = z.looseObject({
  matchFields: z
    .array(z.looseObject({ key: text, operator: text, values: z.array(text).default([]) }))
    .exactOptional(),
});

const affinity = z.looseObject({
  nodeAffinity: z
    .looseObject({
      requiredDuringSchedulingIgnoredDuringExecution: z
        .looseObject({ nodeSelectorTerms: z.array(nodeSelectorTerm) })
        .exactOptional(),
    })
    .exactOptional(),
});

const node = {
  spec: z
    .looseObject({ taints: z.array(taint).exactOptional(), unschedulable: z.boolean().exactOptional() })
    .default({}),
  status: z.looseObject({ conditions: z.array(condition).exactOptional() }).default({}),
};

const pod = {
  spec: z
    .looseObject({
      nodeName: text.exactOptional(),
      nodeSelector: texts.exactOptional(),
      affinity: affinity.exactOptional(),
      schedulerName: text.exactOptional(),
      terminationGracePeriodSeconds: z.int().exactOptional(),
      containers: z.array(container).default([]),
      tolerations: z.array(toleration).exactOptional(),
    })
    .default({ containers: [] }),
  status: z
    .looseObject({ phase: text.exactOptional(), conditions: z.array(condition).exactOptional() })
    .default({}),
};

const event = {
  involvedObject: z
    .looseObject({ kind: text.exactOptional(), namespace: text.exactOptional(), name: text.exactOptional() })
    .default({}),
  reason: text.exactOptional(),
  message: text.exactOptional(),
  type: text.exactOptional(),
};

const namespace = {
  spec: z.looseObject({}).default({}),
  status: z.looseObject({ phase: text.exactOptional() }).default({}),
};

/** A kind of object by its plural, as in the API's paths. */
export const KINDS = { nodes: 'Node', pods: 'Pod', events: 'Event', namespaces: 'Namespace' } as const;
export type ResourceName = keyof typeof KINDS;
export const RESOURCE_NAMES = ['nodes', 'pods', 'events', 'namespaces'] as const satisfies ResourceName[];

const drafted = <R extends ResourceName, Fields extends z.ZodRawShape>(resource: R, fields: Fields) =>
  z.looseObject({
    kind: z.literal(KINDS[resource]).default(KINDS[resource]),
    apiVersion: z.literal('v1').default('v1'),
    metadata: draftMetadata.default({}),
    ...fields,
  });

const stored = <R extends ResourceName, Fields extends z.ZodRawShape>(resource: R, fields: Fields) =>
  z.looseObject({
    kind: z.literal(KINDS[resource]),
    apiVersion: z.literal('v1'),
    metadata: storedMetadata,
    ...fields,
  });

const drafts = {
  nodes: drafted('nodes', node),
  pods: drafted('pods', pod),
  events: drafted('events', event),
  namespaces: drafted('namespaces', namespace),
};

const objects = {
  nodes: stored('nodes', node),
  pods: stored('pods', pod),
  events: stored('events', event),
  namespaces: stored('namespaces', namespace),
};

/** An object that is there. Nothing changes one in place: each change makes a new one. */
export type Objects = { readonly [R in ResourceName]: z.infer<(typeof objects)[R]> };
/** An object as a client wants it. */
export type Drafts = { readonly [R in ResourceName]: z.infer<(typeof drafts)[R]> };

export type NodeObject = Objects['nodes'];
export type PodObject = Objects['pods'];
export type TolerationObject = z.infer<typeof toleration>;
export type ConditionObject = z.infer<typeof condition>;

/** What objects of every kind have in common. */
export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: z.infer<typeof storedMetadata>;
  readonly [field: string]: unknown;
}

/** Whether an object is one of those asked for. */
export type Selector = (object: ApiObject) => boolean;

const draftSchemas: { readonly [R in ResourceName]: z.ZodType<Drafts[R]> } = drafts;
/** What is kept. Throws `ZodError`. */
export const objectSchemas: { readonly [R in ResourceName]: z.ZodType<Objects[R]> } = objects;

/** What a client sent, its shape checked. Throws 400. */
export function parseDraft<R extends ResourceName>(resource: R, body: unknown): Drafts[R] {
  const parsed = draftSchemas[resource].safeParse(withoutNulls(body));
  if (parsed.success) return parsed.data;
  const kind = KINDS[resource];
  throw badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${schemaFault(parsed.error)}`);
}

/** Which object: `namespace` is "" for nodes and namespaces. */
export interface ObjectRef {
  readonly namespace: string;
  readonly name: string;
}

export const refOf = (object: ApiObject): ObjectRef => ({
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name,
});

/** One text for a ref, by which the objects of a kind are kept and ordered. */
export const keyOf = ({ namespace, name }: ObjectRef): string => `${namespace}/${name}`;

/** The workload, or the like, that made an object and replaces it when it goes. */
export const controllerOf = ({ metadata }: ApiObject) =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

/** A node's address inside the cluster; "" when it has none. */
export function internalIp(node: ApiObject): string {
  const addresses = itemsOf(fieldsOf(node['status'])['addresses']).map(fieldsOf);
  return textOf(addresses.find(({ type }) => type === 'InternalIP')?.['address']);
}

import { hash, randomUUID } from 'node:crypto';
import * as z from 'zod';
import {
  type DeletedPod,
  type Deletion,
  type Delta,
  type NodeDelta,
  type NodeFacts,
  onlyPod,
  type PodDelta,
  type PodFacts,
  type PodGoneDelta,
  type SeenTaint,
  type Version,
} from '#shared/eviction/facts.ts';
import {
  clusterName,
  type NodeRef,
  nodeKey,
  nodeName,
  type PodUid,
  podUid,
} from '#shared/eviction/identity.ts';
import { parseInt64 } from '#shared/taints/int64.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import type { KeysOf } from '#shared/text/schema-of.ts';
import { epochMs } from '#shared/time/epoch-ms.ts';
import { MAX_MESSAGE_BYTES } from './limits.ts';
import { parseMessage, RejectedMessageError } from './rejected-message.ts';
import { messageJson } from './sqs-message.ts';

/** The message format that this code writes, and the only one it reads. */
export const DELTA_MESSAGE_VERSION = 1;

const WHAT = 'delta message';

type Own<Of extends NodeFacts> = Omit<Of, 'ref'>;

const text = z.string().min(1);
/** An int64 as text, because most JSON parsers read a number as a double. */
const int64Text = z
  .string()
  .refine((written) => parseInt64(written) !== undefined, 'must be an int64 as text, for example "300"')
  .transform(BigInt);

const toleration = z.strictObject({
  key: z.string().exactOptional(),
  operator: z.string().exactOptional(),
  value: z.string().exactOptional(),
  effect: z.string().exactOptional(),
  tolerationSeconds: int64Text.exactOptional(),
  index: z.int().nonnegative().exactOptional(),
} satisfies KeysOf<Toleration>);

const seen = {
  key: text,
  value: z.string().exactOptional(),
  known: z.enum(['added', 'preexisting']),
  seenAt: epochMs,
  timeAdded: epochMs.exactOptional(),
} satisfies KeysOf<Omit<SeenTaint, 'effect' | 'virtual'>>;

const seenTaint = z.discriminatedUnion(
  'effect',
  [
    z.strictObject({ ...seen, effect: z.literal('NoExecute') }),
    z.strictObject({
      ...seen,
      effect: z.literal('NoSchedule'),
      virtual: z.literal(true, 'must be true: of NoSchedule taints, only virtual ones evict'),
    }),
  ],
  'must be NoExecute, or NoSchedule of a virtual taint: no other effect evicts',
);

const uid = text.transform(podUid);

/** A pod. `tolerations` is an index into the message's lists, because the pods of a node share a few lists. */
const pod = z.strictObject({
  uid,
  namespace: text,
  name: text,
  owner: z.strictObject({ kind: text, name: text }).exactOptional(),
  podSince: epochMs,
  tolerations: z.int().nonnegative(),
  rank: z.int().nonnegative().exactOptional(),
} satisfies KeysOf<PodFacts>);

/** A pod as it was before another client deleted it. */
const deletedPod = pod.extend({
  deleted: z.strictObject({
    at: epochMs,
    by: z.enum(['taint-manager', 'other']),
  } satisfies KeysOf<Deletion>),
} satisfies KeysOf<Omit<DeletedPod, keyof PodFacts>>);

const header = {
  v: z.literal(
    DELTA_MESSAGE_VERSION,
    `must be ${DELTA_MESSAGE_VERSION}: deploy relay and handlers from one release`,
  ),
  cluster: text.regex(/^[^#]+$/, 'must not contain #').transform(clusterName),
  node: text.regex(/^[^#]+$/, 'must not contain #').transform(nodeName),
  version: z.strictObject({
    epoch: z.int().nonnegative(),
    sequence: z.int().nonnegative(),
  } satisfies KeysOf<Version>),
  observedAt: epochMs,
  taints: z.array(seenTaint),
  taintsStamp: z.string().exactOptional(),
  deletedAt: epochMs.exactOptional(),
  guardRevision: z.int().nonnegative().exactOptional(),
} satisfies KeysOf<Own<NodeFacts>>;

const message = z.discriminatedUnion('kind', [
  z.strictObject({
    ...header,
    kind: z.literal('node'),
    tolerations: z.array(z.array(toleration)),
    pods: z.array(pod),
    others: z.array(uid).exactOptional(),
    deleted: z.array(deletedPod).exactOptional(),
    wake: z.boolean(),
    answeredAt: epochMs.exactOptional(),
  } satisfies KeysOf<Own<NodeDelta>>),
  z.strictObject({
    ...header,
    kind: z.literal('pod'),
    tolerations: z.tuple([z.array(toleration)]),
    pod,
  } satisfies KeysOf<Own<PodDelta>>),
  z.strictObject({
    ...header,
    kind: z.literal('pod-gone'),
    uid,
    tolerations: z.tuple([z.array(toleration)]).exactOptional(),
    deleted: deletedPod.exactOptional(),
  } satisfies KeysOf<Own<PodGoneDelta>>),
]);

/** Each distinct toleration list is written once. */
export function encodeDelta(delta: Delta): string {
  const { ref, version, observedAt, taintsStamp, deletedAt, guardRevision } = delta;
  const common = {
    v: DELTA_MESSAGE_VERSION,
    ...ref,
    version,
    observedAt,
    taints: delta.taints.map(plainTaint),
    taintsStamp,
    deletedAt,
    guardRevision,
  } satisfies KeysOf<Own<NodeFacts>>;
  const lists = new ToleratedLists();
  switch (delta.kind) {
    case 'node': {
      const { kind, others, wake, answeredAt } = delta;
      const pods = delta.pods.map((facts) => encodePod(facts, lists.indexOf(facts.tolerations)));
      const deleted = delta.deleted?.map((each) => encodeDeleted(each, lists.indexOf(each.tolerations)));
      const tolerations = lists.encoded;
      const encoded = { ...common, kind, tolerations, pods, others, deleted, wake, answeredAt };
      return messageJson(encoded satisfies KeysOf<Own<NodeDelta>>);
    }
    case 'pod': {
      const { kind } = delta;
      const pod = encodePod(delta.pod, lists.indexOf(delta.pod.tolerations));
      const encoded = { ...common, kind, tolerations: lists.encoded, pod };
      return messageJson(encoded satisfies KeysOf<Own<PodDelta>>);
    }
    case 'pod-gone': {
      const { kind, uid } = delta;
      const deleted = delta.deleted && encodeDeleted(delta.deleted, lists.indexOf(delta.deleted.tolerations));
      const encoded = { ...common, kind, uid, tolerations: deleted && lists.encoded, deleted };
      return messageJson(encoded satisfies KeysOf<Own<PodGoneDelta>>);
    }
    default:
      return delta satisfies never;
  }
}

/** If a node's delta is too large, its message has all UIDs, the facts of the pods that fit, and no `deleted`. */
export function deltaMessage(delta: Delta): { readonly delta: Delta; readonly body: string } {
  const body = encodeDelta(delta);
  if (delta.kind !== 'node' || Buffer.byteLength(body) <= MAX_MESSAGE_BYTES) return { delta, body };
  const fitting = whatFits(delta);
  return { delta: fitting, body: encodeDelta(fitting) };
}

function whatFits({ deleted: _untold, ...delta }: NodeDelta): NodeDelta {
  const uids = delta.pods.map(({ uid }) => uid);
  let room = MAX_MESSAGE_BYTES - Buffer.byteLength(encodeDelta({ ...delta, pods: [], others: uids }));
  const written = new Set<string>();
  const pods: PodFacts[] = [];
  const others: PodUid[] = [];
  for (const facts of delta.pods) {
    const list = messageJson(encodeTolerations(facts.tolerations));
    // The encoded index has at most as many digits as the number of pods. This pod's UID isn't among the others.
    const podBytes = itemBytes(messageJson(encodePod(facts, uids.length))) - itemBytes(`"${facts.uid}"`);
    const bytes = podBytes + (written.has(list) ? 0 : itemBytes(list));
    if (bytes > room) {
      others.push(facts.uid);
      continue;
    }
    room -= bytes;
    written.add(list);
    pods.push(facts);
  }
  return { ...delta, pods, others };
}

const itemBytes = (json: string): number => Buffer.byteLength(json) + 1;

/** Throws `RejectedMessageError`, one sentence with the first invalid field, unless exactly of this version. */
export function parseDelta(body: string): Delta {
  const { v: _version, cluster, node, ...fields } = parseMessage(WHAT, message, body);
  const ref = { cluster, node };
  switch (fields.kind) {
    case 'node': {
      const { tolerations, pods, deleted, ...facts } = fields;
      return {
        ...facts,
        ref,
        pods: pods.map((each, index) => parsePod(each, tolerations, `pods.${index}`)),
        ...(deleted && {
          deleted: deleted.map((each, index) => parsePod(each, tolerations, `deleted.${index}`)),
        }),
      };
    }
    case 'pod': {
      const { tolerations, pod: only, ...facts } = fields;
      return { ...facts, ref, pod: parsePod(only, tolerations, 'pod') };
    }
    case 'pod-gone': {
      const { tolerations = [], deleted, ...facts } = fields;
      return { ...facts, ref, ...(deleted && { deleted: parsePod(deleted, tolerations, 'deleted') }) };
    }
    default:
      return fields satisfies never;
  }
}

const encodePod = ({ uid, namespace, name, owner, podSince, rank }: PodFacts, tolerations: number) =>
  ({ uid, namespace, name, owner, podSince, tolerations, rank }) satisfies KeysOf<PodFacts>;

const encodeDeleted = ({ deleted, ...facts }: DeletedPod, tolerations: number) =>
  ({ ...encodePod(facts, tolerations), deleted }) satisfies KeysOf<DeletedPod>;

function parsePod<Encoded extends z.output<typeof pod>>(
  encoded: Encoded,
  lists: readonly (readonly Toleration[])[],
  path: string,
): Omit<Encoded, 'tolerations'> & { readonly tolerations: readonly Toleration[] } {
  const tolerations = lists[encoded.tolerations];
  if (!tolerations) {
    throw new RejectedMessageError(
      `${WHAT} rejected: ${path}.tolerations: there is no toleration list ${encoded.tolerations}`,
    );
  }
  return { ...encoded, tolerations };
}

/** Returns only the fields of a message: a taint may have more (a stored `since`). JSON omits `undefined`. */
const plainTaint = ({ key, value, effect, virtual, known, seenAt, timeAdded }: SeenTaint) =>
  ({ key, value: value || undefined, effect, virtual, known, seenAt, timeAdded }) satisfies KeysOf<SeenTaint>;

function encodeTolerations(list: readonly Toleration[]): readonly unknown[] {
  return list.map(({ tolerationSeconds, ...rest }) => ({
    ...rest,
    ...(tolerationSeconds === undefined ? {} : { tolerationSeconds: String(tolerationSeconds) }),
  }));
}

class ToleratedLists {
  readonly #indexByText = new Map<string, number>();
  readonly #indexByList = new Map<readonly Toleration[], number>();
  readonly encoded: unknown[] = [];

  indexOf(list: readonly Toleration[]): number {
    const known = this.#indexByList.get(list);
    if (known !== undefined) return known;
    const encoded = encodeTolerations(list);
    const key = JSON.stringify(encoded);
    const index = this.#indexByText.get(key) ?? this.encoded.push(encoded) - 1;
    this.#indexByText.set(key, index);
    this.#indexByList.set(list, index);
    return index;
  }
}

/**
 * A node's deltas stay in order, and nodes don't wait for each other. Hashed: a group ID has at most 128 characters.
 */
export function messageGroupId(ref: NodeRef): string {
  return hash('sha256', nodeKey(ref));
}

const SECRET = randomUUID();

/**
 * A hash of cluster, node or pod, and version: a repeated call enqueues nothing twice. No other process can compute it;
 * otherwise, a sender to the queue could have a delta dropped by sending its ID first.
 */
export function deduplicationId(delta: Delta): string {
  const { ref, version } = delta;
  const subject = `${nodeKey(ref)}#${onlyPod(delta) ?? 'node'}`;
  return hash('sha256', `${SECRET}#${subject}#${version.epoch}.${version.sequence}`);
}

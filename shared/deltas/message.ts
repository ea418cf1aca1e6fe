import * as z from 'zod';
import type { Delta, PodFacts, SeenTaint } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { MalformedMessageError, parseMessage } from '#shared/queues/malformed-message.ts';
import { parseInt64 } from '#shared/taints/int64.ts';
import type { Toleration } from '#shared/taints/taint.ts';

/** The message format this code writes, and the only one it reads. */
export const DELTA_MESSAGE_VERSION = 1;

const WHAT = 'delta message';

const epochMs = z.int().nonnegative();
const text = z.string().min(1);
/** An int64 as text, because a JSON number is a double to most who read it. */
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
});

const seenTaint = z.strictObject({
  key: text,
  value: z.string().exactOptional(),
  effect: z.literal('NoExecute', 'must be NoExecute: no other effect evicts'),
  known: z.enum(['appeared', 'found']),
  seenAt: epochMs,
  timeAdded: epochMs.exactOptional(),
});

const uid = text.transform(podUid);

/** A pod; `tolerations` is an index into the message's lists, because the pods of a node share a few. */
const pod = z.strictObject({
  uid,
  namespace: text,
  name: text,
  podSince: epochMs,
  tolerations: z.int().nonnegative(),
});

const header = {
  v: z.literal(
    DELTA_MESSAGE_VERSION,
    `must be ${DELTA_MESSAGE_VERSION}: deploy relay and handlers from one release`,
  ),
  cluster: text.regex(/^[^#]+$/, 'must not contain #').transform(clusterName),
  node: text.regex(/^[^#]+$/, 'must not contain #').transform(nodeName),
  version: z.strictObject({ epoch: z.int().nonnegative(), sequence: z.int().nonnegative() }),
  observedAt: epochMs,
  taints: z.array(seenTaint),
  deletedAt: epochMs.exactOptional(),
};

const message = z.discriminatedUnion('kind', [
  z.strictObject({
    ...header,
    kind: z.literal('node'),
    tolerations: z.array(z.array(toleration)),
    pods: z.array(pod),
    wake: z.boolean(),
  }),
  z.strictObject({
    ...header,
    kind: z.literal('pod'),
    tolerations: z.tuple([z.array(toleration)]),
    pod,
  }),
  z.strictObject({ ...header, kind: z.literal('pod-gone'), uid }),
]);

/** A delta as the text of one SQS message; each distinct toleration list is written once. */
export function encodeDelta(delta: Delta): string {
  const { ref, version, observedAt, deletedAt } = delta;
  const common = {
    v: DELTA_MESSAGE_VERSION,
    ...ref,
    version,
    observedAt,
    taints: delta.taints.map(plainTaint),
    ...(deletedAt === undefined ? {} : { deletedAt }),
  };
  switch (delta.kind) {
    case 'node': {
      const lists = new ToleratedLists();
      const pods = delta.pods.map((facts) => encodePod(facts, lists.indexOf(facts.tolerations)));
      return JSON.stringify({ ...common, kind: 'node', tolerations: lists.encoded, pods, wake: delta.wake });
    }
    case 'pod': {
      const lists = new ToleratedLists();
      const encoded = encodePod(delta.pod, lists.indexOf(delta.pod.tolerations));
      return JSON.stringify({ ...common, kind: 'pod', tolerations: lists.encoded, pod: encoded });
    }
    case 'pod-gone':
      return JSON.stringify({ ...common, kind: 'pod-gone', uid: delta.uid });
    default:
      return delta satisfies never;
  }
}

/**
 * Reads a delta message. Throws `MalformedMessageError` with one sentence that names the first field at fault, for
 * anything that is not exactly a message of this version.
 */
export function parseDelta(body: string): Delta {
  const { v: _version, cluster, node, ...fields } = parseMessage(WHAT, message, body);
  const ref = { cluster, node };
  switch (fields.kind) {
    case 'node': {
      const { tolerations, pods, ...facts } = fields;
      return {
        ...facts,
        ref,
        pods: pods.map((each, index) => parsePod(each, tolerations, `pods.${index}`)),
      };
    }
    case 'pod': {
      const { tolerations, pod: only, ...facts } = fields;
      return { ...facts, ref, pod: parsePod(only, tolerations, 'pod') };
    }
    case 'pod-gone':
      return { ...fields, ref };
    default:
      return fields satisfies never;
  }
}

type EncodedPod = z.input<typeof pod>;

function encodePod(facts: PodFacts, tolerations: number): EncodedPod {
  return {
    uid: facts.uid,
    namespace: facts.namespace,
    name: facts.name,
    podSince: facts.podSince,
    tolerations,
  };
}

function parsePod(
  encoded: z.output<typeof pod>,
  lists: readonly (readonly Toleration[])[],
  path: string,
): PodFacts {
  const tolerations = lists[encoded.tolerations];
  if (!tolerations) {
    throw new MalformedMessageError(
      `${WHAT} refused: ${path}.tolerations: there is no toleration list ${encoded.tolerations}`,
    );
  }
  return { ...encoded, tolerations };
}

/** Taints may carry more than a message holds (a stored `since`). */
function plainTaint({ key, value, effect, known, seenAt, timeAdded }: SeenTaint): SeenTaint {
  const added = timeAdded === undefined ? {} : { timeAdded };
  return { key, ...(value ? { value } : {}), effect, known, seenAt, ...added };
}

/** Distinct toleration lists, in the order in which they were met. */
class ToleratedLists {
  readonly #indexByText = new Map<string, number>();
  readonly #indexByList = new Map<readonly Toleration[], number>();
  readonly encoded: unknown[] = [];

  indexOf(list: readonly Toleration[]): number {
    const known = this.#indexByList.get(list);
    if (known !== undefined) return known;
    const encoded = list.map(({ tolerationSeconds, ...rest }) =>
      tolerationSeconds === undefined ? rest : { ...rest, tolerationSeconds: String(tolerationSeconds) },
    );
    const key = JSON.stringify(encoded);
    const index = this.#indexByText.get(key) ?? this.encoded.push(encoded) - 1;
    this.#indexByText.set(key, index);
    this.#indexByList.set(list, index);
    return index;
  }
}

import { hash } from 'node:crypto';
import * as z from 'zod';
import type { SetAside } from '#shared/engine/evict/ports.ts';
import type { CancelledPod, CancelledPods, Countdown } from '#shared/engine/news.ts';
import {
  type ClusterName,
  clusterName,
  type NodeRef,
  nodeName,
  type PodUid,
  podUid,
} from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { type EpochMs, epochMs } from '#shared/time/epoch-ms.ts';
import { MAX_ID_CHARACTERS } from './limits.ts';
import { messageJson } from './message-json.ts';
import { parseMessage } from './rejected-message.ts';

/** The message format this code writes, and the only one it reads. */
export const DUE_MESSAGE_VERSION = 1;

/** Bytes of one message on `evictions-due`: SQS takes 1 MiB, but its stand-ins and old queues take this much. */
export const MAX_DUE_MESSAGE_BYTES = 256 * 1024;

/**
 * The group of what is due in a cluster: its name. A longer one than SQS takes, as ARNs of clusters can be, is hashed; then no agent
 * is for it, whose messages are told apart by that name.
 */
export const dueGroupId = (cluster: ClusterName): string =>
  cluster.length > MAX_ID_CHARACTERS ? hash('sha256', cluster) : cluster;

const text = z.string().min(1);

const header = {
  v: z.literal(DUE_MESSAGE_VERSION, `must be ${DUE_MESSAGE_VERSION}: deploy all functions from one release`),
  cluster: text.regex(/^[^#]+$/, 'must not contain #').transform(clusterName),
  node: text.regex(/^[^#]+$/, 'must not contain #').transform(nodeName),
};

const dueMessage = z.discriminatedUnion('kind', [
  z.strictObject({ ...header, kind: z.literal('due'), at: epochMs }),
  z.strictObject({
    ...header,
    kind: z.literal('cancelled'),
    version: z.strictObject({ epoch: z.int().nonnegative(), sequence: z.int().nonnegative() }),
    pods: z.array(z.strictObject({ uid: text.transform(podUid), namespace: text, name: text })).min(1),
  }),
  z.strictObject({
    ...header,
    kind: z.literal('countdowns'),
    pods: z
      .array(
        z.strictObject({
          uid: text.transform(podUid),
          namespace: text,
          name: text,
          fireAt: epochMs,
          moved: z.boolean(),
          because: z.array(
            z.strictObject({
              taint: text,
              toleration: z.int().nonnegative().exactOptional(),
              seconds: z.int().nonnegative(),
            }),
          ),
        }),
      )
      .min(1),
  }),
  z.strictObject({ ...header, kind: z.literal('retry'), pods: z.array(text.transform(podUid)).min(1) }),
]);

/**
 * What travels on `evictions-due`:
 * - `due`: look at that node; something falls due there at `at`.
 * - `cancelled`: announce that these pods will not be evicted, as of the delta of that version.
 * - `countdowns`: announce that these pods are to be evicted, and when and why.
 * - `retry`: try these pods again that were given up. A dead letter of this kind tells what was given up.
 */
export type DueMessage = z.output<typeof dueMessage>;

/** "Look at that node at that time", as the text of one message. */
export function encodeDue({ cluster, node, at }: NodeRef & { readonly at: EpochMs }): string {
  return messageJson({ v: DUE_MESSAGE_VERSION, kind: 'due', cluster, node, at } satisfies EncodedMessage);
}

/** "These evictions were cancelled", as the texts of as few messages as hold them; none for no pods. */
export function encodeCancelled({ cluster, node, version, pods }: CancelledPods): string[] {
  const encode = (some: readonly CancelledPod[]) =>
    messageJson({
      v: DUE_MESSAGE_VERSION,
      kind: 'cancelled',
      cluster,
      node,
      version: { epoch: version.epoch, sequence: version.sequence },
      pods: some.map(({ uid, namespace, name }) => ({ uid, namespace, name })),
    } satisfies EncodedMessage);
  return inMessages(pods, encode);
}

/** "These pods are to go at those moments", as the texts of as few messages as hold them; none for no pods. */
export function encodeCountdowns({
  cluster,
  node,
  pods,
}: NodeRef & { readonly pods: readonly Countdown[] }): string[] {
  const encode = (some: readonly Countdown[]) =>
    messageJson({
      v: DUE_MESSAGE_VERSION,
      kind: 'countdowns',
      cluster,
      node,
      pods: some.map(({ because, ...pod }) => ({ ...pod, because: [...because] })),
    } satisfies EncodedMessage);
  return inMessages(pods, encode);
}

/** The texts of as few messages as hold these pods, none of them too large; none for no pods. */
function inMessages<Pod>(pods: readonly Pod[], encode: (some: readonly Pod[]) => string): string[] {
  const none = Buffer.byteLength(encode([]));
  // The first pod comes without a comma.
  const empty = none - ','.length;
  const messages: string[] = [];
  let some: Pod[] = [];
  let bytes = empty;
  for (const pod of pods) {
    const podBytes = Buffer.byteLength(encode([pod])) - none + ','.length;
    if (some.length > 0 && bytes + podBytes > MAX_DUE_MESSAGE_BYTES) {
      messages.push(encode(some));
      some = [];
      bytes = empty;
    }
    some.push(pod);
    bytes += podBytes;
  }
  return some.length === 0 ? messages : [...messages, encode(some)];
}

/** "Try these pods again that were given up", as the text of one message. A node runs some hundred pods at most. */
export function encodeRetry({ cluster, node, pods }: NodeRef & { readonly pods: readonly PodUid[] }): string {
  return messageJson({
    v: DUE_MESSAGE_VERSION,
    kind: 'retry',
    cluster,
    node,
    pods: [...pods],
  } satisfies EncodedMessage);
}

type EncodedMessage = z.input<typeof dueMessage>;

/**
 * Reads a message of `evictions-due`. Throws `MalformedMessageError` with one sentence that names the first field at
 * fault, for anything that is not exactly a message of this version.
 */
export const parseDueMessage = (body: string): DueMessage => parseMessage('due message', dueMessage, body);

/**
 * Copies failed evictions into a dead-letter queue, as messages that retry them when they are redriven. Rejects when the queue does not
 * take one.
 */
export const settingAside =
  (deadLetters: QueueSender): SetAside =>
  async (ref, pods, reason) => {
    const message = {
      body: encodeRetry({ ...ref, pods }),
      groupId: dueGroupId(ref.cluster),
      attributes: { reason },
    };
    const [failure] = await deadLetters.send([message]);
    if (failure) throw new Error(`the dead-letter queue rejected a failed eviction: ${failure.reason}`);
  };

import { hash } from 'node:crypto';
import * as z from 'zod';
import type { SetAside } from '#shared/engine/evict/ports.ts';
import type { Because, CanceledPod, CanceledPods, Countdown } from '#shared/engine/news.ts';
import {
  type ClusterName,
  clusterName,
  type NodeRef,
  nodeName,
  type PodUid,
  podUid,
} from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { KeysOf } from '#shared/text/schema-of.ts';
import { type EpochMs, epochMs } from '#shared/time/epoch-ms.ts';
import { MAX_ID_CHARACTERS } from './limits.ts';
import { parseMessage } from './rejected-message.ts';
import { messageJson } from './sqs-message.ts';

/** The message format that this code writes, and the only one it reads. */
export const DUE_MESSAGE_VERSION = 1;

/** SQS accepts 1 MiB, but its stand-ins and old queues accept only this much. */
export const MAX_DUE_MESSAGE_BYTES = 256 * 1024;

/**
 * The cluster's name, hashed if it is too long for SQS. Such a cluster has no agent: the name routes messages to
 * agents.
 */
export const dueGroupId = (cluster: ClusterName): string =>
  cluster.length > MAX_ID_CHARACTERS ? hash('sha256', cluster) : cluster;

const text = z.string().min(1);

const header = {
  v: z.literal(DUE_MESSAGE_VERSION, `must be ${DUE_MESSAGE_VERSION}: deploy all functions from one release`),
  cluster: text.regex(/^[^#]+$/, 'must not contain #').transform(clusterName),
  node: text.regex(/^[^#]+$/, 'must not contain #').transform(nodeName),
};

const canceledPod = {
  uid: text.transform(podUid),
  namespace: text,
  name: text,
} satisfies KeysOf<CanceledPod>;

const dueMessage = z.discriminatedUnion('kind', [
  z.strictObject({ ...header, kind: z.literal('due'), at: epochMs }),
  z.strictObject({
    ...header,
    kind: z.literal('canceled'),
    version: z.strictObject({ epoch: z.int().nonnegative(), sequence: z.int().nonnegative() }),
    pods: z.array(z.strictObject(canceledPod)).min(1),
  }),
  z.strictObject({
    ...header,
    kind: z.literal('countdowns'),
    pods: z
      .array(
        z.strictObject({
          ...canceledPod,
          dueAt: epochMs,
          moved: z.boolean(),
          because: z.array(
            z.strictObject({
              taint: text,
              toleration: z.int().nonnegative().exactOptional(),
              seconds: z.int().nonnegative(),
            } satisfies KeysOf<Because>),
          ),
        } satisfies KeysOf<Countdown>),
      )
      .min(1),
  }),
  z.strictObject({ ...header, kind: z.literal('retry'), pods: z.array(text.transform(podUid)).min(1) }),
]);

/**
 * A message on `evictions-due`:
 * - `due`: check that node; a deadline on it is at `at`.
 * - `canceled`: announce that these evictions are canceled, as of the delta of that version.
 * - `countdowns`: announce these pods' evictions, with deadlines and causes.
 * - `retry`: retry these pods' failed evictions. A dead letter of this kind lists the failed evictions.
 */
export type DueMessage = z.output<typeof dueMessage>;

export function encodeDue({ cluster, node, at }: NodeRef & { readonly at: EpochMs }): string {
  return messageJson({ v: DUE_MESSAGE_VERSION, kind: 'due', cluster, node, at } satisfies EncodedMessage);
}

/** Encodes canceled evictions as the texts of as few messages as hold them. Returns none for no pods. */
export function encodeCanceled({ cluster, node, version, pods }: CanceledPods): string[] {
  const encode = (some: readonly CanceledPod[]) =>
    messageJson({
      v: DUE_MESSAGE_VERSION,
      kind: 'canceled',
      cluster,
      node,
      version: { epoch: version.epoch, sequence: version.sequence },
      pods: some.map(({ uid, namespace, name }) => ({ uid, namespace, name }) satisfies KeysOf<CanceledPod>),
    } satisfies EncodedMessage);
  return inMessages(pods, encode);
}

/** Encodes scheduled evictions as the texts of as few messages as hold them. Returns none for no pods. */
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

/** Encodes "retry these pods' failed evictions" as the text of one message. A node runs some hundred pods at most. */
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

/** Throws `RejectedMessageError`, one sentence with the first invalid field, unless exactly of this version. */
export const parseDueMessage = (body: string): DueMessage => parseMessage('due message', dueMessage, body);

/** Copies failed evictions into a dead-letter queue; redriven, they are retried. Rejects when it does not take one. */
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

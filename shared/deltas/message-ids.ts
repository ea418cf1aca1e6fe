import { createHash } from 'node:crypto';
import type { Delta } from '#shared/eviction/facts.ts';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';

/**
 * The message group: all deltas of one node stay in order, nodes do not wait for each other. Hashed, because a
 * group id holds 128 characters and a cluster and a node name may have more.
 */
export function messageGroupId(ref: NodeRef): string {
  return sha256(nodeKey(ref));
}

/** What a delta tells of, within its node: the node itself (and all its pods), or a pod by its UID. */
export function deltaObject(delta: Delta): string {
  switch (delta.kind) {
    case 'node':
      return 'node';
    case 'pod':
      return delta.pod.uid;
    case 'pod-gone':
      return delta.uid;
    default:
      return delta satisfies never;
  }
}

/** The deduplication id: cluster, object, version. A relay that is not sure it sent a delta may send it again. */
export function deduplicationId(delta: Delta): string {
  return sha256(
    `${nodeKey(delta.ref)}#${deltaObject(delta)}#${delta.version.epoch}.${delta.version.sequence}`,
  );
}

/** 64 characters, all of those that SQS allows in an id. */
function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

import { createHash } from 'node:crypto';
import { type Delta, onlyPod } from '#shared/eviction/facts.ts';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';

/**
 * The message group: all deltas of one node stay in order, nodes do not wait for each other. Hashed, because a
 * group id holds 128 characters and a cluster and a node name may have more.
 */
export function messageGroupId(ref: NodeRef): string {
  return sha256(nodeKey(ref));
}

/** The deduplication id: cluster, node or pod, version. A call that is repeated because its answer was lost tells nothing twice. */
export function deduplicationId(delta: Delta): string {
  const { ref, version } = delta;
  return sha256(`${nodeKey(ref)}#${onlyPod(delta) ?? 'node'}#${version.epoch}.${version.sequence}`);
}

/** 64 characters, all of those that SQS allows in an id. */
function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

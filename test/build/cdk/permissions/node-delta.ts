import type { NodeDelta } from '#shared/eviction/facts.ts';
import { type NodeRef, podUid } from '#shared/eviction/identity.ts';

/** Seconds for which the pods of {@link nodeDeltaOf} tolerate the taint; `undefined`: they do not. */
export const TOLERATED = [undefined, 60n, 86_400n];

/**
 * Returns the delta that a relay sends for a node with the taint `now`, and pods that are due immediately, in a minute,
 * and in a day.
 */
export function nodeDeltaOf(
  ref: NodeRef,
  uids: readonly string[],
  epoch: number,
  taintsStamp = '',
): NodeDelta {
  const now = Date.now();
  return {
    kind: 'node' as const,
    ref,
    version: { epoch, sequence: 1 },
    observedAt: now,
    wake: false,
    taintsStamp,
    taints: [{ key: 'now', effect: 'NoExecute', known: 'added', seenAt: now - 1_000 }],
    pods: uids.map((uid, index) => ({
      uid: podUid(uid),
      namespace: 'permissions',
      name: podName(ref, index),
      podSince: now - 60_000,
      tolerations:
        TOLERATED[index] === undefined
          ? []
          : [{ key: 'now', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: TOLERATED[index] }],
    })),
  };
}

/** Returns the name of a node's pod; the pods are ordered by their deadlines. */
export const podName = ({ cluster }: NodeRef, index: number): string => `${cluster}-pod-${index}`;

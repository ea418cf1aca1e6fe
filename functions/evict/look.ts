import type { NodeRef } from '#shared/eviction/identity.ts';
import type { Look } from '#shared/eviction/judge.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { KubernetesApi, LivePod } from '#shared/kubernetes/api.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Looks at the live node and at its due pods. Rejects with `ApiError`. */
export async function lookAt(
  api: KubernetesApi,
  ref: NodeRef,
  due: readonly EvictionRecord[],
  clock: Clock,
): Promise<Look<LivePod>> {
  // Dated before it is taken: what is seen is at least as new.
  const at = clock.now();
  const [node, pods] = await Promise.all([api.getNode(ref.node), api.podsOnNode(ref.node, due)]);
  return { at, taints: node?.taints, pods: new Map(pods.map((pod) => [pod.uid, pod])) };
}

/** Looks at the node alone once more. */
export async function lookAgain(
  api: KubernetesApi,
  ref: NodeRef,
  look: Look<LivePod>,
  clock: Clock,
): Promise<Look<LivePod>> {
  const at = clock.now();
  const node = await api.getNode(ref.node);
  return { ...look, at, taints: node?.taints };
}

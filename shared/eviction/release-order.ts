import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Owner } from './facts.ts';
import type { PodUid } from './identity.ts';

export interface HeldPod {
  readonly uid: PodUid;
  readonly owner?: Owner | undefined;
  readonly namespace: string;
  readonly dueAt: EpochMs;
}

/**
 * Pods that were held together are evicted in rounds, each with one pod of each owner, by deadline: no workload loses
 * all pods while others still have theirs. Pods without an owner are in the first round.
 */
export function releaseOrder(pods: readonly HeldPod[]): readonly PodUid[] {
  const byDeadline = [...pods].sort((a, b) => a.dueAt - b.dueAt || (a.uid < b.uid ? -1 : 1));
  const rounds: HeldPod[][] = [];
  const ofOwner = new Map<string, number>();
  for (const pod of byDeadline) {
    const { owner, namespace, uid } = pod;
    const key = owner ? `${namespace}/${owner.kind}/${owner.name}` : uid;
    const round = ofOwner.get(key) ?? 0;
    ofOwner.set(key, round + 1);
    const others = rounds[round];
    if (others) others.push(pod);
    else rounds[round] = [pod];
  }
  return rounds.flat().map(({ uid }) => uid);
}

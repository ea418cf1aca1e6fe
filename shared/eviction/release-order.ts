import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodUid } from './identity.ts';

/** A pod that is to go when it is let go. */
export interface HeldPod {
  readonly uid: PodUid;
  readonly owner?: { readonly kind: string; readonly name: string } | undefined;
  readonly namespace: string;
  /** Its deadline. */
  readonly dueAt: EpochMs;
}

/**
 * The order in which pods go that were held together: in rounds, of each owner one pod in a round, the one that fell due
 * first, and in a round by deadlines. So a workload is not taken away as a whole while others still stand. A pod without an
 * owner goes in the first round.
 */
export function releaseOrder(pods: readonly HeldPod[]): readonly PodUid[] {
  // Equivalent mutant (EqualityOperator): No two pods have one UID.
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

import type { LiveTaint, MatchOptions, Toleration } from '#shared/taints/taint.ts';
import { whyCancelled } from './cancellation.ts';
import type { EpochMs, PodUid } from './identity.ts';
import { timeLiveTaints } from './node-state.ts';
import { podDeadlines } from './pod-deadline.ts';
import type { CancelReason, EvictionRecord, NodeState } from './records.ts';

/** A pod as the API server shows it at fire time. */
export interface SeenPod {
  readonly uid: PodUid;
  readonly tolerations: readonly Toleration[];
  readonly terminating: boolean;
  /** Marked by a taint manager before it was deleted. */
  readonly disrupted: boolean;
}

/** One look at a live node and at the pods that are due there. */
export interface Look<Pod extends SeenPod = SeenPod> {
  readonly at: EpochMs;
  /** The node's taints, all effects; `undefined`: there is no such node. */
  readonly taints: readonly LiveTaint[] | undefined;
  readonly pods: ReadonlyMap<PodUid, Pod>;
}

/** What is to be done with one due record. */
export type Verdict =
  | { readonly kind: 'evict'; readonly record: EvictionRecord }
  /** It went already: after an eviction (`done`) or otherwise (`gone`). */
  | { readonly kind: 'end'; readonly record: EvictionRecord; readonly outcome: 'done' | 'gone' }
  | { readonly kind: 'cancel'; readonly record: EvictionRecord; readonly because: CancelReason }
  /** Live state moves the deadline; the record as it is to be stored. */
  | { readonly kind: 'reschedule'; readonly record: EvictionRecord };

/**
 * Decides each due record once more, on live state, by the rule that scheduled it: what live state contradicts
 * is corrected, not executed. Upstream never looks again (semantics of the built-in controller: the timer that
 * runs is the decision), which is how it evicts pods of nodes that are no longer tainted.
 */
export function judge(
  node: NodeState | undefined,
  due: readonly EvictionRecord[],
  look: Look,
  options: MatchOptions,
): readonly Verdict[] {
  const taints = look.taints ? timeLiveTaints(node, look.taints, look.at) : (node?.taints ?? []);
  const deletedAt = look.taints ? undefined : (node?.deletedAt ?? look.at);
  const deadlineOf = podDeadlines(taints, deletedAt, options);
  return due.map((record): Verdict => {
    const pod = look.pods.get(record.uid);
    if (!pod) return { kind: 'end', record, outcome: 'gone' };
    if (pod.terminating) return { kind: 'end', record, outcome: pod.disrupted ? 'done' : 'gone' };
    const deadline = deadlineOf(pod.tolerations, record.podSince);
    if (!deadline) return { kind: 'cancel', record, because: whyCancelled(record, taints) };
    if (deadline.at > look.at) {
      return { kind: 'reschedule', record: { ...record, fireAt: deadline.at, because: deadline.because } };
    }
    return { kind: 'evict', record };
  });
}

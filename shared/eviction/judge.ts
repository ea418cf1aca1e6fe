import type { LiveTaint, MatchOptions, Toleration } from '#shared/taints/taint.ts';
import type { EpochMs, PodUid } from './identity.ts';
import { isDoubtful, timeLiveTaints } from './node-state.ts';
import { podDeadlines } from './pod-deadline.ts';
import { type CancelReason, type EvictionRecord, type NodeState, whyCancelled } from './records.ts';

/** A pod as the API server shows it at fire time. */
export interface SeenPod {
  readonly uid: PodUid;
  readonly tolerations: readonly Toleration[];
  readonly terminating: boolean;
  /** Marked by a taint manager before it was deleted. */
  readonly disrupted: boolean;
}

/** One look at a live node. */
export interface NodeLook {
  /** When the look began: what it shows is at least as new. */
  readonly at: EpochMs;
  /** The node's taints, all effects; `undefined`: there is no such node. */
  readonly taints: readonly LiveTaint[] | undefined;
  /** Who wrote that list last, and when; see `LiveNode`. */
  readonly taintsStamp?: string | undefined;
}

/** What is to be done with one due record. */
export type Verdict =
  | { readonly kind: 'evict' }
  /** It went already: after an eviction (`done`) or otherwise (`gone`). */
  | { readonly kind: 'end'; readonly outcome: 'done' | 'gone' }
  | { readonly kind: 'cancel'; readonly because: CancelReason }
  /** Live state moves the deadline; the record as it is to be stored. */
  | { readonly kind: 'reschedule'; readonly record: EvictionRecord }
  /**
   * Somebody wrote the node's taints since the relay last told of them: what it tells next may put the pod off, for
   * a taint that went and came back starts its countdown anew.
   */
  | { readonly kind: 'behind' };

/** So long after its deadline a pod waits for what the relay is about to tell; after that nobody tells. */
export const BEHIND_PATIENCE_MS = 60_000;

/**
 * Decides due records once more, on live state, by the rule that scheduled them: what live state contradicts is
 * corrected, not executed. Returns what decides each record with its pod, `undefined` where it is not on the node.
 * Upstream never looks again (semantics of the built-in controller: the timer that runs is the decision), which is
 * how it evicts pods of nodes that are no longer tainted.
 */
export function judge(
  node: NodeState | undefined,
  look: NodeLook,
  options: MatchOptions,
): (record: EvictionRecord, pod: SeenPod | undefined) => Verdict {
  // A node that is gone keeps its last taints, but for those it may have lost before.
  const last = node?.taints.filter((taint) => !isDoubtful(node, taint)) ?? [];
  const taints = look.taints ? timeLiveTaints(node, look.taints, look.at) : last;
  const deletedAt = look.taints ? undefined : (node?.deletedAt ?? look.at);
  const behind = node !== undefined && look.taints !== undefined && look.taintsStamp !== node.taintsStamp;
  const deadlineOf = podDeadlines(taints, deletedAt, options);
  return (record, pod) => {
    if (!pod) return { kind: 'end', outcome: 'gone' };
    if (pod.terminating) return { kind: 'end', outcome: pod.disrupted ? 'done' : 'gone' };
    const deadline = deadlineOf(pod.tolerations, record.podSince);
    if (!deadline) return { kind: 'cancel', because: whyCancelled(record, taints) };
    if (deadline.at > look.at) {
      // What failed before was another deadline's eviction.
      const { failure: _failure, ...rest } = record;
      return { kind: 'reschedule', record: { ...rest, fireAt: deadline.at, reasons: deadline.reasons } };
    }
    // Live state may have moved the deadline since the pod's record was written.
    const overdueMs = look.at - Math.max(record.fireAt, deadline.at);
    return behind && overdueMs < BEHIND_PATIENCE_MS ? { kind: 'behind' } : { kind: 'evict' };
  };
}

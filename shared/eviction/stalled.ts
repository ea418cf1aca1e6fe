import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodFacts, SeenTaint } from './facts.ts';
import type { NodeName, PodUid } from './identity.ts';
import { isSameTaint } from './node-state.ts';
import { podDeadlines } from './pod-deadline.ts';
import type { Rules } from './policy.ts';
import { isTombstone, type Partition } from './records.ts';
import { overdueFrom } from './retry.ts';

/** How long an eviction may be overdue, or a step before it missing, before the built-in controller should evict instead. */
export const MAX_OVERDUE_MS = 60_000;

/** A node that is down, in the relay's own view. */
export interface DownNode {
  readonly node: NodeName;
  readonly taints: readonly SeenTaint[];
  readonly deletedAt?: EpochMs;
  /** Absent: its pods are not listed yet. */
  readonly pods?: readonly PodFacts[];
}

/** The first step that is missing, so that evictions from a node that is down do not proceed. */
export type Stall =
  | { readonly kind: 'unlisted' | 'unstored'; readonly node: NodeName }
  | { readonly kind: 'unscheduled'; readonly node: NodeName; readonly pods: readonly PodFacts[] }
  | { readonly kind: 'overdue'; readonly node: NodeName; readonly overdueMs: number };

export interface StallRules {
  readonly rules: Pick<Rules, 'matching' | 'policy'>;
  /** The epoch of the relay's own lease. */
  readonly epoch: number;
  readonly now: EpochMs;
  /** Reports whether a taint has been there for so long, under the relay's lease, that the store must have it. */
  readonly isSettled: (taint: SeenTaint) => boolean;
}

/**
 * Returns the first step that is missing for the evictions of a node; `undefined`: they proceed. `partition`: as it
 * is stored. The steps are:
 * - The node's pods are listed.
 * - The node's record is stored under our epoch, with the current taints.
 * - Each pod that does not tolerate these taints has a record.
 * - None of these records is overdue. An eviction that is held, or failed permanently, is not overdue.
 */
export function stallOf(down: DownNode, partition: Partition, given: StallRules): Stall | undefined {
  const { node, taints, deletedAt, pods } = down;
  const { rules, epoch, now, isSettled } = given;
  const overdueMs = overdueOf(partition, now);
  if (overdueMs > MAX_OVERDUE_MS) return { kind: 'overdue', node, overdueMs };
  const settled = taints.filter(isSettled);
  if (settled.length === 0) return undefined;
  if (!pods) return { kind: 'unlisted', node };
  const { node: stored, scheduled, ended } = partition;
  // A deleted node keeps only those of its last taints that are not in doubt.
  const lacks = (taint: SeenTaint) =>
    deletedAt === undefined && !stored?.taints.some((each) => isSameTaint(each, taint));
  if (stored?.podsVersion?.epoch !== epoch || settled.some(lacks)) return { kind: 'unstored', node };
  const deadlineOf = podDeadlines(stored.taints, stored.deletedAt, rules);
  const isOver = (uid: PodUid) => {
    const end = ended.get(uid);
    return end !== undefined && (isTombstone(end) || end.outcome === 'failed');
  };
  const missing = pods.filter(
    ({ uid, tolerations, podSince }) =>
      !scheduled.has(uid) && !isOver(uid) && deadlineOf(tolerations, podSince) !== undefined,
  );
  return missing.length === 0 ? undefined : { kind: 'unscheduled', node, pods: missing };
}

/** Returns for how long the longest due eviction of a node is overdue, in ms; 0: none is. */
function overdueOf({ scheduled, node }: Partition, now: EpochMs): number {
  const moments = [...scheduled.values()].map((record) => overdueFrom(record, node) ?? Infinity);
  return now - Math.min(now, ...moments);
}

export function stallText(stall: Stall): string {
  switch (stall.kind) {
    case 'unlisted':
      return `node ${stall.node} is down, and the relay hasn't listed its pods`;
    case 'unstored':
      return `node ${stall.node} is down, and its stored state is out of date: its deltas aren't sent or processed`;
    case 'unscheduled': {
      const [pod] = stall.pods;
      return `node ${stall.node} is down, and its pod ${pod?.namespace}/${pod?.name} has no stored deadline`;
    }
    case 'overdue':
      return `an eviction is overdue by ${durationText(stall.overdueMs)}`;
    default:
      return stall satisfies never;
  }
}

import type { LiveTaint } from '#shared/taints/taint.ts';
import type { Evidence } from './facts.ts';
import type { EpochMs, NodeRef, PodUid } from './identity.ts';
import type { Version } from './version.ts';

/** A NoExecute taint of a node, with the moment its countdown started. */
export interface TimedTaint extends LiveTaint {
  /** When its countdown started. Only ever rises while the taint stands. */
  readonly since: EpochMs;
  /** How that is known. */
  readonly known: Evidence;
}

/** What is known of a node: the NODE item. */
export interface NodeState {
  readonly taints: readonly TimedTaint[];
  /** Of the newest delta whose node facts these are. */
  readonly version: Version;
  /** When they were true. */
  readonly observedAt: EpochMs;
  /** Of the newest delta that spoke of all its pods: an older one has nothing to say about any of them. */
  readonly podsVersion?: Version;
  /** When the Node object went; its last known taints then stand for the pods that were there. */
  readonly deletedAt?: EpochMs;
}

/** One pod that is to be evicted at `fireAt`: the SCHEDULED item. */
export interface EvictionRecord {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  /** The controller that runs the pod. */
  readonly owner?: { readonly kind: string; readonly name: string };
  /** When the pod was bound to the node. */
  readonly podSince: EpochMs;
  /** When this eviction was first scheduled. */
  readonly startedAt: EpochMs;
  readonly fireAt: EpochMs;
  /** The taints that set `fireAt`, as kubectl prints them. */
  readonly because: readonly string[];
  /** Of the newest delta that changed this record or spoke of this pod alone. */
  readonly version: Version;
}

/**
 * What became of a scheduled eviction.
 * - `done`, `gone`: tombstones (evicted by us; vanished otherwise). A UID never returns, so no delta ever revives them.
 * - `cancelled`: nothing calls for it any more, or the pod is listed no longer.
 * - `gave-up`: it could not be done for too long.
 * - `unregistered`: its cluster is managed no longer.
 * - `would-have`: it was due, and policy only observes.
 *
 * All but tombstones may be scheduled again.
 */
export type Outcome = 'done' | 'gone' | 'cancelled' | 'gave-up' | 'unregistered' | 'would-have';

/** Why a scheduled eviction will not happen. */
export type CancelReason = 'taint-removed' | 'tolerated-forever' | 'pod-gone';

/** How one pod's record ends. */
export interface Ending {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly podSince: EpochMs;
  readonly fireAt: EpochMs;
  readonly outcome: Outcome;
  /** The taints that set `fireAt`, as kubectl prints them. */
  readonly because: readonly string[];
  /** How long after `fireAt` it was done. */
  readonly lateMs?: number;
  readonly cancelled?: CancelReason;
  /** Why it could not be done. */
  readonly error?: string;
  /** Of the record, or of the delta that ended it. */
  readonly version: Version;
}

/** A record that has ended: tombstone, and history. */
export interface EndedPod extends Ending {
  readonly endedAt: EpochMs;
}

/** A record, and what became of it. */
export function ending(
  record: EvictionRecord,
  how: Pick<Ending, 'outcome' | 'lateMs' | 'cancelled' | 'error'>,
  version = record.version,
): Ending {
  const { uid, namespace, name, podSince, fireAt, because } = record;
  return { uid, namespace, name, podSince, fireAt, because, version, ...how };
}

/** Whether it keeps its pod from being scheduled again. */
export const isTombstone = ({ outcome }: Ending): boolean => outcome === 'done' || outcome === 'gone';

/** What is stored of one node, as read together. */
export interface Partition {
  readonly ref: NodeRef;
  /** The lock: the number of changes so far; 0 when nothing was ever stored. */
  readonly revision: number;
  readonly node: NodeState | undefined;
  readonly scheduled: ReadonlyMap<PodUid, EvictionRecord>;
  /** The newest end of each pod whose record ended lately; unless it is a tombstone, the pod may be scheduled again. */
  readonly ended: ReadonlyMap<PodUid, EndedPod>;
}

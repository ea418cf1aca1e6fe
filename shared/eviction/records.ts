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

/**
 * - `scheduled`: is to be evicted at `fireAt`.
 * - `cancelled`: nothing calls for its eviction any more, or the pod is listed no longer; may be scheduled again.
 * - `done`, `gone`: tombstones (evicted by us; vanished otherwise). No delta ever revives them.
 */
export type EvictionState = 'scheduled' | 'cancelled' | 'done' | 'gone';

/** One pod's timed eviction: the EVICTION item. */
export interface EvictionRecord {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  /** When the pod was bound to the node. */
  readonly podSince: EpochMs;
  /** When this eviction was first scheduled. */
  readonly startedAt: EpochMs;
  readonly fireAt: EpochMs;
  /** The taints that set `fireAt`, as kubectl prints them. */
  readonly because: readonly string[];
  /** Of the newest delta that changed this record or spoke of this pod alone. */
  readonly version: Version;
  readonly state: EvictionState;
}

/** A tombstone keeps its pod's key from being added again. */
export function isTombstone(record: EvictionRecord): boolean {
  return record.state === 'done' || record.state === 'gone';
}

/** One node's items, as read together. */
export interface Partition {
  readonly ref: NodeRef;
  /** The lock: the number of commits so far; 0 when nothing was ever stored. */
  readonly revision: number;
  readonly node: NodeState | undefined;
  readonly evictions: ReadonlyMap<PodUid, EvictionRecord>;
}

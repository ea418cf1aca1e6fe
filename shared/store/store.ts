import type { ClusterName, EpochMs, NodeName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord, NodeState, Partition } from '#shared/eviction/records.ts';

/** What of a node's partition to read besides its NODE item. */
export type Scope =
  /** Every eviction record, tombstones included. */
  | { readonly kind: 'all' }
  /** The records of these pods only; for a pod delta. */
  | { readonly kind: 'pods'; readonly uids: readonly PodUid[] }
  /** The scheduled records with `fireAt` at or before this moment; for `evict`. */
  | { readonly kind: 'due'; readonly now: EpochMs };

export interface Commit {
  /** The NODE item's new content; absent = unchanged (the revision grows all the same). */
  readonly node?: NodeState;
  /** Records to write, each whole. */
  readonly evictions: readonly EvictionRecord[];
  /**
   * Whether the partition holds anything live after this commit: a tainted or deleted-but-awaited node, or a
   * scheduled record. When not, its NODE item gets a TTL.
   */
  readonly live: boolean;
}

/** How an eviction ended. */
export interface Outcome {
  readonly uid: PodUid;
  readonly state: 'done' | 'gone';
}

/** A node whose NODE item holds taints. */
export interface TaintedNode {
  readonly node: NodeName;
  readonly state: NodeState;
}

/** A moment at which something is due on a node. */
export interface Upcoming {
  readonly ref: NodeRef;
  readonly fireAt: EpochMs;
}

/**
 * Where timed evictions live: one partition per node, one lock per partition. Reads that decide are strongly
 * consistent. Every method rejects with `StoreError` when the store cannot be reached or refuses.
 */
export interface Store {
  /** Reads a node's partition, strongly consistent. */
  load(ref: NodeRef, scope: Scope): Promise<Partition>;

  /**
   * Writes on condition that the partition's revision is still `revision`, then increments it. All or nothing
   * up to 99 records; beyond that in chunks, each under the lock, the NODE item's new content with the last,
   * so that a crash in between leaves a partition that the same delta completes.
   * `'conflict'`: somebody else committed first, or settled one of these records, which stays a tombstone
   * (nothing, or only earlier chunks, written): load and plan again.
   */
  commit(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<'committed' | 'conflict'>;

  /**
   * Turns records that are still scheduled into tombstones, whatever the revision: an eviction that happened
   * has happened. Returns the pods whose record this call changed; the others were settled before.
   */
  settle(ref: NodeRef, outcomes: readonly Outcome[], now: EpochMs): Promise<ReadonlySet<PodUid>>;

  /** The nodes of a cluster whose NODE item holds taints; may lag behind by a moment. */
  taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode>;

  /** Distinct moments at which scheduled records fall due, soonest first; may lag behind by a moment. */
  upcoming(): AsyncIterable<Upcoming>;
}

/** The store could not be reached or refused; the message says what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

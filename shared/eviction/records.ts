import type { LiveTaint, Taint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { EvictionGate } from './eviction-gate.ts';
import type { Deletion, Owner, TaintOrigin, Version } from './facts.ts';
import type { NodeRef, PodUid } from './identity.ts';

/** A taint of a node that evicts, with the start of its countdown. */
export interface TimedTaint extends LiveTaint {
  /** When the countdown started. The time only increases while the taint is present. */
  readonly since: EpochMs;
  readonly known: TaintOrigin;
}

/** The stored state of a node: the NODE item. */
export interface NodeState {
  readonly taints: readonly TimedTaint[];
  /** Version of the newest delta with these facts about the node. */
  readonly version: Version;
  /** When these facts were true. */
  readonly observedAt: EpochMs;
  /** Version of the newest delta that listed all pods of the node. An older delta decides nothing about any of them. */
  readonly podsVersion?: Version;
  /** When the Node object was deleted. Its last known taints then apply to the pods that were there. */
  readonly deletedAt?: EpochMs;
  /** Last writer of the node's taints, and the time of the write, as the API server reported them. */
  readonly taintsStamp?: string;
  /** The guard's revision when these facts were reported. Older rules lack trips that apply to them. */
  readonly guardRevision?: number;
  /** Set after evictions failed on this node: when all of them are retried together. */
  readonly retry?: NodeRetry;
  /** Set while the API server does not answer: when the node is tried again. Its failures keep their next try. */
  readonly outage?: NodeOutage;
  /** Set while the Eviction API blocks pods of this node: when their evictions are requested again, all together. */
  readonly blocked?: NodeBlocked;
}

/** The next try of all pods of a node that the Eviction API blocks. */
export interface NodeBlocked {
  /** Consecutive tries in which the API blocked all pods. */
  readonly attempts: number;
  readonly nextTryAt: EpochMs;
}

/** Reports whether a node has taints that evict, as far as known. Only deltas of the relay remove the last of them. */
export const isTainted = (node: NodeState | undefined): boolean => (node?.taints.length ?? 0) > 0;

export interface NodeRetry {
  /** Consecutive failed tries; 0: an answer of the server, or an operator, ended the wait early. */
  readonly attempts: number;
  readonly nextTryAt: EpochMs;
  /** When the first of these tries failed. With `everything`: since when the cluster accepts no requests. */
  readonly since: EpochMs;
  readonly error: string;
  /** The cluster accepted no requests for this node, so all evictions wait. Otherwise, only failed evictions wait. */
  readonly everything: boolean;
}

/** The next try of all evictions of a node whose API server does not answer. */
export interface NodeOutage extends NodeRetry {
  /** When the newest failed try began. Only a later answer ends the wait. */
  readonly triedAt: EpochMs;
}

/** One pod that is to be evicted at `dueAt`: the SCHEDULED item. */
export interface EvictionRecord {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly owner?: Owner;
  readonly podSince: EpochMs;
  /** When this eviction was first scheduled. */
  readonly startedAt: EpochMs;
  readonly dueAt: EpochMs;
  readonly causes: readonly Cause[];
  /** Version of the newest delta that changed this record or was about this pod alone. */
  readonly version: Version;
  /** The eviction failed, and is retried with the next try of its node. */
  readonly failure?: Failure;
  /** When the eviction failed permanently. It is not retried until the pod changes or an operator requests it. */
  readonly gaveUpAt?: EpochMs;
  /** The eviction is due, and a gate holds it. It is not processed until the gate opens. */
  readonly held?: Held;
  /** The Eviction API blocks this pod for now. The eviction is requested again. */
  readonly blocked?: Blocked;
  /** The pod was held, or got no turn, and is processed again in its turn: not before this time. */
  readonly notBefore?: EpochMs;
  /** The pod's turn under the rates of its cluster: it asks for a permit then. */
  readonly turnAt?: EpochMs;
  /** The pod was held past its deadline. From then on, until its record ends, its eviction needs a release permit. */
  readonly drains?: true;
  /** The pod is a static pod, and its kubelet recreated it after its eviction on this node. */
  readonly recreated?: true;
}

/**
 * A gate may release many pods together, so their evictions need release permits. A workload limit is one by itself.
 */
export function heldRecord(record: EvictionRecord, held: Held): EvictionRecord & { readonly held: Held } {
  return { ...record, held, ...(held.by.kind === 'workload-limit' ? {} : { drains: true }) };
}

/** Reports whether the eviction needs a release permit. Older releases stored only that a record is held. */
export const drainsOnRelease = ({ drains, held }: EvictionRecord): boolean =>
  drains === true || (held !== undefined && held.by.kind !== 'workload-limit');

export interface Held {
  readonly by: EvictionGate;
  readonly since: EpochMs;
  /** When the record is processed again if nothing else happens. */
  readonly until?: EpochMs;
}

export interface Blocked extends Block {
  /** When the API first blocked the pod. Time for which the pod was held since then does not count. */
  readonly since: EpochMs;
  /**
   * Not requested again before this time. Later tries are stored on the node alone, which avoids a write for each pod.
   */
  readonly nextTryAt: EpochMs;
}

export interface Block {
  /** A webhook or an admission policy rejected the eviction; absent: a disruption budget did. */
  readonly by?: 'admission';
  readonly reason: string;
}

/** A cause of a pod's deadline: a taint that set it, and how the pod tolerates the taint. */
export interface Cause {
  readonly taint: Omit<Taint, 'virtual'>;
  /** When the taint's countdown started, and how that is known. */
  readonly since: EpochMs;
  readonly known: TaintOrigin;
  /** Index of the toleration that counts in the pod's list; absent: no toleration matches the taint. */
  readonly toleration?: number;
  readonly seconds: number;
  /** A field of the cluster's policy, or `takeover`, the note of a pod that is taken over. */
  readonly policy?: string;
}

export interface Failure {
  /** When the eviction was first tried. */
  readonly since: EpochMs;
  readonly error: string;
}

/**
 * The outcome of a scheduled eviction.
 * - `evicted`, `already-gone`: tombstones (evicted by us; vanished otherwise). UIDs are never reused, so no delta ever
 *   revives them.
 * - `canceled`: nothing requires the eviction any more, or the pod is no longer listed.
 * - `failed`: the eviction failed for too long.
 * - `unregistered`: the cluster is no longer managed.
 * - `would-evict`: the eviction was due, and policy only observes.
 *
 * All but tombstones may be scheduled again.
 */
export type Outcome = 'evicted' | 'already-gone' | 'canceled' | 'failed' | 'unregistered' | 'would-evict';

export type CancelReason = 'taint-removed' | 'tolerated-forever' | 'pod-gone';

export interface FinalRecord {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly podSince: EpochMs;
  readonly startedAt?: EpochMs;
  readonly dueAt: EpochMs;
  readonly outcome: Outcome;
  readonly causes: readonly Cause[];
  /** How long after `dueAt` the pod was evicted, in ms. */
  readonly delayMs?: number;
  readonly cancelReason?: CancelReason;
  readonly error?: string;
  readonly deleted?: Deletion;
  /** With `deleted`: the gate that held the pod, or would have. */
  readonly by?: EvictionGate;
  /** Version of the record, or of the delta that ended it. */
  readonly version: Version;
}

export interface EndedPod extends FinalRecord {
  readonly endedAt: EpochMs;
}

export function ending(
  record: EvictionRecord,
  how: Pick<FinalRecord, 'outcome' | 'delayMs' | 'cancelReason' | 'error' | 'deleted' | 'by'>,
  version = record.version,
): FinalRecord {
  const { uid, namespace, name, podSince, startedAt, dueAt, causes } = record;
  return { uid, namespace, name, podSince, startedAt, dueAt, causes, version, ...how };
}

export const isTombstone = ({ outcome }: FinalRecord): boolean =>
  outcome === 'evicted' || outcome === 'already-gone';

/**
 * Reports whether a cancellation is posted as an Event: not if another taint manager evicted the pod, or it vanished
 * when due. To observers, both are evictions.
 */
export function isAnnounced({ cancelReason, dueAt, deleted }: FinalRecord, observedAt: EpochMs): boolean {
  return deleted?.by !== 'taint-manager' && (cancelReason !== 'pod-gone' || dueAt > observedAt);
}

/** Returns why a scheduled pod no longer has a deadline: the taints that set it were removed, or are tolerated by now. */
export function whyCanceled(record: EvictionRecord, taints: readonly TimedTaint[]): CancelReason {
  const there = ({ taint: { key } }: Cause) => taints.some((taint) => taint.key === key);
  return record.causes.some(there) ? 'tolerated-forever' : 'taint-removed';
}

export interface Partition {
  readonly ref: NodeRef;
  /** The lock: the number of changes so far; 0 if nothing was ever stored. */
  readonly revision: number;
  readonly node: NodeState | undefined;
  readonly scheduled: ReadonlyMap<PodUid, EvictionRecord>;
  /** The newest final record of each pod whose record ended recently. All but tombstones may be scheduled again. */
  readonly ended: ReadonlyMap<PodUid, EndedPod>;
}

/** Returns the partition of a node without stored data. */
export const emptyPartition = (ref: NodeRef): Partition => ({
  ref,
  revision: 0,
  node: undefined,
  scheduled: new Map(),
  ended: new Map(),
});

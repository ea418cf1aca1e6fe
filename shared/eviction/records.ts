import type { LiveTaint, Taint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { EvictionGate } from './eviction-gate.ts';
import type { Deletion, Evidence, Version } from './facts.ts';
import type { NodeRef, PodUid } from './identity.ts';

/** A taint of a node that evicts, with the moment its countdown started. */
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
  /** Who wrote the node's taints last, and when, by the API server's word; as the newest delta told. */
  readonly taintsStamp?: string;
  /** The guard had come so far when these facts were told: older rules say too little about them. */
  readonly guardRevision?: number;
  /** Evictions failed here: when they are tried again, all together. */
  readonly retry?: NodeRetry;
  /** The Eviction API refuses pods here: when they are asked for again, all together. */
  readonly blocked?: NodeBlocked;
}

/** The next try of all pods of a node that the Eviction API refuses. */
export interface NodeBlocked {
  /** Tries in a row of which each was refused for all pods. */
  readonly attempts: number;
  readonly nextTryAt: EpochMs;
}

/** Whether anything evicts pods from a node, as far as is known. Only the relay's deltas say that nothing does any more. */
export const isTainted = (node: NodeState | undefined): boolean => (node?.taints.length ?? 0) > 0;

/** The next try of all that failed on a node. */
export interface NodeRetry {
  /** Tries that failed in a row. */
  readonly attempts: number;
  readonly nextTryAt: EpochMs;
  /** When the first of them failed; once the cluster lets nothing be done: since when it does not. */
  readonly since: EpochMs;
  readonly error: string;
  /** The cluster let nothing be done here, so everything waits; else only what failed by itself. */
  readonly everything: boolean;
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
  /** What set `fireAt`. */
  readonly reasons: readonly DeadlineCause[];
  /** Of the newest delta that changed this record or spoke of this pod alone. */
  readonly version: Version;
  /** Its eviction failed, and is tried again with the next try of its node. */
  readonly failure?: Failure;
  /** It failed for so long that it is left alone, until something about it changes or an operator asks. */
  readonly gaveUpAt?: EpochMs;
  /** It was due, and something forbade it; it is left alone until nothing does any more. */
  readonly held?: Held;
  /** The Eviction API refuses this pod for now; it is asked for again. */
  readonly blocked?: Blocked;
  /** It was held, or found no turn, and is looked at again in its turn: not before this moment. */
  readonly notBefore?: EpochMs;
  /** Its turn under the rates of its cluster: it comes for a permit then. */
  readonly turnAt?: EpochMs;
  /** It was held past its deadline: from then on, until its record ends, it needs a permit of those that are released. */
  readonly drains?: true;
}

/** A record that is held; whatever lets it go, many may go with it. Each workload has a limit of its own. */
export function heldRecord(record: EvictionRecord, held: Held): EvictionRecord & { readonly held: Held } {
  return { ...record, held, ...(held.by.kind === 'workload-limit' ? {} : { drains: true }) };
}

/** Reports whether a record needs a permit of those that are released. A release before noted only that it is held. */
export const drainsOnRelease = ({ drains, held }: EvictionRecord): boolean =>
  drains === true || (held !== undefined && held.by.kind !== 'workload-limit');

/** What keeps an eviction from happening that is due. */
export interface Held {
  readonly by: EvictionGate;
  readonly since: EpochMs;
  /** When it is to be looked at again, should nothing else happen. */
  readonly until?: EpochMs;
}

/** That the Eviction API refuses to evict a pod for now. */
export interface Blocked extends Block {
  /** When it did so first; the time for which the pod was held since does not count. */
  readonly since: EpochMs;
  /** It is not asked for before; later tries stand on its node alone, so that they do not write each pod. */
  readonly nextTryAt: EpochMs;
}

/** Why the Eviction API refused a pod. */
export interface Block {
  /** A webhook or an admission policy refused it; absent: its disruption budget. */
  readonly by?: 'admission';
  /** What the API server said. */
  readonly reason: string;
}

/** Why a pod must go at its moment: one taint that set it, and what the pod has to say of that. */
export interface DeadlineCause {
  readonly taint: Taint;
  /** When the taint's countdown started, and how that is known. */
  readonly since: EpochMs;
  readonly known: Evidence;
  /** Where the toleration that counts stands in the pod's list; absent: none tolerates the taint. */
  readonly toleration?: number;
  /** For so long it is tolerated. */
  readonly seconds: number;
  /** What changed this: a field of the cluster's policy, or `takeover`, the note of a pod that is taken over. */
  readonly policy?: string;
}

/** That a pod could not be evicted. */
export interface Failure {
  /** When that was tried first. */
  readonly since: EpochMs;
  readonly error: string;
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
export interface FinalRecord {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly podSince: EpochMs;
  /** When it was first scheduled; absent: it never was. */
  readonly startedAt?: EpochMs;
  readonly fireAt: EpochMs;
  readonly outcome: Outcome;
  /** What set `fireAt`. */
  readonly reasons: readonly DeadlineCause[];
  /** How long after `fireAt` it was done. */
  readonly lateMs?: number;
  readonly cancelled?: CancelReason;
  /** Why it could not be done. */
  readonly error?: string;
  /** Somebody else deleted the pod. */
  readonly deleted?: Deletion;
  /** Of the record, or of the delta that ended it. */
  readonly version: Version;
}

/** A record that has ended: tombstone, and history. */
export interface EndedPod extends FinalRecord {
  readonly endedAt: EpochMs;
}

/** A record, and what became of it. */
export function ending(
  record: EvictionRecord,
  how: Pick<FinalRecord, 'outcome' | 'lateMs' | 'cancelled' | 'error' | 'deleted'>,
  version = record.version,
): FinalRecord {
  const { uid, namespace, name, podSince, startedAt, fireAt, reasons } = record;
  return { uid, namespace, name, podSince, startedAt, fireAt, reasons, version, ...how };
}

/** Whether it keeps its pod from being scheduled again. */
export const isTombstone = ({ outcome }: FinalRecord): boolean => outcome === 'done' || outcome === 'gone';

/**
 * Whether a cancellation is worth an Event: not for a pod that another taint manager evicted, or that vanished when it was
 * due already, because that is what an eviction looks like from outside.
 */
export function isAnnounced({ cancelled, fireAt, deleted }: FinalRecord, observedAt: EpochMs): boolean {
  return deleted?.by !== 'taint-manager' && (cancelled !== 'pod-gone' || fireAt > observedAt);
}

/** Why a pod that was scheduled has no deadline any more: the taints that set it went, or are now tolerated. */
export function whyCancelled(record: EvictionRecord, taints: readonly TimedTaint[]): CancelReason {
  const there = ({ taint: { key } }: DeadlineCause) => taints.some((taint) => taint.key === key);
  return record.reasons.some(there) ? 'tolerated-forever' : 'taint-removed';
}

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

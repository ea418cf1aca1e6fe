import type { Taint, Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { NodeRef, PodUid } from './identity.ts';

/** How often a relay resends all tainted nodes, so that missed changes are corrected. */
export const RESYNC_MS = 10 * 60_000;
/** Deltas older than this decide nothing: two resyncs have superseded them. */
export const DELTA_MAX_AGE_MS = 2 * RESYNC_MS;

/**
 * How the start of a countdown is known.
 * - `added`: the node was seen without the taint, and with it from then on.
 * - `preexisting`: the taint was there at the first observation; it may have been there for longer.
 */
export type TaintOrigin = 'added' | 'preexisting';

/** A taint that evicts, as the relay reports it. */
export interface SeenTaint extends Taint {
  readonly known: TaintOrigin;
  /** When the taint appeared, or was found, on the node. */
  readonly seenAt: EpochMs;
  /** The taint's own time; only the node controllers set it. */
  readonly timeAdded?: EpochMs;
}

/** Kubernetes truncates times to the second, so an event may be later than its time by up to this much. */
const TRUNCATED_MS = 999;

/** The latest time of an event that Kubernetes dates `named` and that was seen by `seenAt`. */
export const latestOf = (named: EpochMs, seenAt: EpochMs): EpochMs =>
  Math.max(named, Math.min(seenAt, named + TRUNCATED_MS));

/** How far the clock of an API server, or of another process, may be ahead. */
export const MAX_AHEAD_MS = 30_000;

/**
 * Reports whether a time is too late for an event seen by `seenAt`. Objects may name any time, as kubelets write them.
 */
export const isAhead = (named: EpochMs, seenAt: EpochMs): boolean => named > seenAt + MAX_AHEAD_MS;

/** Returns when something began that was seen by `seenAt`: at the named time, unless that {@link isAhead}. */
export const begunBy = (named: EpochMs, seenAt: EpochMs): EpochMs =>
  isAhead(named, seenAt) ? seenAt : named;

export const earliest = (moments: readonly (EpochMs | undefined)[]): EpochMs | undefined =>
  moments.reduce(
    (least, moment) => (moment === undefined || (least ?? moment + 1) <= moment ? least : moment),
    undefined,
  );

/** A controller that pods belong to, in their namespace: the one that their owner references name, or one behind it. */
export interface Owner {
  readonly kind: string;
  readonly name: string;
}

/** The facts about a pod that decide its eviction. */
export interface PodFacts {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly owner?: Owner;
  /** When the pod was bound to the node, as exactly as the relay observed it. */
  readonly podSince: EpochMs;
  /** In a delta, only the tolerations that count under the delta's taints, each with its index in the pod's list. */
  readonly tolerations: readonly Toleration[];
  /** With a wake: the pod's place among all pods of the cluster that may have been held, in release order. */
  readonly rank?: number;
}

/**
 * Traits by which policy selects a pod. Only the API server shows them all: deltas and records have the owner alone.
 */
export interface PodTraits extends Pick<PodFacts, 'owner'> {
  /** Absent: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Those with a value of at most `MAX_ANNOTATION_CHARACTERS`; absent: none. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly priorityClassName?: string;
}

/**
 * The position of a delta in one total order per cluster. The epoch, from the cluster's lease, grows with every
 * failover: all that a relay sends after it lost its lease is older. The sequence is the relay's own counter.
 */
export interface Version {
  readonly epoch: number;
  readonly sequence: number;
}

/** A delta's name in logs. No number: tools that read logs would treat 7.4 and 7.40 as equal. */
export const deltaId = ({ epoch, sequence }: Version): string => `${epoch}-${sequence}`;

/** Returns a negative number when `a` is older than `b`, 0 when they are equal, and a positive number when `a` is newer. */
export function compareVersions(a: Version, b: Version): number {
  return a.epoch - b.epoch || a.sequence - b.sequence;
}

export function newer(a: Version | undefined, b: Version | undefined): Version | undefined {
  if (!a || !b) return a ?? b;
  return compareVersions(a, b) < 0 ? b : a;
}

/** The facts in every delta: as of `version`, the node has these taints that evict. */
export interface NodeFacts {
  readonly ref: NodeRef;
  readonly version: Version;
  readonly observedAt: EpochMs;
  readonly taints: readonly SeenTaint[];
  /** Last writer of the node's taints, and the time of the write, as the API server reports them; absent: it does not. */
  readonly taintsStamp?: string;
  /**
   * When the Node object was deleted. Its last taints then apply to the pods that were there: `taints`, or the stored
   * ones if that is empty (a relay that never saw them).
   */
  readonly deletedAt?: EpochMs;
  /** The guard's revision, as it was stored before this delta was made; absent: the guard never tripped. */
  readonly guardRevision?: number;
}

/** By another actor than this service: the built-in controller (`taint-manager`), or anybody else (`other`). */
export interface Deletion {
  readonly at: EpochMs;
  readonly by: 'taint-manager' | 'other';
}

export interface DeletedPod extends PodFacts {
  readonly deleted: Deletion;
}

/** All pods bound to a node: decides the whole node in one step. */
export interface NodeDelta extends NodeFacts {
  readonly kind: 'node';
  readonly pods: readonly PodFacts[];
  /** Pods of the node whose facts don't fit into the message, if any. Each follows as a pod delta. */
  readonly others?: readonly PodUid[];
  /** Pods that another actor deleted recently, and that are no longer among the node's pods. */
  readonly deleted?: readonly DeletedPod[];
  /**
   * Sent after a gap (failover, unreachable cluster) or a change of rules: overdue evictions are processed immediately,
   * unless they wait for a next try. Without it, they are left to the timer that is being retried: otherwise, a cluster
   * that blocks evictions for days would get a timer with every resync.
   */
  readonly wake: boolean;
  /** With a wake: when the API server first answered the relay, or answered again after an outage. */
  readonly answeredAt?: EpochMs;
}

/** One pod appeared on a tainted node, or changed its tolerations there. */
export interface PodDelta extends NodeFacts {
  readonly kind: 'pod';
  readonly pod: PodFacts;
}

/** One pod was removed from a tainted node, for good: UIDs are never reused. */
export interface PodGoneDelta extends NodeFacts {
  readonly kind: 'pod-gone';
  readonly uid: PodUid;
  /** Absent: this service deleted the pod, or the actor is unknown. */
  readonly deleted?: DeletedPod;
}

export type Delta = NodeDelta | PodDelta | PodGoneDelta;

export function onlyPod(delta: Delta): PodUid | undefined {
  switch (delta.kind) {
    case 'node':
      return undefined;
    case 'pod':
      return delta.pod.uid;
    case 'pod-gone':
      return delta.uid;
    default:
      return delta satisfies never;
  }
}

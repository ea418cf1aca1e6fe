import type { Taint, Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { NodeRef, PodUid } from './identity.ts';

/** How often a relay sends everything tainted again, so that whatever was missed heals. */
export const RESYNC_MS = 10 * 60_000;
/** A delta older than this decides nothing any more: two resyncs have told the truth since. */
export const DELTA_MAX_AGE_MS = 2 * RESYNC_MS;

/**
 * How it is known since when a countdown runs.
 * - `appeared`: the node was seen without the taint, and with it from then on.
 * - `found`: the taint was there when somebody began to look; it may have been there for longer.
 */
export type Evidence = 'appeared' | 'found';

/** A taint that evicts, as the relay reports it. */
export interface SeenTaint extends Taint {
  readonly known: Evidence;
  /** When this taint's countdown appeared, or was found, on the node. */
  readonly seenAt: EpochMs;
  /** What the taint itself says; only the node controllers set it. */
  readonly timeAdded?: EpochMs;
}

/** Kubernetes cuts moments to the second, so what it names may have been up to this much later. */
const TRUNCATED_MS = 999;

/** The latest that a moment named by Kubernetes may have been, of what was seen to be so by `seenAt`. */
export const latestOf = (named: EpochMs, seenAt: EpochMs): EpochMs =>
  Math.max(named, Math.min(seenAt, named + TRUNCATED_MS));

/** By so much the clock of an API server, or of another process, may be ahead. */
const MAX_AHEAD_MS = 30_000;

/**
 * Reports whether a time cannot be that of something that was seen by `seenAt`. An object may name any: a kubelet writes
 * the conditions of its pods.
 */
export const isAhead = (named: EpochMs, seenAt: EpochMs): boolean => named > seenAt + MAX_AHEAD_MS;

/** The time at which something began that was seen by `seenAt`: as it is named, unless that {@link isAhead}. */
export const begunBy = (named: EpochMs, seenAt: EpochMs): EpochMs =>
  isAhead(named, seenAt) ? seenAt : named;

/** What deciding needs to know of a pod. */
export interface PodFacts {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  /** The controller that runs it. */
  readonly owner?: { readonly kind: string; readonly name: string };
  /** When it was bound to the node, as exactly as the relay knows. */
  readonly podSince: EpochMs;
  /** In a delta only those that decide under the delta's taints, each with its index in the pod's list. */
  readonly tolerations: readonly Toleration[];
  /** With a wake: its place among all pods of the cluster that may have been held, in the order in which they are to go. */
  readonly rank?: number;
}

/**
 * When a delta was true, as one total order per cluster: the epoch comes from the cluster's lease and grows
 * with every take-over, so whatever a relay that lost its lease still sends is older; the sequence is the
 * relay's own counter.
 */
export interface Version {
  readonly epoch: number;
  readonly sequence: number;
}

/** Names a delta within its cluster, as logs do. No number: what reads logs would take 7.4 and 7.40 for the same. */
export const deltaId = ({ epoch, sequence }: Version): string => `${epoch}-${sequence}`;

/** Negative when `a` is older than `b`, 0 when they are the same, positive when `a` is newer. */
export function compareVersions(a: Version, b: Version): number {
  return a.epoch - b.epoch || a.sequence - b.sequence;
}

/** The newer of two versions, or the one there is. */
export function newer(a: Version | undefined, b: Version | undefined): Version | undefined {
  if (!a || !b) return a ?? b;
  // Equivalent mutant (EqualityOperator): Of two versions that are the same either is the newer.
  return compareVersions(a, b) < 0 ? b : a;
}

/** What every delta says: "as of `version`, the node has these taints that evict". */
export interface NodeFacts {
  readonly ref: NodeRef;
  readonly version: Version;
  readonly observedAt: EpochMs;
  readonly taints: readonly SeenTaint[];
  /** Who wrote the node's taints last, and when, by the API server's word; absent where it does not say. */
  readonly taintsStamp?: string;
  /**
   * When the Node object went. Its last known taints then stand for the pods that were there: `taints`, or, when
   * these are empty (a relay that never saw them), the stored ones.
   */
  readonly deletedAt?: EpochMs;
  /** The guard's, as it was stored before this was told; absent: it never tripped. */
  readonly guardRevision?: number;
}

/** That somebody else than this service deleted a pod, and when: `taint-manager`, the built-in controller; or anybody. */
export interface Deletion {
  readonly at: EpochMs;
  readonly by: 'taint-manager' | 'other';
}

/** A pod that somebody else deleted, as it was. */
export interface DeletedPod extends PodFacts {
  readonly deleted: Deletion;
}

/** All pods bound to a node: decides the whole node at once. */
export interface NodeDelta extends NodeFacts {
  readonly kind: 'node';
  readonly pods: readonly PodFacts[];
  /** Those of its pods whose facts do not fit into the message, if any; each follows as a pod delta. */
  readonly others?: readonly PodUid[];
  /** Those that somebody else deleted lately, and that are not among its pods any more. */
  readonly deleted?: readonly DeletedPod[];
  /**
   * Sent after a gap (a take-over, or a cluster that was out of reach): everything overdue on the node is to be
   * looked at at once. Without it, what is overdue for long is left to the timer that fired, which is being
   * retried, so that a cluster that refuses evictions for days does not gather a timer with every resync.
   */
  readonly wake: boolean;
}

/** One pod appeared on a tainted node, or changed its tolerations there. */
export interface PodDelta extends NodeFacts {
  readonly kind: 'pod';
  readonly pod: PodFacts;
}

/** One pod left a tainted node, for good: its UID never returns. */
export interface PodGoneDelta extends NodeFacts {
  readonly kind: 'pod-gone';
  readonly uid: PodUid;
  /** Absent: this service deleted it, or nobody knows who. */
  readonly deleted?: DeletedPod;
}

export type Delta = NodeDelta | PodDelta | PodGoneDelta;

/** The one pod that a delta tells of; `undefined`: it tells of its whole node. */
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

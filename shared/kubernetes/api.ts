import type { Deletion, Owner, PodTraits } from '#shared/eviction/facts.ts';
import type { ClusterUids, NodeName, PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { SkewRange } from '#shared/eviction/skew.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodEvent } from './announcement.ts';
import type { Rival } from './marker.ts';
import type { WorkloadRef } from './replicas.ts';

/** The fields of a Node that eviction decisions need. */
export interface LiveNode {
  readonly name: NodeName;
  readonly resourceVersion: string;
  /** Taints of all effects, in list order. */
  readonly taints: readonly LiveTaint[];
  /**
   * Changes with each write of the taints: their last writer, and the time by the API server's clock, to the second.
   * Equal lists with different stamps are not the same taints. Absent: not reported, or nobody owns a taint.
   */
  readonly taintsStamp?: string;
  /** The label `topology.kubernetes.io/zone`; absent: the node is in no zone. */
  readonly zone?: string;
}

/** The fields of a Pod that eviction decisions need. Equal toleration lists are one shared object. */
export interface LivePod extends PodTraits {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** `metadata.generation`; absent or 0: the server counts none. */
  readonly generation?: number;
  /** `undefined` until bound. */
  readonly node: NodeName | undefined;
  readonly tolerations: readonly Toleration[];
  /** The transition time of `PodScheduled`, or else the creation time, both truncated to the second. */
  readonly podSince: EpochMs;
  readonly terminating: boolean;
  /** The `DisruptionTarget` condition with our reason: this service (or the built-in controller) began to evict. */
  readonly disrupted: boolean;
  /** That condition with the Eviction API's reason, from any client. Absent: no. */
  readonly evicted?: true;
  /** An annotation marks the pod as being moved off its node, as KubeVirt does while a VM migrates. Absent: no. */
  readonly moving?: true;
  /** With `terminating`: when the grace period ends, and which finalizers must be removed first. */
  readonly leaving?: { readonly gracePeriodEndedAt: EpochMs; readonly finalizers: readonly string[] };
  /** With `terminating`: the deletion by another actor than this service. Absent, too, if the actor is unknown. */
  readonly deleted?: Deletion;
  /** The controller that created the pod (`ownerReferences`); absent: nobody recreates it. */
  readonly owner?: Owner;
}

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  /** Token of the next page; absent on the last page. */
  readonly continue?: string;
}

export type WatchEvent<T> =
  | { readonly kind: 'upsert'; readonly object: T }
  | { readonly kind: 'delete'; readonly object: T }
  /** `initialEnd`: all objects that existed when the watch began were sent. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string; readonly initialEnd?: true }
  /** A change of an object that the caller does not follow. Only its version was read. */
  | { readonly kind: 'passed'; readonly resourceVersion: string };

export type Change<T> = Extract<WatchEvent<T>, { readonly object: T }>;

export interface ListOptions {
  /** Maximum number of objects on a page; absent: all in one response. */
  readonly limit?: number;
  readonly continue?: string;
  /** Only pods bound to this node (fieldSelector spec.nodeName). */
  readonly onNode?: NodeName;
  /**
   * A version that the response must have reached, perhaps from the server's cache; '0': any. Absent: a consistent
   * read. Rejects with 504 (cause `ResourceVersionTooLarge`) if the server has not reached it.
   */
  readonly notOlderThan?: string;
  readonly signal: AbortSignal;
}

export interface WatchOptions {
  /** The watch sends changes after this version; absent with `initial` only. */
  readonly resourceVersion?: string;
  /**
   * First sends all existing objects, and a bookmark with `initialEnd`. Servers without this reject with 400 or 422.
   */
  readonly initial?: boolean;
  /** Only pods bound to this node (fieldSelector spec.nodeName). */
  readonly onNode?: NodeName;
  /** Reports whether a node is followed. An event certainly about another one is not parsed, and yields `passed`. */
  readonly follows?: (node: NodeName) => boolean;
  /** Called when the server has accepted the watch; its first event may take a minute. */
  readonly opened?: () => void;
  /** Asks the server to end the watch after this time (seconds); the caller resumes. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

/** One kind of object, as the relay follows it. */
export interface Resource<T> {
  /** Returns one page. Rejects with `ApiError` (410 `Expired`: the continue token is too old; list again). */
  list(options: ListOptions): Promise<Page<T>>;
  /** Yields changes and bookmarks. Throws `ApiError` if the watch breaks (410: the version is too old; list again). */
  watch(options: WatchOptions): AsyncIterable<WatchEvent<T>>;
}

/**
 * `takeovers/live`, created by `taintward takeover apply`: while its heartbeat is current, the node controller's
 * NoExecute taints are kept out, and Taintward evicts instead.
 */
export interface Takeover {
  readonly resourceVersion: string;
  /** Keys of the NoExecute taints that are kept out. */
  readonly keys: readonly string[];
  /** Heartbeat timeout: these taints are admitted again after this time without a heartbeat. */
  readonly lapseMs: number;
  /** By the API server's clock; absent: nobody has ever renewed the heartbeat. */
  readonly heartbeat?: EpochMs;
  /** The time since which the heartbeat never timed out; with `heartbeat` only. */
  readonly aliveSince?: EpochMs;
  /** Why the relay does not renew the heartbeat, in a few words; absent: it does, or gives no reason. */
  readonly withheld?: string;
}

export interface DeletePreconditions {
  readonly uid: PodUid;
  /** The pod has not changed since this version. */
  readonly resourceVersion?: string;
}

/** Calls to one API server. Every method rejects with `ApiError`, for a missing response with status 0. */
export interface KubernetesApi {
  readonly nodes: Resource<LiveNode>;
  readonly pods: Resource<LivePod>;
  /**
   * Milliseconds that its clock is ahead, within half a second at first, soon better. `undefined`: too few dated
   * responses.
   */
  readonly skewMs: number | undefined;
  /**
   * The same for each API server that responded in the last ten minutes, the last first: several may respond in turn,
   * and clocks are set. A slow response leaves a wide range.
   */
  readonly skews: readonly SkewRange[];
  /** The server has not responded to several calls in a row: most calls fail immediately, with status 0. */
  readonly breakerOpen: boolean;
  /** Ends the suspension of calls if the server has answered another process since the last one: at `at`, by our clock. */
  answeredElsewhere(at: EpochMs): void;
  /**
   * The name of another installation that marked pods here since this client was created, each once; else `undefined`.
   */
  takeRival(): string | undefined;
  /** The other installation that marked a pod last. Terminating pods in lists and watches count, too. `undefined`: none. */
  readonly lastRival: Rival | undefined;
  /** Returns the UIDs that identify the cluster, without those that the credentials may not read. Quorum reads. */
  uids(): Promise<ClusterUids>;
  /** Reports whether the credentials have this permission. Rejects with 403 if they may not ask. */
  allowed(right: Permission): Promise<boolean>;
  /** Resolves once the server answers, whatever it answers. Usual audit policies leave it out. */
  ping(): Promise<void>;
  /** Returns the permissions of the core group that the credentials lack, for all objects. Rejects as {@link allowed}. */
  lacking<R extends Permission>(rights: readonly R[]): Promise<readonly R[]>;
  /** Returns a node; `undefined`: it does not exist. A quorum read. */
  getNode(name: NodeName): Promise<LiveNode | undefined>;
  /** `undefined`: the node has no Lease. A quorum read. Rejects with 403 without the permission. */
  getNodeLease(name: NodeName): Promise<NodeLease | undefined>;
  /** `undefined`: no such workload, or no replicas. A quorum read. Rejects with 403 without the permission. */
  getReplicas(workload: WorkloadRef): Promise<number | undefined>;
  /** Returns a pod; `undefined`: it does not exist. A quorum read. */
  getPod(pod: PodRef): Promise<LivePod | undefined>;
  /** Returns all pods of a node, or only the existing pods of `due`, whichever costs the server less. Quorum reads. */
  podsOnNode(node: NodeName, due: readonly PodRef[]): Promise<readonly LivePod[]>;
  /**
   * Sets `DisruptionTarget` (reason `DeletionByTaintManager`), with the UID as precondition, and resolves with the
   * patched pod. 404 and 409 reject: the pod is gone, or another has its name. `observedGeneration` is the pod's, if
   * known: pass the `LivePod`. `allowed` is called in the call's turn: the patch is sent by the returned time, or
   * never; if `allowed` rejects, never.
   */
  markDisrupted(
    pod: PodRef & Pick<LivePod, 'generation'>,
    uid: PodUid,
    now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod>;
  /**
   * With the pod's own grace period. Rejects with 404, and 409 for a failed precondition. Sent by `notAfter` (our
   * clock), or never: `LateCallError`.
   */
  deletePod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<void>;
  /**
   * Evicts by the Eviction API, which respects budgets and marks the pod. Rejects as {@link deletePod}, and with 429 if
   * too many calls. A version mismatch may cost the budget a disruption until its controller notices, minutes later.
   */
  evictPod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<EvictionAnswer>;
  /** Posts an Event. An existing Event with the same key counts as posted. */
  createEvent(event: PodEvent, now: EpochMs): Promise<void>;
  /** Returns the takeover; `undefined`: there is none, or we have no permission to read it. A quorum read. */
  getTakeover(): Promise<Takeover | undefined>;
  /**
   * As of `at`, by the API server's clock. Rejects with 409 if the takeover changed since the read, 404 if it is gone.
   */
  renewTakeover(takeover: Takeover, at: EpochMs): Promise<void>;
  /** Records why the heartbeat is not renewed, until it is. Rejects as {@link renewTakeover} does. */
  withholdTakeover(takeover: Takeover, reason: string): Promise<void>;
  /** Returns the taints that a node created with these taints would have. A dry run: nothing is written. */
  tryTaints(taints: readonly LiveTaint[]): Promise<readonly LiveTaint[]>;
  /** Closes all connections; pending calls reject. */
  close(): void;
}

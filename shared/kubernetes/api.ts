import type { Deletion, PodTraits } from '#shared/eviction/facts.ts';
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
   * Changes with each write of the taints. It contains the last writer of `spec.taints` and the time of the write, to
   * the second, by the API server's clock. Two equal lists with different stamps are not the same taints. Absent: the
   * server does not report it, or nobody owns a taint.
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
  /**
   * When the pod was bound to its node: the transition time of `PodScheduled`, or else the creation time. Kubernetes
   * truncates both to the second.
   */
  readonly podSince: EpochMs;
  /** The pod has a `deletionTimestamp`. */
  readonly terminating: boolean;
  /**
   * The pod has the `DisruptionTarget` condition with our reason: this service (or the built-in controller) began to
   * evict it.
   */
  readonly disrupted: boolean;
  /**
   * The pod has that condition with the Eviction API's reason: some client, perhaps this service, evicted it by that
   * API. Absent: no.
   */
  readonly evicted?: true;
  /** An annotation marks the pod as being moved off its node, as KubeVirt does while a VM migrates. Absent: no. */
  readonly moving?: true;
  /** With `terminating`: when the grace period ends, and which finalizers must be removed first. */
  readonly leaving?: { readonly overAt: EpochMs; readonly finalizers: readonly string[] };
  /** With `terminating`: the deletion by another actor than this service. Absent, too, if the actor is unknown. */
  readonly deleted?: Deletion;
  /** The controller that created the pod (`ownerReferences`); absent: nobody recreates it. */
  readonly owner?: PodOwner;
}

export interface PodOwner {
  readonly kind: string;
  readonly name: string;
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

/** An event about a changed object. */
export type Change<T> = Extract<WatchEvent<T>, { readonly object: T }>;

export interface ListOptions {
  /** Maximum number of objects on a page; absent: all in one response. */
  readonly limit?: number;
  readonly continue?: string;
  /** Only pods bound to this node (fieldSelector spec.nodeName). */
  readonly onNode?: NodeName;
  /**
   * A version that the response must have reached; the server may respond from its cache then. '0': any version.
   * Absent: a consistent read. Rejects with 504 (cause `ResourceVersionTooLarge`) if the server has not reached the
   * version.
   */
  readonly notOlderThan?: string;
  readonly signal: AbortSignal;
}

export interface WatchOptions {
  /** The watch sends changes after this version; absent with `initial` only. */
  readonly resourceVersion?: string;
  /**
   * The watch first sends all existing objects, as upserts, followed by a bookmark with `initialEnd`. Servers without
   * this feature reject the request with 400 or 422.
   */
  readonly initial?: boolean;
  /** Only pods bound to this node (fieldSelector spec.nodeName). */
  readonly onNode?: NodeName;
  /**
   * For pods: reports whether a node is followed; called for each event. An event that is certainly about another
   * node is not parsed, and yields `passed`. Other such events may still be parsed.
   */
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
  /**
   * Yields changes, with bookmarks, until the server ends the watch. Throws `ApiError` if the watch breaks (410: the
   * version is too old; list again).
   */
  watch(options: WatchOptions): AsyncIterable<WatchEvent<T>>;
}

/**
 * `takeovers/live`: shows the API server that Taintward evicts in the built-in controller's place. While its
 * heartbeat is current, the node controller's NoExecute taints are kept out. Created by `taintward takeover apply`.
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

/** Conditions that a pod must meet for its deletion. */
export interface DeletePreconditions {
  readonly uid: PodUid;
  /** The pod has not changed since this version. */
  readonly resourceVersion?: string;
}

/**
 * The calls to one cluster's API server. Every method rejects with `ApiError` for an unsuccessful response, and for a
 * missing one (status 0).
 */
export interface KubernetesApi {
  readonly nodes: Resource<LiveNode>;
  readonly pods: Resource<LivePod>;
  /**
   * Milliseconds by which the API server's clock is ahead of ours, accurate to half a second at first, and soon
   * better. `undefined` until enough responses were dated.
   */
  readonly skewMs: number | undefined;
  /**
   * How far the clock of each API server that responded in the last ten minutes is ahead of ours; the last one first.
   * Several servers may respond in turn, and clocks are set. A slow response leaves a wide range. Empty: no response
   * was dated.
   */
  readonly skews: readonly SkewRange[];
  /** The server has not responded to several calls in a row: most calls fail immediately, with status 0. */
  readonly breakerOpen: boolean;
  /** Ends the suspension of calls if the server has answered another process since the last one: at `at`, by our clock. */
  answeredElsewhere(at: EpochMs): void;
  /**
   * Returns the name of another installation of this service that marked pods here since this client was created, as
   * read or marked pods show. Each name is returned once. `undefined`: there is no new one.
   */
  takeRival(): string | undefined;
  /** The other installation that marked a pod last. Terminating pods in lists and watches count, too. `undefined`: none. */
  readonly lastRival: Rival | undefined;
  /** Returns the UIDs that identify the cluster, without those that the credentials may not read. Quorum reads. */
  uids(): Promise<ClusterUids>;
  /** Reports whether the credentials have this permission. Rejects with 403 if they may not ask. */
  allowed(right: Permission): Promise<boolean>;
  /** Returns a node; `undefined`: it does not exist. A quorum read. */
  getNode(name: NodeName): Promise<LiveNode | undefined>;
  /**
   * Returns the Lease that the node's kubelet renews; `undefined`: there is none. A quorum read. Rejects with 403
   * without the permission.
   */
  getNodeLease(name: NodeName): Promise<NodeLease | undefined>;
  /**
   * Returns the desired number of replicas of a workload. `undefined`: it does not exist, or its kind has no
   * replicas. A quorum read. Rejects with 403 without the permission.
   */
  getReplicas(workload: WorkloadRef): Promise<number | undefined>;
  /** Returns a pod; `undefined`: it does not exist. A quorum read. */
  getPod(pod: PodRef): Promise<LivePod | undefined>;
  /** Returns all pods of a node, or only the existing pods of `due`, whichever costs the server less. Quorum reads. */
  podsOnNode(node: NodeName, due: readonly PodRef[]): Promise<readonly LivePod[]>;
  /**
   * Sets the `DisruptionTarget` condition (reason `DeletionByTaintManager`) by a strategic merge patch of the status,
   * with the UID as a precondition. Resolves with the patched pod. 404 and 409 reject: the pod is gone, or another
   * one has its name. The condition's `observedGeneration` is the pod's, if known: pass the `LivePod`. `allowed` is
   * called when the call's turn has come. The patch is sent by the returned time, or never; if `allowed` rejects, it
   * is not sent.
   */
  markDisrupted(
    pod: PodRef & Pick<LivePod, 'generation'>,
    uid: PodUid,
    now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod>;
  /**
   * Deletes a pod with its own grace period. Rejects with 404, and with 409 if a precondition fails. The request is
   * sent by `notAfter` (our clock), or never: then it rejects with `LateCallError`.
   */
  deletePod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<void>;
  /**
   * Evicts a pod by the Eviction API, which respects disruption budgets and marks the pod itself. Rejects as {@link
   * deletePod} does, and with 429 if the server accepts no more calls for now. A version that does not match may cost
   * the budget one disruption until its controller notices, minutes later.
   */
  evictPod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<EvictionAnswer>;
  /** Posts an Event. An existing Event with the same key counts as posted. */
  createEvent(event: PodEvent, now: EpochMs): Promise<void>;
  /** Returns the takeover; `undefined`: there is none, or we have no permission to read it. A quorum read. */
  getTakeover(): Promise<Takeover | undefined>;
  /**
   * Renews the heartbeat, as of `at` by the API server's clock. Rejects with 409 if the takeover changed since it was
   * read, and with 404 if it is gone.
   */
  renewTakeover(takeover: Takeover, at: EpochMs): Promise<void>;
  /** Records why the heartbeat is not renewed, until it is. Rejects as {@link renewTakeover} does. */
  withholdTakeover(takeover: Takeover, reason: string): Promise<void>;
  /** Returns the taints that a node created with these taints would have. A dry run: nothing is written. */
  tryTaints(taints: readonly LiveTaint[]): Promise<readonly LiveTaint[]>;
  /** Closes all connections; pending calls reject. */
  close(): void;
}

import type { Deletion } from '#shared/eviction/facts.ts';
import type { NodeName, PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { SkewRange } from '#shared/eviction/skew.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodEvent } from './announcement.ts';
import type { Rival } from './marker.ts';
import type { WorkloadRef } from './replicas.ts';

/** The few fields of a Node that deciding needs. */
export interface LiveNode {
  readonly name: NodeName;
  readonly resourceVersion: string;
  /** All effects, in list order. */
  readonly taints: readonly LiveTaint[];
  /**
   * Changes with the taints, whatever they were and are: who wrote `spec.taints` last and when, to the second, by the
   * API server's clock. Two equal lists with different stamps are not the same taints. Absent where the server does
   * not say, and when nobody owns a taint.
   */
  readonly taintsStamp?: string;
  /** Its label `topology.kubernetes.io/zone`; absent: in no zone. */
  readonly zone?: string;
}

/** The few fields of a Pod that deciding needs. Equal toleration lists are one shared object. */
export interface LivePod {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** `metadata.generation`; absent or 0 where the server counts none. */
  readonly generation?: number;
  /** `undefined` until bound. */
  readonly node: NodeName | undefined;
  readonly tolerations: readonly Toleration[];
  /**
   * When it was bound to its node: `PodScheduled`'s transition time, or else the creation time. Kubernetes cuts both to
   * the second.
   */
  readonly podSince: EpochMs;
  /** Has a `deletionTimestamp`. */
  readonly terminating: boolean;
  /** Carries the `DisruptionTarget` condition with our reason: this service (or the built-in one) began to evict it. */
  readonly disrupted: boolean;
  /** Carries that condition with the Eviction API's reason: somebody, maybe this service, evicted it by that. Absent: no. */
  readonly evicted?: true;
  /** Somebody says that it is being moved off its node, as KubeVirt does of a VM that migrates. Absent: no. */
  readonly moving?: true;
  /** With `terminating`: when its grace period is over, and what has to be done before it may go. */
  readonly leaving?: { readonly overAt: EpochMs; readonly finalizers: readonly string[] };
  /** With `terminating`: somebody else than this service deleted it. Absent too where nobody knows who did. */
  readonly deleted?: Deletion;
  /** Absent: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The controller that made it (`ownerReferences`); absent: nobody makes it anew. */
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
  /** Pass to get the next page; absent on the last. */
  readonly continue?: string;
}

export type WatchEvent<T> =
  | { readonly kind: 'upsert'; readonly object: T }
  | { readonly kind: 'delete'; readonly object: T }
  /** `initialEnd`: everything that was there when the watch began has been told. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string; readonly initialEnd?: true }
  /** A change of an object that the caller does not follow; nothing of it was read but its version. */
  | { readonly kind: 'passed'; readonly resourceVersion: string };

/** An event that tells what became of an object. */
export type Change<T> = Extract<WatchEvent<T>, { readonly object: T }>;

export interface ListOptions {
  /** Objects on a page at most; absent: all in one answer. */
  readonly limit?: number;
  readonly continue?: string;
  /** Only pods bound to this node (fieldSelector spec.nodeName). */
  readonly onNode?: NodeName;
  /**
   * A version that the answer is to have reached; the server may answer from its cache then. '0': whatever that holds.
   * Absent: a consistent read. Rejects with 504 (cause `ResourceVersionTooLarge`) where the server is not that far.
   */
  readonly notOlderThan?: string;
  readonly signal: AbortSignal;
}

export interface WatchOptions {
  /** Changes after this; absent with `initial` only. */
  readonly resourceVersion?: string;
  /**
   * Everything that is there first, as upserts, ended by a bookmark with `initialEnd`. Servers that cannot do it
   * refuse with 400 or 422.
   */
  readonly initial?: boolean;
  /** Only pods bound to this node (fieldSelector spec.nodeName). */
  readonly onNode?: NodeName;
  /**
   * Of pods: which nodes are followed, asked for each event. One that certainly speaks of another node is passed over
   * unread, and told as `passed`; others of its kind may still come.
   */
  readonly follows?: (node: NodeName) => boolean;
  /** Called when the server has let the watch begin; its first word may take a minute. */
  readonly opened?: () => void;
  /** Asks the server to end the watch after this time (seconds); the caller resumes. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

/** One kind of object, as the relay follows it. */
export interface Resource<T> {
  /** One page. Rejects with `ApiError` (410 `Expired`: the continue token is too old; list anew). */
  list(options: ListOptions): Promise<Page<T>>;
  /**
   * What changes, with bookmarks, until the server ends the watch (the iteration returns)
   * or it breaks (it throws `ApiError`; status 410: the version is too old, list anew).
   */
  watch(options: WatchOptions): AsyncIterable<WatchEvent<T>>;
}

/**
 * `takeovers/live`: by it, the API server knows that Taintward evicts in the built-in controller's place, and keeps the
 * node controller's NoExecute taints out for as long. Made by `taintward takeover apply`.
 */
export interface Takeover {
  readonly resourceVersion: string;
  /** Whose NoExecute taints are kept out. */
  readonly keys: readonly string[];
  /** Without a heartbeat for so long they get in. */
  readonly lapseMs: number;
  /** By the API server's clock; absent: nobody ever renewed it. */
  readonly heartbeat?: EpochMs;
  /** Since when it was never without one for longer than that; with `heartbeat` only. */
  readonly aliveSince?: EpochMs;
  /** Why the relay does not renew it, in a few words; absent: it does, or says nothing. */
  readonly withheld?: string;
}

/** What must hold of a pod for its deletion. */
export interface DeletePreconditions {
  readonly uid: PodUid;
  /** Nothing about the pod has changed since this version. */
  readonly resourceVersion?: string;
}

/**
 * The calls we make to one cluster's API server. Every method rejects with `ApiError` for an answer that is not
 * a success, and for none at all (status 0).
 */
export interface KubernetesApi {
  readonly nodes: Resource<LiveNode>;
  readonly pods: Resource<LivePod>;
  /**
   * Milliseconds by which the API server's clock is ahead of ours, good to half a second and soon better;
   * `undefined` until enough answers told.
   */
  readonly skewMs: number | undefined;
  /**
   * By how much the clock of each API server that answered in the last ten minutes is ahead of ours, the last that answered first: several
   * may answer in turn, and clocks are set. A slow answer leaves a wide range. Empty: none told.
   */
  readonly skews: readonly SkewRange[];
  /** The server has not answered for some calls in a row: most calls fail at once, with status 0. */
  readonly breakerOpen: boolean;
  /**
   * The name of another installation of this service that marks pods here since these calls began, as pods that were read
   * or marked tell; each is named once. `undefined`: none that is news.
   */
  takeRival(): string | undefined;
  /** The one of them that marked a pod last, as those tell, too, that were listed or watched while they terminate. `undefined`: none. */
  readonly lastRival: Rival | undefined;
  /** Whether the credentials have this right. Rejects with 403 where they may not ask. */
  allowed(right: Permission): Promise<boolean>;
  /** `undefined`: there is no such node. A quorum read. */
  getNode(name: NodeName): Promise<LiveNode | undefined>;
  /** The Lease that the node's kubelet renews; `undefined`: it has none. A quorum read. Rejects with 403 without a right to it. */
  getNodeLease(name: NodeName): Promise<NodeLease | undefined>;
  /**
   * How many replicas a workload is to have; `undefined`: there is no such workload, or of its kind nobody can be asked. A quorum
   * read. Rejects with 403 without a right to it.
   */
  getReplicas(workload: WorkloadRef): Promise<number | undefined>;
  /** `undefined`: there is no such pod. A quorum read. */
  getPod(pod: PodRef): Promise<LivePod | undefined>;
  /**
   * The pods of a node among which the caller looks for those that are due: all of the node's, or only those of
   * `due` that are there, whichever costs the server less. Quorum reads.
   */
  podsOnNode(node: NodeName, due: readonly PodRef[]): Promise<readonly LivePod[]>;
  /**
   * Sets the `DisruptionTarget` condition (reason `DeletionByTaintManager`) by a strategic merge patch of the
   * status, with the UID as a precondition. Resolves with the pod as that left it. 404 and 409 reject: the pod is
   * gone or another one. The condition's `observedGeneration` is the pod's, when known: pass the `LivePod`. `allowed`
   * is asked when its turn has come: it is sent then at the latest when that says, or never, and where that rejects it is not sent.
   */
  markDisrupted(
    pod: PodRef & Pick<LivePod, 'generation'>,
    uid: PodUid,
    now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod>;
  /**
   * Deletes a pod with its own grace period. 404 rejects, and 409 when a precondition fails. The request is sent at
   * `notAfter` (our clock) at the latest, or never: then it rejects with `LateCallError`.
   */
  deletePod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<void>;
  /**
   * Has the Eviction API evict a pod, which heeds disruption budgets and marks the pod itself. Rejects as
   * {@link deletePod} does, and with 429 where the server takes no more calls for now. A version that does not match
   * may cost the budget one disruption until its controller notices, minutes later.
   */
  evictPod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<EvictionAnswer>;
  /** Posts an Event; one that is there already (same key) counts as posted. */
  createEvent(event: PodEvent, now: EpochMs): Promise<void>;
  /** `undefined`: there is none, or nobody gave us a right to it. A quorum read. */
  getTakeover(): Promise<Takeover | undefined>;
  /** Renews it, as of `at` by the API server's clock. Rejects with 409 when it is not as it was read, and 404 when it is gone. */
  renewTakeover(takeover: Takeover, at: EpochMs): Promise<void>;
  /** Notes why it is not renewed, until it is. Rejects as {@link renewTakeover} does. */
  withholdTakeover(takeover: Takeover, reason: string): Promise<void>;
  /** The taints that a node would have if it was made with these. A dry run: nothing is written. */
  tryTaints(taints: readonly LiveTaint[]): Promise<readonly LiveTaint[]>;
  /** Ends all connections; a call under way rejects. */
  close(): void;
}

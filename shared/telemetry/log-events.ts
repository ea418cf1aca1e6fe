import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { deltaId, type Version } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Lapse } from '#shared/eviction/node-life.ts';
import type { Mode, Policy, Trip } from '#shared/eviction/policy.ts';
import type { CancelReason, EvictionRecord, FinalRecord } from '#shared/eviction/records.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { type Taint, taintText } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** An error, which is logged as its message, or a sentence about one. */
type Failure = { readonly error: unknown };
type OfCluster = { readonly cluster: ClusterName };
type OfNode = OfCluster & { readonly node: NodeName };
/** The delta of its cluster to which a line belongs: the same ID in relay, delta functions and `evict`. */
type OfDelta = { readonly delta: string };
type OfQueue = { readonly queue: string };
type OfMessage = { readonly messageId: string };
type Nothing = Readonly<Record<string, never>>;
/** A trip of the guard: `zone` with scope `zone`; `nodes` of `total` were affected then. */
type GuardFields = Pick<Trip, 'scope' | 'zone' | 'nodes'> & { readonly total: number };

/** The pod of a line. */
export type PodFields = OfNode & {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: PodUid;
};

/** The eviction of a line: its pod, and the delta that changed it last. */
export type EvictionRef = PodFields & OfDelta;

/** Fields of a line about a scheduled or canceled eviction. */
export type EvictionFields = EvictionRef & {
  readonly dueAt: EpochMs;
  /** The taints that cause the eviction, as kubectl prints them. */
  readonly taints: readonly string[];
  /** The cluster is in observe mode: the pod won't be evicted. */
  readonly observed?: true;
};

/** The catalogue of log lines: one per change of state, named `object.state`, with its fields. */
export type LogEvents = {
  /** The node's taints changed, or the node was deleted at `deletedAt`. */
  'node.changed': OfNode & OfDelta & { readonly taints: readonly Taint[]; readonly deletedAt?: EpochMs };
  /** Taintward scheduled the pod's eviction for `dueAt`. */
  'eviction.scheduled': EvictionFields;
  /** The process loaded the pod's pending eviction from the store when it started. */
  'eviction.loaded': EvictionFields;
  /** The process loaded `more` evictions that have later deadlines and no line of their own. */
  'evictions.loaded': { readonly more: number };
  /** The deadline of the pod's eviction, or the taints that cause it, changed. */
  'eviction.rescheduled': EvictionFields;
  /** A newer delta left the pod's eviction unchanged. */
  'eviction.confirmed': EvictionFields;
  /** The pod is due, but a rule of type `by` holds its eviction, which stays scheduled. */
  'eviction.held': EvictionFields & { readonly by: EvictionGate['kind'] | undefined };
  /** The pod is due, but a disruption budget or admission (`by`) rejects its eviction for now. Taintward retries it. */
  'eviction.blocked': EvictionFields & Failure & { readonly by: 'budget' | 'admission' };
  /** No rule holds the pod's eviction any longer. */
  'eviction.released': EvictionFields;
  /** The pod is due, and would be evicted if its cluster were in enforce mode. */
  'eviction.would-evict': EvictionRef;
  /** Taintward canceled the pod's eviction for `reason`. `eventPosted`: a Kubernetes Event reports it. */
  'eviction.canceled': EvictionFields & {
    readonly reason: CancelReason | undefined;
    readonly eventPosted: boolean;
  };
  /**
   * Taintward evicted the pod `delayMs` after its deadline. `lease`: why the Lease of a node that is only unreachable didn't protect
   * the pod.
   */
  'pod.evicted': EvictionRef & { readonly delayMs: number; readonly lease?: Lapse };
  /** The built-in controller, or another taint manager, evicted the pod at `deletedAt`. */
  'pod.evicted-externally': EvictionFields & { readonly deletedAt: EpochMs };
  /**
   * The built-in controller, or another taint manager, evicted a pod that a rule of type `by` holds. `hold`: the ID of the hold. A
   * relay logs at most 100 of these lines for each lease.
   */
  'pod.evicted-despite-hold': PodFields & { readonly by: EvictionGate['kind']; readonly hold?: string };
  /** The pod was already gone at its deadline. */
  'pod.already-gone': EvictionRef;
  /**
   * The pod's `PodScheduled` condition has a time in the future (`podScheduledAt`). Taintward ignores it and uses the time when it
   * first saw the pod. Clocks differ, or a user tries to prevent the eviction.
   */
  'pod.scheduled-time-in-future': PodFields & { readonly podScheduledAt: EpochMs };
  /**
   * A taint has a `timeAdded` more than 30 s in the future. Taintward ignores it and uses the time when it first saw the taint. Clocks
   * differ, or a user tries to postpone evictions.
   */
  'node.taint-time-in-future': OfNode & { readonly taint: string; readonly timeAdded: EpochMs };
  /** The evicted pod is still terminating more than a minute after its grace period ended. */
  'pod.stuck-terminating': PodFields & {
    readonly gracePeriodEndedAt: EpochMs;
    readonly finalizers: readonly string[];
    readonly nodeState: StuckPod['nodeState'];
  };
  /** Evictions on the node failed, and Taintward retries them at `nextTryAt`. */
  'eviction.retrying': OfNode & Failure & { readonly attempts: number; readonly nextTryAt: EpochMs };
  /** The pod's eviction failed until its retries were exhausted. Taintward doesn't retry it without a command. */
  'eviction.failed': EvictionFields & Failure;
  /** Taintward ended the pod's eviction because its cluster isn't registered. */
  'eviction.unregistered': EvictionFields & Failure;
  /** The pod's stored eviction expired before its timer fired, and the expiry function restored it. */
  'eviction.recovered': EvictionFields;
  /** The expiry function couldn't restore expired evictions of the node. The table's stream redelivers them. */
  'eviction.recovery-failed': Partial<OfNode> & Failure & { readonly records: number };
  /** The Kubernetes Events about canceled evictions couldn't be enqueued. */
  'event.enqueue-failed': OfNode & Failure;
  /** The event bus didn't accept notifications, which are lost. */
  'notification.dropped': Failure & { readonly notifications: number };
  /** A Kubernetes Event couldn't be posted, and is lost. If Events are denied, this is logged once for each namespace. */
  'event.dropped': Failure & { readonly namespace: string; readonly pod: string; readonly message: string };

  /** The relay started to manage a newly registered cluster. */
  'cluster.added': OfCluster & { readonly access: string };
  /** The relay stopped managing a cluster that is no longer registered. */
  'cluster.removed': OfCluster;
  /** The cluster's credentials, permissions, or kubeconfig don't give access. Taintward keeps trying. */
  'cluster.access-denied': OfCluster & Failure;
  /** The credentials may not ask for their permissions, so missing ones show only when a request is denied. */
  'cluster.permissions-unverified': OfCluster & Failure;
  /** The cluster's API server doesn't respond, so the cluster isn't managed yet. Taintward keeps trying. */
  'cluster.unreachable': OfCluster & Failure;
  /** The cluster is registered, but no relay holds its lease. */
  'cluster.unwatched': OfCluster;
  /** A relay holds the cluster's lease, but has been disconnected from its API server since `since`. */
  'cluster.disconnected': OfCluster & { readonly since: EpochMs };
  /** Pods are more than 10 minutes overdue. The built-in controller isn't evicting, and policy doesn't let Taintward. */
  'cluster.no-eviction-controller': OfCluster & { readonly reason: unknown };
  /**
   * The clocks of the API server and of the relay differ by more than 30 s. Evictions wait until their deadlines have passed
   * by both clocks, or are held if no API server agrees with the relay.
   */
  'cluster.clocks-differ': OfCluster & { readonly reason: unknown };
  /** The rules of a cluster, or of all clusters, couldn't be read. The relay keeps those that it read last. */
  'rules.unreadable': Partial<OfCluster> & Failure;
  /** The cluster's rules changed, and the relay reevaluates all tainted nodes. */
  'rules.changed': OfCluster;
  /** Another installation (`otherInstallation`) evicts in the same cluster. */
  'cluster.conflicting-installation': OfCluster & {
    readonly reason: unknown;
    readonly otherInstallation: string;
  };
  /** The cluster's policy requires permissions that Taintward's credentials don't have there. */
  'policy.permission-missing': OfCluster & Failure;
  /** The process applied the policy of its file or `ConfigMap`. */
  'policy.applied': OfCluster & { readonly mode: Mode };
  /** The file or `ConfigMap` of the policy became invalid, and the applied policies stay in force. */
  'policy.invalid': Failure;
  /**
   * The cluster's guard tripped because `nodes` of `total` nodes are affected, and holds evictions.
   * `scope: customTaints`: nodes with custom taints.
   */
  'guard.tripped': OfCluster & GuardFields;
  /**
   * The guard was released, automatically or by an operator (`by`). Evictions resume. `scope: customTaints`: nodes with
   * custom taints.
   */
  'guard.released': OfCluster & GuardFields & { readonly by: 'auto' | 'operator' };
  /** The cluster's guard would trip if it weren't in dry-run mode. */
  'guard.would-trip': OfCluster & GuardFields;
  /** The relay couldn't save the guard's state and will retry. Until then, it evicts no pod that the guard would hold. */
  'guard.save-failed': OfCluster & Failure;
  /** The list of registered clusters couldn't be read. */
  'registry.unreadable': Failure;
  /** The cluster registry contains an invalid item. Valid items stay in effect. */
  'registry.invalid-item': Failure;

  /** The relay renewed the takeover heartbeat, so the built-in controller doesn't evict. Logged when renewals start. */
  'takeover.heartbeat-renewed': OfCluster;
  /** The relay suspended the takeover heartbeat for `reason`. The built-in controller evicts when the heartbeat has expired. */
  'takeover.heartbeat-suspended': OfCluster & { readonly reason: unknown };
  /** A probe of whether evictions work in a cluster that is taken over failed. The relay doesn't renew the heartbeat without a proof. */
  'takeover.probe-failed': OfCluster & Failure;
  /** The takeover was removed from the cluster, and its keys from the policy's `treatAsNoExecute`. */
  'takeover.ended': OfCluster;

  /** The listener couldn't accept connections, or ran out of file descriptors and closed some. Logged at most once a minute. */
  'listener.accept-failed': Failure & { readonly listener: string };
  /** The listener failed to handle a request, and responded with 500. */
  'listener.request-failed': Failure & { readonly listener: string };
  /** The console failed to handle a request for `path`. */
  'console.failed': Failure & { readonly path: string };
  /** The console is available at `address`, to users who have a link. */
  'console.started': { readonly address: string };
  /** The agent's cluster isn't registered for it. The agent carries out scheduled evictions, but doesn't watch the cluster. */
  'agent.cluster-not-registered': OfCluster & { readonly agent: string };
  /** The relay started and serves its probes on `port`. */
  'relay.started': { readonly port: number };
  /** The relay couldn't get its identity from STS, so the queues accept its clusters' deltas from any permitted sender. */
  'relay.identity-unknown': Failure;
  /** The relay received a request to stop. */
  'relay.stopping': Nothing;
  /** The relay stopped after a clean shutdown. */
  'relay.stopped': Nothing;
  /** The relay stopped after `afterMs` with deltas or evictions unfinished. */
  'relay.shutdown-timed-out': { readonly afterMs: number };
  /** The relay acquired the cluster's lease. */
  'relay.lease-acquired': OfCluster & { readonly epoch: number };
  /** The relay lost the cluster's lease to another relay. */
  'relay.lease-lost': OfCluster & { readonly epoch: number };
  /** The relay exceeds its capacity because no other relay is available. `load`, `excess`: in nodes. */
  'relay.over-capacity': { readonly load: number; readonly excess: number };
  /** The relay handed the cluster's lease off to other relays. */
  'relay.lease-handed-off': OfCluster & { readonly epoch: number };
  /** The relay couldn't acquire, renew, or release the cluster's lease. */
  'relay.lease-failed': OfCluster & Failure;
  /** A list or watch request of the relay failed. The relay retries it. */
  'relay.watch-failed': OfCluster & Failure & { readonly resource: string };
  /** The relay reconnected to the cluster after `outageMs`. */
  'cluster.reconnected': OfCluster & { readonly outageMs: number };
  /** The cluster's etcd was restored from a backup, so the relay lists everything again. */
  'relay.etcd-restore-detected': OfCluster;
  /** The relay has listed all nodes of its cluster, and all pods of tainted nodes. */
  'relay.synced': OfCluster & { readonly nodes: number; readonly tainted: number; readonly pods: number };
  /** The relay couldn't record in the history when evicted pods were gone. */
  'history.write-failed': OfCluster & Failure & { readonly pods: number };
  /** The relay couldn't read the cluster's stored state for a resync. */
  'relay.resync-failed': OfCluster & Failure;
  /** The queue accepts no messages. The relay retries `waiting` deltas. */
  'relay.queue-unreachable': OfQueue & Failure & { readonly waiting: number };
  /** The queue accepted a delta, either of a node with all its pods or, with `uid`, of one pod. */
  'relay.delta-sent': OfNode & OfQueue & OfDelta & { readonly uid?: PodUid };
  /** The queue rejected a delta permanently. */
  'relay.delta-rejected': OfNode & OfQueue & OfDelta & Failure;

  /** The message for a node failed and will be redelivered. In a single process: the node's work failed and will be retried. */
  'message.retrying': OfNode & Partial<OfDelta> & Failure & { readonly receiveCount: number };
  /** The queue couldn't be polled. Polling continues. */
  'queue.unreachable': OfQueue & Failure;
  /** The evict function forwarded the due node to the agent of its cluster. */
  'message.forwarded': OfNode & { readonly agent: string };
  /** The message is invalid, and was moved to the dead-letter queue. */
  'message.rejected': OfMessage & Failure;
  /** The message is invalid, and couldn't be moved to the dead-letter queue. */
  'message.dead-letter-failed': OfMessage & Failure;
  /** The processed message couldn't be deleted, and will be redelivered. */
  'message.not-deleted': OfQueue & OfMessage & Failure;
  /** All messages of a batch failed, and will be redelivered. */
  'batch.failed': OfQueue & Failure & { readonly messages: number };
  /** The message's visibility timeout couldn't be changed. */
  'message.visibility-update-failed': OfQueue & Failure;
  /** The process couldn't open a socket in its state directory, so commands can't query it. */
  'socket.unavailable': Failure;
  /** The record of the table's stream is invalid. */
  'stream-record.rejected': Failure;
  /** The database of rules lacks policies, stops, or holds that operators set, so all clusters are stopped until an operator resumes them. */
  'rules.outdated': Failure;
  /** State files were deleted, replaced, or truncated while in use. The process exits and must be restarted. */
  'state.lost': Failure;
  /** The state of a node in its cluster can't be read, and Taintward skips that node. `error` names both. */
  'state.unreadable': Failure;
  /** The maintenance task `task` failed. */
  'maintenance.failed': Failure & { readonly task: string };

  /** The simulated cluster's state file was damaged, and was renamed. */
  'simulated-cluster.state-damaged': Failure & { readonly file: string };
  /** A controller of the simulated cluster failed and will retry. */
  'simulated-cluster.controller-failed': Failure & { readonly controller: string };
  /** The simulated API server failed to handle a request. */
  'simulated-cluster.request-failed': Failure;
};

export type LogEvent = keyof LogEvents;

/** One line: an event and its fields. */
export type LogLine = {
  [Event in LogEvent]: { readonly event: Event; readonly fields: LogEvents[Event] };
}[LogEvent];

/** The arguments for the line of an event, after its name. */
export type FieldsOf<Event extends LogEvent> = LogEvents[Event] extends Nothing
  ? []
  : [fields: LogEvents[Event]];

/** Returns the fields of every log line about a scheduled or canceled eviction. `policy`: the cluster's. */
export function evictionFields(
  ref: NodeRef,
  eviction: EvictionRecord | FinalRecord,
  policy?: Pick<Policy, 'mode'>,
): EvictionFields {
  const taints = eviction.causes.map(({ taint }) => taintText(taint));
  const observed = policy?.mode === 'observe' ? ({ observed: true } as const) : {};
  return { ...evictionRef(ref, eviction), dueAt: eviction.dueAt, taints, ...observed };
}

/** Returns the fields that identify an eviction. */
export function evictionRef(
  { cluster, node }: NodeRef,
  { uid, namespace, name: pod, version }: EvictionPod,
): EvictionRef {
  return { cluster, node, namespace, pod, uid, delta: deltaId(version) };
}

type EvictionPod = Pick<EvictionRecord, 'uid' | 'namespace' | 'name'> & { readonly version: Version };

import type { StuckPod } from '#shared/clusters/stuck.ts';
import type { Brake } from '#shared/eviction/brake.ts';
import { deltaId, type Version } from '#shared/eviction/facts.ts';
import type { ClusterName, EpochMs, NodeName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Lapse } from '#shared/eviction/node-life.ts';
import type { Mode, Trip } from '#shared/eviction/policy.ts';
import type { CancelReason, Ending, EvictionRecord } from '#shared/eviction/records.ts';
import { type Taint, taintText } from '#shared/taints/taint.ts';

/** What went wrong: an error, of which only the message is written, or a sentence. */
type Why = { readonly reason: unknown };
type OfCluster = { readonly cluster: ClusterName };
type OfNode = OfCluster & { readonly node: NodeName };
/** Of which delta of its cluster it is a part: the same in relay, delta functions and `evict`. */
type OfDelta = { readonly delta: string };
type OfQueue = { readonly queue: string };
type OfMessage = { readonly messageId: string };
type Nothing = Readonly<Record<string, never>>;
/** What the guard tripped by: `zone` with scope `zone`; `nodes` of `outOf` were affected then. */
type GuardFields = Pick<Trip, 'scope' | 'zone' | 'nodes' | 'outOf'>;

/** Which pod a line is about. */
export type PodFields = OfNode & {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: PodUid;
};

/** Which eviction a line is about: of which pod, and by the delta that told of it last. */
export type EvictionRef = PodFields & OfDelta;

/** What a line about an eviction that is to come, or will not come, tells of it. */
export type EvictionFields = EvictionRef & {
  readonly fireAt: EpochMs;
  /** The taints that set `fireAt`, as kubectl prints them. */
  readonly because: readonly string[];
};

/** All that is ever logged: one line per change of state, named `room.event`, and the fields it tells. */
export type LogEvents = {
  /** A node's taints changed, or the node went. */
  'node.changed': OfNode & OfDelta & { readonly taints: readonly Taint[]; readonly deletedAt?: EpochMs };
  /** A pod is to be evicted at `fireAt`. */
  'eviction.scheduled': EvictionFields;
  /** It is to be evicted at `fireAt`, as was stored before this process began. */
  'eviction.loaded': EvictionFields;
  /** So many more stand, which fall due later. */
  'evictions.loaded': { readonly more: number };
  /** It is to be evicted at another moment, or for another taint, than was said before. */
  'eviction.rescheduled': EvictionFields;
  /** A newer delta says the same of it. */
  'eviction.confirmed': EvictionFields;
  /** It is due, and the rules of its cluster forbid it; it stays scheduled. `by`: the kind of brake. */
  'eviction.held': EvictionFields & { readonly by: Brake['kind'] | undefined };
  /**
   * It is due, and the Eviction API refuses it for now; it is asked for again. `by`: its disruption budget, or an admission webhook
   * or policy.
   */
  'eviction.blocked': EvictionFields & Why & { readonly by: 'budget' | 'admission' };
  /** Nothing holds it any more. */
  'eviction.released': EvictionFields;
  /** It was due in a cluster that is only observed. */
  'eviction.would-evict': EvictionRef;
  /** It is not to be evicted any more; `announced`: an Event tells so, too. */
  'eviction.canceled': EvictionFields & {
    readonly reason: CancelReason | undefined;
    readonly announced: boolean;
  };
  /**
   * It was evicted, `lateMs` after it fell due. `lease`: with one that went because its node was called unreachable, and for no other
   * cause, why the node's Lease did not keep it.
   */
  'pod.evicted': EvictionRef & { readonly lateMs: number; readonly lease?: Lapse };
  /** Another taint manager evicted it, at `deletedAt`. */
  'pod.evicted-externally': EvictionFields & { readonly deletedAt: EpochMs };
  /**
   * The built-in controller, or another taint manager, evicted a pod that the rules here keep. `by`: the kind of brake; `hold`: the
   * ID of the hold. Of at most a hundred pods, while a relay holds the lease.
   */
  'pod.evicted-despite-hold': PodFields & { readonly by: Brake['kind']; readonly hold?: string };
  /** It was gone when it was to be evicted. */
  'pod.already-gone': EvictionRef;
  /**
   * `PodScheduled` names a time in the future (`namedAt`). The time is ignored: the pod's countdowns begin when it was first
   * seen. The clocks differ, or somebody wants the pod to stay.
   */
  'pod.scheduled-time-in-future': PodFields & { readonly namedAt: EpochMs };
  /** It was evicted, and terminates although its grace period has been over for more than a minute. */
  'pod.stuck-terminating': PodFields & {
    readonly overAt: EpochMs;
    readonly finalizers: readonly string[];
    readonly nodeState: StuckPod['nodeState'];
  };
  /** Something on a node could not be evicted, and is tried again. */
  'eviction.retrying': OfNode & Why & { readonly attempts: number; readonly nextTryAt: EpochMs };
  /** It could not be evicted for days, and is left alone. */
  'eviction.failed': EvictionFields & Why;
  /** It is not to be evicted any more, for its cluster is not registered. */
  'eviction.unregistered': EvictionFields & Why;
  /** Its timer missed it until its item expired; it was put back. */
  'eviction.recovered': EvictionFields;
  /** Items of a node that expired could not be put back; the stream brings them again. */
  'eviction.recovery-failed': Partial<OfNode> & Why & { readonly records: number };
  /** Cancellations could not be handed on to those who write Events. */
  'event.enqueue-failed': OfNode & Why;
  /** The event bus did not take what it was to be told. */
  'notification.dropped': Why & { readonly notices: number };
  /** An Event could not be written. */
  'event.dropped': Why & { readonly namespace: string; readonly pod: string; readonly message: string };

  /** A relay follows a cluster that was registered. */
  'cluster.added': OfCluster & { readonly access: string };
  /** A relay ends following a cluster that is registered no longer. */
  'cluster.removed': OfCluster;
  /** A cluster cannot be managed until somebody mends its access: credentials, rights or kubeconfig. It is tried again. */
  'cluster.access-denied': OfCluster & Why;
  /** A cluster does not answer, and so is not managed yet. It is tried again. */
  'cluster.unreachable': OfCluster & Why;
  /** A cluster is registered, and no relay holds its lease. */
  'cluster.unwatched': OfCluster;
  /** A relay holds the lease of a cluster and has heard nothing from it since. */
  'cluster.disconnected': OfCluster & { readonly since: EpochMs };
  /** Pods must go and have not for more than ten minutes: the built-in controller does not evict, and policy forbids it to us. */
  'cluster.no-eviction-controller': OfCluster & Why;
  /** What governs clusters, or one, could not be read; what was read last stands. */
  'rules.unreadable': Partial<OfCluster> & Why;
  /** What governs a cluster changed: all that is tainted there is decided anew. */
  'rules.changed': OfCluster;
  /** Another installation, `rival`, evicts in a cluster of ours. */
  'cluster.conflicting-installation': OfCluster & Why & { readonly rival: string };
  /** A cluster's policy asks for what the credentials may not do there. */
  'policy.permission-missing': OfCluster & Why;
  /** A cluster's policy was taken over from the file that the command line names. */
  'policy.applied': OfCluster & { readonly mode: Mode };
  /**
   * That file was not applied, and the policy that stands, of this mode, is kept. `file`: it is `unchanged` since it was applied, and somebody
   * paused or changed the policy since; or `older` than the one that another replica applied.
   */
  'policy.kept': OfCluster & { readonly mode: Mode; readonly file: 'unchanged' | 'older' };
  /** That file holds no policy any more; what was applied before stands. */
  'policy.invalid': Why;
  /** The guard of a cluster holds evictions: so many nodes are affected. */
  'guard.tripped': OfCluster & GuardFields;
  /** It holds them no longer; `by`: the guard itself, as all was calm or policy says so, or an operator. */
  'guard.released': OfCluster & GuardFields & { readonly by: 'itself' | 'operator' };
  /** It would hold them if it were not in shadow. */
  'guard.would-trip': OfCluster & GuardFields;
  /** What it holds, or lets go, could not be written; it is tried again. Meanwhile no pod of a tainted node is evicted that it would hold. */
  'guard.save-failed': OfCluster & Why;
  /** The list of clusters could not be read. */
  'registry.unreadable': Why;
  /** An item stands among the registrations of clusters and is none; those that are go on. */
  'registry.invalid-item': Why;

  /** A relay says to a cluster's API server that Taintward evicts in the built-in controller's place. */
  'takeover.heartbeat-renewed': OfCluster;
  /** It says so no more, or not yet, or for another reason than before: the built-in controller evicts once the heartbeat has lapsed. */
  'takeover.heartbeat-suspended': OfCluster & Why;
  /** There is nothing any more by which it could say so. */
  'takeover.ended': OfCluster;

  /** A listener closed connections for want of file descriptors, or could not accept them; reported once a minute. */
  'listener.accept-failed': Why & { readonly listener: string };
  /** A listener failed on a request, and answered with 500. */
  'listener.request-failed': Why & { readonly listener: string };
  /** Something that the console was asked for failed. */
  'console.failed': Why & { readonly path: string };
  /** The console is served there, to who has a link to it. */
  'console.started': { readonly address: string };
  /** No cluster of this name is registered for this agent: it carries out what is due there, and follows nothing. */
  'agent.cluster-not-registered': OfCluster & { readonly agent: string };
  /** The relay's process is up; its probes answer on `port`. */
  'relay.started': { readonly port: number };
  /** STS does not say who it is: the deltas of its clusters are taken from whoever may send to the queues. */
  'relay.identity-unknown': Why;
  /** It was asked to stop. */
  'relay.stopping': Nothing;
  /** It stopped in good order. */
  'relay.stopped': Nothing;
  /** It stops without having said all, after `afterMs`. */
  'relay.shutdown-timed-out': { readonly afterMs: number };
  /** A relay speaks for a cluster from now on. */
  'relay.lease-acquired': OfCluster & { readonly epoch: number };
  /** Another relay speaks for the cluster. */
  'relay.lease-lost': OfCluster & { readonly epoch: number };
  /** A relay has more on its hands than its budget, for want of others; both in nodes. */
  'relay.over-capacity': { readonly load: number; readonly excess: number };
  /** A relay leaves a cluster to others. */
  'relay.lease-handed-off': OfCluster & { readonly epoch: number };
  /** A lease could not be asked for, renewed or released. */
  'relay.lease-failed': OfCluster & Why;
  /** All nodes of a cluster were listed. */
  'relay.listed': OfCluster & { readonly nodes: number };
  /** A list or a watch ended in an error, and is begun again. */
  'relay.watch-failed': OfCluster & Why & { readonly resource: string };
  /** A cluster is heard again, after `deafMs`. */
  'cluster.reconnected': OfCluster & { readonly deafMs: number };
  /** The API server's history is another one: its etcd was restored. Everything is listed anew. */
  'relay.etcd-restore-detected': OfCluster;
  /** A relay knows all nodes of its cluster, and all pods of the tainted ones. */
  'relay.synced': OfCluster & { readonly nodes: number; readonly tainted: number; readonly pods: number };
  /** When evicted pods were gone could not be written into history. */
  'history.write-failed': OfCluster & Why & { readonly pods: number };
  /** What the store holds of the cluster could not be read. */
  'relay.resync-failed': OfCluster & Why;
  /** A queue takes nothing; `waiting` deltas are sent again. */
  'relay.queue-unreachable': OfQueue & Why & { readonly waiting: number };
  /** A queue took a delta, of a node with all its pods or, with `uid`, of one pod. */
  'relay.delta-sent': OfNode & OfQueue & OfDelta & { readonly uid?: PodUid };
  /** A queue can never take this delta. */
  'relay.delta-rejected': OfNode & OfQueue & OfDelta & Why;

  /** A message could not be done, and comes again; in one process, what there is to do on a node. */
  'message.retrying': OfNode & Partial<OfDelta> & Why & { readonly receives: number };
  /** A queue gives no messages, and is asked again and again. */
  'queue.unreachable': OfQueue & Why;
  /** What is due in a cluster is sent on to the agent that works in it. */
  'message.forwarded': OfNode & { readonly agent: string };
  /** Nobody can read the message; it was set aside. */
  'message.rejected': OfMessage & Why;
  /** Nobody can read the message, and it could not be set aside. */
  'message.dead-letter-failed': OfMessage & Why;
  /** The message was done, but is seen again. */
  'message.not-deleted': OfQueue & OfMessage & Why;
  /** A function failed on all its messages. */
  'batch.failed': OfQueue & Why & { readonly messages: number };
  /** When a message comes again could not be set. */
  'message.visibility-update-failed': OfQueue & Why;
  /** Nobody can ask the process through its state directory. */
  'socket.unavailable': Why;
  /** A record of the table's stream cannot be read. */
  'stream-record.rejected': Why;
  /** The database lacks policies, stops or holds that operators set: all clusters are stopped until an operator resumes them. */
  'rules.outdated': Why;
  /** The files of the state were deleted, replaced or cut off while they were in use: the process ends, and is to be started again. */
  'state.lost': Why;
  /** What is kept of a node in its cluster cannot be read: it is passed over, and the others are worked on. */
  'state.unreadable': Why;
  /** A task of upkeep failed. */
  'maintenance.failed': Why & { readonly task: string };

  /** The simulated cluster's file was damaged and put aside. */
  'simulated-cluster.state-damaged': Why & { readonly file: string };
  /** One of its controllers failed, and looks again. */
  'simulated-cluster.controller-failed': Why & { readonly controller: string };
  /** Its API server failed on a request. */
  'simulated-cluster.request-failed': Why;
};

export type LogEvent = keyof LogEvents;

/** One line: an event and what it tells. */
export type LogLine = {
  [Event in LogEvent]: { readonly event: Event; readonly fields: LogEvents[Event] };
}[LogEvent];

/** What the line of an event is given, after its name. */
export type Told<Event extends LogEvent> = LogEvents[Event] extends Nothing ? [] : [fields: LogEvents[Event]];

/** What every log line about an eviction that is to come, or will not come, tells of it. */
export function evictionFields(ref: NodeRef, eviction: EvictionRecord | Ending): EvictionFields {
  const { fireAt, reasons } = eviction;
  const because = reasons.map(({ taint }) => taintText(taint));
  return { ...evictionRef(ref, eviction), fireAt, because };
}

/** Which eviction a line is about. */
export function evictionRef(
  { cluster, node }: NodeRef,
  { uid, namespace, name: pod, version }: EvictionPod,
): EvictionRef {
  return { cluster, node, namespace, pod, uid, delta: deltaId(version) };
}

type EvictionPod = Pick<EvictionRecord, 'uid' | 'namespace' | 'name'> & { readonly version: Version };

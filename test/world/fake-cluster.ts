import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ClusterUids, NodeName, PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { SkewRange } from '#shared/eviction/skew.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import type {
  DeletePreconditions,
  KubernetesApi,
  LiveNode,
  LivePod,
  Resource,
  Takeover,
} from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import { blockedBy } from '#shared/kubernetes/http/eviction-refusal.ts';
import type { Rival } from '#shared/kubernetes/marker.ts';
import type { WorkloadRef } from '#shared/kubernetes/replicas.ts';
import { isAlive, NEVER_RENEWED } from '#shared/kubernetes/takeover.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { FakeResource } from './fake-resource.ts';

/** A deletion that succeeded. */
export interface Deletion {
  readonly pod: LivePod;
  /** The UID in the caller's request. */
  readonly meant: PodUid;
  readonly at: EpochMs;
}

/** An object from a test; the cluster numbers its versions. */
type Unversioned<T> = Omit<T, 'resourceVersion'>;

/** A cluster in memory: the test sets its contents, and deletions take effect immediately. */
export class FakeCluster implements KubernetesApi {
  readonly #clock: Clock;
  readonly #stamps: boolean;
  #version = 0;
  readonly #nodes = new FakeResource<LiveNode>(() => this.#version);
  readonly #pods = new FakeResource<LivePod>(
    () => this.#version,
    ({ node }) => node,
  );
  readonly deletions: Deletion[] = [];
  readonly events: PodEvent[] = [];
  /** Leases of nodes, by name of the node, as their kubelets renewed them. */
  readonly nodeLeases = new Map<string, Omit<NodeLease, 'asOf'>>();
  /** The resource `takeovers/live`, if it exists. */
  takeover: Takeover | undefined;
  /** By default the clock differs, by less than delays evictions: then a wrong sign is noticed. */
  skewMs: number | undefined = 1_500;
  /** Skews that other API servers of the cluster, or slow responses, show beside `skewMs`. */
  otherSkews: readonly SkewRange[] = [];
  breakerOpen = false;
  /** Times at which other processes got answers, as reported to this client. */
  readonly answersElsewhere: EpochMs[] = [];
  /** Other installations that mark pods and were not reported yet. */
  readonly rivals: string[] = [];
  lastRival: Rival | undefined;
  /** Called after a pod was deleted. */
  onDeleted: (pod: LivePod) => void = () => undefined;
  /** The number of evictions that disruption budgets allow for pods with a label `app` of some value, by budget. */
  readonly budgets = new Map<string, { readonly app: string; allowed: number }>();
  /** The errors with which the API server rejects evictions of pods with a label `app` of this value. */
  readonly admission = new Map<string, ApiError>();
  /** Namespaces that are being deleted: as on an API server, nothing can be created there, an eviction included. */
  readonly terminatingNamespaces = new Set<string>();
  /** Called before each request; throws an `ApiError` to make it fail. */
  beforeRequest: (
    verb: 'get' | 'get-lease' | 'get-replicas' | 'list' | 'patch' | 'delete' | 'evict' | 'create' | 'try',
  ) => void = () => undefined;

  /** `stamps`: the server reports who wrote a node's taints, and when; the server of a managed cluster may not. */
  constructor(clock: Clock, { stamps = false } = {}) {
    this.#clock = clock;
    this.#stamps = stamps;
  }

  get skews(): readonly SkewRange[] {
    const { skewMs, otherSkews } = this;
    return skewMs === undefined ? otherSkews : [{ leastMs: skewMs, mostMs: skewMs }, ...otherSkews];
  }

  get nodes(): Resource<LiveNode> {
    return this.#nodes;
  }

  get pods(): Resource<LivePod> {
    return this.#pods;
  }

  /** By name. */
  get liveNodes(): ReadonlyMap<string, LiveNode> {
    return this.#nodes.live;
  }

  /** By namespace/name. */
  get livePods(): ReadonlyMap<string, LivePod> {
    return this.#pods.live;
  }

  /** Makes every version so far too old to watch from. */
  forgetHistory(): void {
    this.#nodes.forget();
    this.#pods.forget();
  }

  /** Reports whether the policy of a takeover removes this taint from a node that is created now. */
  keepsOut: (taint: LiveTaint) => boolean = ({ key, effect, timeAdded }) => {
    if (effect !== 'NoExecute' || timeAdded === undefined || !this.takeover?.keys.includes(key)) return false;
    const {
      lapseMs,
      withheld,
      heartbeat = withheld === undefined ? undefined : NEVER_RENEWED,
    } = this.takeover;
    return isAlive({ lapseMs, ...(heartbeat === undefined ? {} : { heartbeat }) }, timeAdded);
  };

  /** Creates or replaces a node. Its stamp, if there are stamps, changes with its taints, unless the test gives one. */
  putNode(node: Unversioned<LiveNode>): LiveNode {
    const before = this.liveNodes.get(node.name);
    const resourceVersion = this.#nextVersion();
    const same = before && isDeepStrictEqual(before.taints, node.taints);
    const fresh = this.#stamps ? `test@${resourceVersion}` : undefined;
    const taintsStamp = node.taintsStamp ?? (same ? before.taintsStamp : fresh);
    return this.#nodes.put(node.name, {
      ...node,
      resourceVersion,
      ...(taintsStamp === undefined ? {} : { taintsStamp }),
    });
  }

  removeNode(name: NodeName): LiveNode | undefined {
    return this.#nodes.remove(name, this.#nextVersion());
  }

  /** Creates or replaces a pod. */
  putPod(pod: Unversioned<LivePod>): LivePod {
    return this.#pods.put(keyOf(pod), { ...pod, resourceVersion: this.#nextVersion() });
  }

  removePod(pod: PodRef): LivePod | undefined {
    return this.#pods.remove(keyOf(pod), this.#nextVersion());
  }

  answeredElsewhere(at: EpochMs): void {
    this.answersElsewhere.push(at);
  }

  /** Reports whether the credentials have a permission. */
  allows: (right: Permission) => boolean = () => true;

  async allowed(right: Permission): Promise<boolean> {
    return this.allows(right);
  }

  /** A server that answers no review answers no ping either. */
  async ping(): Promise<void> {
    this.allows({ verb: 'get', resource: '/version' });
  }

  async lacking<P extends Permission>(rights: readonly P[]): Promise<readonly P[]> {
    return rights.filter((right) => !this.allows(right));
  }

  takeRival(): string | undefined {
    return this.rivals.shift();
  }

  /** What identifies the cluster; each fake is another one. */
  identity: ClusterUids = { system: randomUUID(), nodes: [] };

  async uids(): Promise<ClusterUids> {
    return this.identity;
  }

  async getNode(name: NodeName): Promise<LiveNode | undefined> {
    this.beforeRequest('get');
    return this.liveNodes.get(name);
  }

  async getNodeLease(name: NodeName): Promise<NodeLease | undefined> {
    this.beforeRequest('get-lease');
    const lease = this.nodeLeases.get(name);
    return lease && { asOf: this.#clock.now() + (this.skewMs ?? 0), ...lease };
  }

  /** Replicas of workloads, by namespace, kind and name. */
  readonly replicas = new Map<string, number>();

  async getReplicas({ namespace, kind, name }: WorkloadRef): Promise<number | undefined> {
    this.beforeRequest('get-replicas');
    return this.replicas.get(`${namespace}/${kind}/${name}`);
  }

  async getPod(pod: PodRef): Promise<LivePod | undefined> {
    this.beforeRequest('get');
    return this.livePods.get(keyOf(pod));
  }

  async podsOnNode(node: NodeName): Promise<readonly LivePod[]> {
    this.beforeRequest('list');
    return [...this.livePods.values()].filter((pod) => pod.node === node);
  }

  async markDisrupted(
    pod: PodRef,
    uid: PodUid,
    _now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod> {
    const notAfter = await allowed?.();
    this.beforeRequest('patch');
    this.mustBeInTime(notAfter);
    return this.putPod({ ...this.find(pod, { uid }), disrupted: true });
  }

  async deletePod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<void> {
    this.beforeRequest('delete');
    this.mustBeInTime(notAfter);
    this.#remove(pod, preconditions);
  }

  async evictPod(
    pod: PodRef,
    preconditions: DeletePreconditions,
    notAfter?: EpochMs,
  ): Promise<EvictionAnswer> {
    this.beforeRequest('evict');
    this.mustBeInTime(notAfter);
    this.#mayCreateIn(pod.namespace);
    const found = this.find(pod, preconditions);
    const answer = this.#admissionAnswer(found) ?? this.budgetAnswer(found);
    if (answer.kind === 'evicted') this.#remove(pod, preconditions);
    return answer;
  }

  #mayCreateIn(namespace: string): void {
    if (!this.terminatingNamespaces.has(namespace)) return;
    const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
    throw new ApiError(why, 403, 'Forbidden', undefined, { causes: ['NamespaceTerminating'] });
  }

  /** Returns the answer of webhooks to a pod's eviction, as `RestApi` reads it; `undefined`: there is none. */
  #admissionAnswer({ labels }: LivePod): EvictionAnswer | undefined {
    const refusal = this.admission.get(labels?.['app'] ?? '');
    if (!refusal) return undefined;
    const answer = blockedBy(refusal);
    if (!answer) throw refusal;
    return answer;
  }

  /**
   * Returns the answer of a pod's budgets to its eviction. A budget that allows the eviction allows one less from then
   * on.
   */
  protected budgetAnswer({ labels }: LivePod): EvictionAnswer {
    const [budget, ...others] = [...this.budgets.values()].filter(({ app }) => app === labels?.['app']);
    const blocker = 'budget';
    if (others.length > 0)
      return { kind: 'blocked', by: blocker, reason: 'it has several disruption budgets' };
    if (budget?.allowed === 0)
      return { kind: 'blocked', by: blocker, reason: 'its disruption budget needs it' };
    if (budget) budget.allowed -= 1;
    return { kind: 'evicted' };
  }

  #remove(pod: PodRef, preconditions: DeletePreconditions): void {
    const found = this.find(pod, preconditions);
    this.removePod(found);
    this.deletions.push({ pod: found, meant: preconditions.uid, at: this.#clock.now() });
    this.onDeleted(found);
  }

  async createEvent(event: PodEvent): Promise<void> {
    this.beforeRequest('create');
    this.#mayCreateIn(event.pod.namespace);
    if (!this.events.some(({ key }) => key === event.key)) this.events.push(event);
  }

  async getTakeover(): Promise<Takeover | undefined> {
    this.beforeRequest('get');
    return this.takeover;
  }

  async renewTakeover(takeover: Takeover, at: EpochMs): Promise<void> {
    this.beforeRequest('patch');
    const { takeover: known } = this;
    if (!known) throw new ApiError('takeovers "live" not found', 404, 'NotFound');
    if (known.resourceVersion !== takeover.resourceVersion) {
      throw new ApiError('the object has been modified', 409, 'Conflict');
    }
    const aliveSince = isAlive(known, at) ? (known.aliveSince ?? at) : at;
    const { withheld: _, ...renewed } = known;
    this.takeover = { ...renewed, resourceVersion: this.#nextVersion(), heartbeat: at, aliveSince };
  }

  async withholdTakeover({ resourceVersion }: Takeover, reason: string): Promise<void> {
    this.beforeRequest('patch');
    const { takeover: known } = this;
    if (!known) throw new ApiError('takeovers "live" not found', 404, 'NotFound');
    if (known.resourceVersion !== resourceVersion) {
      throw new ApiError('the object has been modified', 409, 'Conflict');
    }
    this.takeover = { ...known, resourceVersion: this.#nextVersion(), withheld: reason };
  }

  async tryTaints(taints: readonly LiveTaint[]): Promise<readonly LiveTaint[]> {
    this.beforeRequest('try');
    return taints.filter((taint) => !this.keepsOut(taint));
  }

  /** Creates `takeovers/live` in its initial state. */
  putTakeover(keys: readonly string[], lapseMs: number): Takeover {
    this.takeover = { keys, lapseMs, resourceVersion: this.#nextVersion() };
    return this.takeover;
  }

  close(): void {}

  protected mustBeInTime(notAfter: EpochMs | undefined): void {
    if (notAfter !== undefined && this.#clock.now() > notAfter) throw new LateCallError('not sent in time');
  }

  protected find(pod: PodRef, { uid, resourceVersion }: DeletePreconditions): LivePod {
    const found = this.livePods.get(keyOf(pod));
    if (!found) throw new ApiError(`pods "${pod.name}" not found`, 404, 'NotFound');
    if (found.uid !== uid) throw new ApiError('the UID in the precondition does not match', 409, 'Conflict');
    if (resourceVersion !== undefined && found.resourceVersion !== resourceVersion) {
      throw new ApiError('the ResourceVersion in the precondition does not match', 409, 'Conflict');
    }
    return found;
  }

  #nextVersion(): string {
    this.#version += 1;
    return String(this.#version);
  }
}

const keyOf = ({ namespace, name }: PodRef): string => `${namespace}/${name}`;

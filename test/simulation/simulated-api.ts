import { type ClusterAccess, UnknownClusterError } from '#shared/access/registered-clusters.ts';
import type { ClusterName, ClusterUids, NodeName, PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { Method } from '#shared/eviction/policy.ts';
import type { SkewRange } from '#shared/eviction/skew.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import type {
  DeletePreconditions,
  KubernetesApi,
  LiveNode,
  LivePod,
  Takeover,
} from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { Breaker } from '#shared/kubernetes/http/breaker.ts';
import { ClockSkew } from '#shared/kubernetes/http/clock-skew.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import { PrioritySemaphore } from '#shared/kubernetes/http/priority-semaphore.ts';
import type { WorkloadRef } from '#shared/kubernetes/replicas.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { Process } from './process.ts';
import type { Scene } from './scene.ts';
import { type Shown, SimulatedResource } from './simulated-resource.ts';
import type { StoragePorts } from './simulated-storage.ts';

/** An observation of a node by a process. */
export interface NodeObservation {
  readonly node: NodeName;
  /** The node's state at that time, by its number in the truth; `undefined`: the node never existed. */
  readonly state: number | undefined;
  readonly begunAt: EpochMs;
  readonly answeredAt: EpochMs;
}

/** A mark or a deletion as it was sent. */
export interface Sent {
  readonly sentAt: EpochMs;
  /** The process's observations of nodes. */
  readonly reads: readonly NodeObservation[];
  /** The method by which a pod is evicted. */
  readonly means: Method['kind'];
}

/** Receives the node states that a process sees, by their numbers in the truth. */
export interface Onlooker {
  all(states: ReadonlyMap<NodeName, number>): void;
  one(node: NodeName, state: number): void;
}

const NOBODY: Onlooker = { all: () => undefined, one: () => undefined };

/** The time after which observations are forgotten, because no process relies on them any more. */
const READ_KEPT_MS = 60_000;
const CALL_TIMEOUT_MS = 10_000;
/** The time for which a process relies on a registration. */
const REGISTRATION_MAX_AGE_MS = 20_000;

/**
 * An API server as one process accesses it. Calls wait for free slots, and fail immediately while the server does not answer. The
 * object keeps the process's observations, for the judge.
 */
export class SimulatedApi implements KubernetesApi {
  readonly takeRival = () => undefined;
  readonly lastRival = undefined;
  readonly allowed = async () => true;
  readonly ping = async () => undefined;
  readonly lacking = async () => [];
  readonly nodes: SimulatedResource<LiveNode>;
  readonly pods: SimulatedResource<LivePod>;
  readonly #cluster: LiveCluster;
  readonly #process: Process;
  readonly #scene: Scene;
  readonly #breaker = new Breaker();
  readonly #skew: ClockSkew;
  readonly #turns: PrioritySemaphore;
  #reads: NodeObservation[] = [];

  constructor(cluster: LiveCluster, process: Process, scene: Scene, onlooker = NOBODY) {
    this.#cluster = cluster;
    this.#process = process;
    this.#scene = scene;
    this.#skew = new ClockSkew(process.clock);
    this.#turns = new PrioritySemaphore(scene.weather.climate.callsAtOnce);
    this.nodes = this.#shown({
      chronicle: cluster.nodeChronicle,
      nodeOf: () => undefined,
      onRead: () => onlooker.all(cluster.truth.shownStates()),
      onSent: ({ object, state }) => state !== undefined && onlooker.one(object.name, state),
    });
    this.pods = this.#shown({
      chronicle: cluster.podChronicle,
      nodeOf: ({ node }) => node,
      onRead: (node) => scene.judge.podsRead(cluster.name, node),
      onSent: () => undefined,
    });
  }

  #shown<T extends LiveNode | LivePod>(
    shown: Omit<Shown<T>, 'cluster' | 'version' | 'request'>,
  ): SimulatedResource<T> {
    const { name } = this.#cluster;
    const version = () => this.#cluster.version;
    const request: Shown<T>['request'] = (perform) => this.#answer(async () => perform());
    return new SimulatedResource({ ...shown, cluster: name, version, request }, this.#process, this.#scene);
  }

  get skewMs(): number | undefined {
    return this.#scene.ownClock && this.#skew.at(this.#process.clock.now());
  }

  get skews(): readonly SkewRange[] {
    return this.#scene.ownClock ? this.#skew.rangesAt(this.#process.clock.now()) : [];
  }

  get breakerOpen(): boolean {
    return this.#breaker.open;
  }

  answeredElsewhere(at: EpochMs): void {
    const agoMs = this.#process.clock.now() - at;
    this.#breaker.answeredElsewhere(this.#scene.clock.now() - agoMs);
  }

  async getNode(name: NodeName): Promise<LiveNode | undefined> {
    const { clock } = this.#scene;
    const begunAt = clock.now();
    const seen = await this.#call(async () => {
      const state = this.#cluster.truth.stateOf(name);
      return { live: await this.#cluster.getNode(name), state };
    });
    this.#reads = this.#reads.filter(({ answeredAt }) => begunAt - answeredAt < READ_KEPT_MS);
    this.#reads.push({ node: name, state: seen.state, begunAt, answeredAt: clock.now() });
    return seen.live;
  }

  uids(): Promise<ClusterUids> {
    // No request, so that histories stay the same.
    return this.#cluster.uids();
  }

  async getNodeLease(node: NodeName): Promise<NodeLease | undefined> {
    // Without Leases, make no request, so that those histories stay the same.
    if (!this.#cluster.leases) return undefined;
    return this.#call(() => this.#cluster.getNodeLease(node));
  }

  getReplicas(workload: WorkloadRef): Promise<number | undefined> {
    return this.#call(() => this.#cluster.getReplicas(workload));
  }

  getPod(pod: PodRef): Promise<LivePod | undefined> {
    return this.#call(() => this.#cluster.getPod(pod));
  }

  podsOnNode(node: NodeName): Promise<readonly LivePod[]> {
    return this.#call(() => this.#cluster.podsOnNode(node));
  }

  async markDisrupted(
    pod: PodRef,
    uid: PodUid,
    _now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod> {
    let sent: Sent | undefined;
    const send = async () => {
      this.#mustBeInTime(await allowed?.());
      sent = this.#sent();
    };
    return this.#call(
      async () => {
        if (!sent) throw new Error('it was never sent');
        return this.#cluster.markDisruptedAs(pod, uid, sent);
      },
      { inHurry: false, send },
    );
  }

  deletePod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<void> {
    return this.#end(notAfter, (sent) => this.#cluster.deletePodAs(pod, preconditions, sent));
  }

  evictPod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<EvictionAnswer> {
    return this.#end(notAfter, (sent) => this.#cluster.evictPodAs(pod, preconditions, sent));
  }

  /** Sends a request by `notAfter` that deletes or evicts a pod. */
  async #end<T>(notAfter: EpochMs | undefined, perform: (sent: Sent) => Promise<T>): Promise<T> {
    let sent: Sent | undefined;
    const send = () => {
      this.#mustBeInTime(notAfter);
      sent = this.#sent();
    };
    return this.#call(
      async () => {
        if (!sent) throw new Error('a call was answered that was not sent');
        return perform(sent);
      },
      { inHurry: notAfter !== undefined, send },
    );
  }

  #mustBeInTime(notAfter: EpochMs | undefined): void {
    if (notAfter !== undefined && this.#process.clock.now() > notAfter)
      throw new LateCallError('it could not be sent in time');
  }

  #sent(): Sent {
    return { sentAt: this.#scene.clock.now(), reads: [...this.#reads], means: 'delete' };
  }

  createEvent(event: PodEvent): Promise<void> {
    return this.#call(() => this.#cluster.createEvent(event));
  }

  getTakeover(): Promise<Takeover | undefined> {
    return this.#call(() => this.#cluster.getTakeover());
  }

  renewTakeover(takeover: Takeover, at: EpochMs): Promise<void> {
    return this.#call(() => this.#cluster.renewTakeover(takeover, at));
  }

  withholdTakeover(takeover: Takeover, reason: string): Promise<void> {
    return this.#call(() => this.#cluster.withholdTakeover(takeover, reason));
  }

  tryTaints(taints: readonly LiveTaint[]): Promise<readonly LiveTaint[]> {
    return this.#call(() => this.#cluster.tryTaints(taints));
  }

  close(): void {}

  /** `send`: called when the request is sent; throws when the request must not be sent. */
  async #call<T>(
    perform: () => Promise<T>,
    { inHurry, send }: { readonly inHurry: boolean; readonly send: () => void | Promise<void> } = {
      inHurry: false,
      send: () => undefined,
    },
  ): Promise<T> {
    this.#refuseWhileOpen();
    return this.#turns.run(
      async () => {
        // Do not await without a promise: another turn would reorder histories that have nothing to await.
        const answer = send();
        if (answer) await answer;
        this.#refuseWhileOpen();
        const begun = this.#breaker.begin(this.#scene.clock.now());
        try {
          const answer = await this.#answer(perform);
          this.#breaker.answered();
          return answer;
        } catch (error) {
          if (error instanceof ApiError && error.status > 0) this.#breaker.answered();
          else if (error instanceof ApiError) this.#breaker.failed(begun, this.#scene.clock.now());
          throw error;
        }
      },
      { inHurry },
    );
  }

  async #answer<T>(perform: () => Promise<T>): Promise<T> {
    const { name } = this.#cluster;
    const { clock, weather } = this.#scene;
    const silentMs = weather.silenceMs(name);
    if (silentMs === undefined) return this.#dated(perform);
    await clock.sleep(Math.min(silentMs, CALL_TIMEOUT_MS));
    if (this.#process.dead) await new Promise<never>(() => undefined);
    throw new ApiError('the server does not answer', 0);
  }

  /** Performs a request whose answer contains its time, to the second. */
  async #dated<T>(perform: () => Promise<T>): Promise<T> {
    const own = this.#process.clock;
    const sentAt = own.now();
    let date = 0;
    const answered = () => {
      date = Math.floor(this.#scene.clock.now() / 1000) * 1000;
      return perform();
    };
    try {
      return await this.#process.request('api', answered, this.#cluster.name);
    } finally {
      if (date > 0) this.#skew.receive({ sentAt, receivedAt: own.now(), date });
    }
  }

  #refuseWhileOpen(): void {
    if (this.#breaker.refusesUntil(this.#scene.clock.now()) !== undefined) {
      throw new ApiError('it did not answer several calls in a row', 0);
    }
  }
}

/** The registered clusters as one process accesses them. */
export class SimulatedClusters implements ClusterAccess {
  readonly #scene: Scene;
  readonly #process: Process;
  readonly #registry: StoragePorts['registry'];
  readonly #known = new Map<ClusterName, { readonly api: KubernetesApi; readonly checkedAt: EpochMs }>();

  constructor(process: Process, registry: StoragePorts['registry'], scene: Scene) {
    this.#process = process;
    this.#registry = registry;
    this.#scene = scene;
  }

  async api(name: ClusterName): Promise<KubernetesApi> {
    const checkedAt = this.#scene.clock.now();
    const known = this.#known.get(name);
    if (known && checkedAt - known.checkedAt < REGISTRATION_MAX_AGE_MS) return known.api;
    this.#known.delete(name);
    const cluster = this.#scene.clusters.find((each) => each.name === name);
    if (!cluster || !(await this.#registry.get(name))) {
      throw new UnknownClusterError(`cluster ${name} is not registered (any more)`);
    }
    const { fault } = this.#scene;
    const api = known?.api ?? fault.api(new SimulatedApi(cluster, this.#process, this.#scene), this.#scene);
    this.#known.set(name, { api, checkedAt });
    return api;
  }
}

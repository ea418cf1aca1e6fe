import type { EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { KubernetesApi, LiveNode, LivePod, PodEvent, PodRef, Resource } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import type { Clock } from '#shared/time/clock.ts';

/** A deletion that succeeded. */
export interface Deletion {
  readonly pod: LivePod;
  /** The UID the caller asked for. */
  readonly meant: PodUid;
  readonly at: EpochMs;
}

/** A cluster as the handlers see it, in memory: what it holds is set by the test, deletions take effect at once. */
export class FakeCluster implements KubernetesApi {
  readonly #clock: Clock;
  readonly liveNodes = new Map<NodeName, LiveNode>();
  readonly livePods = new Map<string, LivePod>();
  readonly deletions: Deletion[] = [];
  readonly events: PodEvent[] = [];
  /** Called after a pod was deleted. */
  onDeleted: (pod: LivePod) => void = () => undefined;
  /** Called before each request; throws an `ApiError` to make it fail. */
  beforeRequest: (verb: 'get' | 'list' | 'patch' | 'delete' | 'create') => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get nodes(): Resource<LiveNode> {
    throw new Error('a fake cluster is not watched: tests drive the view themselves');
  }

  get pods(): Resource<LivePod> {
    throw new Error('a fake cluster is not watched: tests drive the view themselves');
  }

  putPod(pod: LivePod): void {
    this.livePods.set(keyOf(pod), pod);
  }

  removePod(pod: PodRef): LivePod | undefined {
    const found = this.livePods.get(keyOf(pod));
    this.livePods.delete(keyOf(pod));
    return found;
  }

  async getNode(name: NodeName): Promise<LiveNode | undefined> {
    this.beforeRequest('get');
    return this.liveNodes.get(name);
  }

  async getPod(pod: PodRef): Promise<LivePod | undefined> {
    this.beforeRequest('get');
    return this.livePods.get(keyOf(pod));
  }

  async listPodsOnNode(node: NodeName): Promise<readonly LivePod[]> {
    this.beforeRequest('list');
    return [...this.livePods.values()].filter((pod) => pod.node === node);
  }

  async markDisrupted(pod: PodRef, uid: PodUid): Promise<void> {
    this.beforeRequest('patch');
    this.putPod({ ...this.find(pod, uid), disrupted: true });
  }

  async deletePod(pod: PodRef, uid: PodUid): Promise<void> {
    this.beforeRequest('delete');
    const found = this.find(pod, uid);
    this.removePod(found);
    this.deletions.push({ pod: found, meant: uid, at: this.#clock.now() });
    this.onDeleted(found);
  }

  async createEvent(event: PodEvent): Promise<void> {
    this.beforeRequest('create');
    if (!this.events.some(({ key }) => key === event.key)) this.events.push(event);
  }

  close(): void {}

  protected find(pod: PodRef, uid: PodUid): LivePod {
    const found = this.livePods.get(keyOf(pod));
    if (!found) throw new ApiError(`pods "${pod.name}" not found`, 404, 'NotFound');
    if (found.uid !== uid) throw new ApiError('the UID in the precondition does not match', 409, 'Conflict');
    return found;
  }
}

const keyOf = ({ namespace, name }: PodRef): string => `${namespace}/${name}`;

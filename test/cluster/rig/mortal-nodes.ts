import { ApiError } from '#shared/kubernetes/api-error.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { TestCluster } from './test-cluster.ts';
import { until } from './until.ts';
import { WatchedNode } from './watched.ts';

const HEARTBEAT_MS = 2_500;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** The node controller's grace, and then some: it looks every second. */
const SEEN_WITHIN_MS = 45_000;

/** Nodes that renew their leases as kubelets do, and can die and come back. */
export class MortalNodes {
  readonly #cluster: TestCluster;
  readonly #alive = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #failure: unknown;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
    this.#timer = setInterval(() => {
      for (const node of this.#alive) this.#renew(node).catch((error) => this.#note(error));
    }, HEARTBEAT_MS);
  }

  async add(name: string, zone: string): Promise<string> {
    const node = await this.#cluster.addNode(name, [], zone);
    const spec = { holderIdentity: node, leaseDurationSeconds: 40, renewTime: microTime() };
    const [apiVersion, metadata] = ['coordination.k8s.io/v1', { name: node }];
    await this.#cluster.api.create(LEASES, { apiVersion, kind: 'Lease', metadata, spec });
    this.#alive.add(node);
    return node;
  }

  /** A node that nobody has heard of for `seconds`. */
  async addDead(name: string, zone: string, seconds: number): Promise<string> {
    const since = new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+/, '');
    const taint = { key: NODE_UNREACHABLE, effect: 'NoSchedule', timeAdded: since };
    const node = await this.#cluster.addNode(name, [taint], zone);
    this.#cluster.kubelet.removeNode(node);
    const condition = {
      type: 'Ready',
      status: 'Unknown',
      lastHeartbeatTime: since,
      lastTransitionTime: since,
    };
    await this.#cluster.api.patchStatus(`/api/v1/nodes/${node}`, { conditions: [condition] });
    return node;
  }

  /** Nothing is heard of these nodes any more; resolves when the node controller has noticed. */
  async die(nodes: readonly string[]): Promise<void> {
    for (const node of nodes) {
      this.#alive.delete(node);
      this.#cluster.kubelet.removeNode(node);
    }
    await this.#untilDown(nodes, true);
  }

  /** They are heard of again; resolves when the node controller has noticed. */
  async revive(nodes: readonly string[]): Promise<void> {
    for (const node of nodes) {
      this.#alive.add(node);
      this.#cluster.kubelet.addNode(node);
    }
    await this.#untilDown(nodes, false);
  }

  /** Throws when a sign of life could not be given. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#alive].map((node) => this.#cluster.api.remove(`${LEASES}/${node}`)));
  }

  async #untilDown(nodes: readonly string[], isDown: boolean): Promise<void> {
    for (const node of nodes)
      await until(`${node} is ${isDown ? 'down' : 'up'}`, SEEN_WITHIN_MS, async () => {
        const { spec } = WatchedNode.parse(await this.#cluster.api.read(`/api/v1/nodes/${node}`));
        return spec.taints.some(({ key }) => key === NODE_UNREACHABLE) === isDown;
      });
  }

  async #renew(node: string): Promise<void> {
    await this.#cluster.api.patch(`${LEASES}/${node}`, { spec: { renewTime: microTime() } });
  }

  #note(error: unknown): void {
    // It was removed meanwhile.
    if (!(error instanceof ApiError && error.status === 404)) this.#failure ??= error;
  }
}

/** `meta/v1.MicroTime`. */
const microTime = (): string => new Date().toISOString().replace('Z', '000Z');

import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { TestCluster } from './test-cluster.ts';
import { until } from './until.ts';
import { WatchedNode } from './watched.ts';

const HEARTBEAT_MS = 2_500;
/** Half of the kubelet's 40 s, so that the end of a node is waited for half as long. */
export const LEASE_SECONDS = 20;
/** After this many missed renewals in a row a node nearly counts as down. */
const MAX_MISSED = 4;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const DOWN_KEYS = [NODE_NOT_READY, NODE_UNREACHABLE];

/** Nodes that renew their leases as kubelets do, and can fail, die, and return. */
export class MortalNodes {
  readonly #cluster: TestCluster;
  readonly #leases = new Set<string>();
  readonly #alive = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  /** Heartbeats in a row that could not be sent, by node. */
  readonly #missed = new Map<string, number>();
  #failure: unknown;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
    this.#timer = setInterval(() => {
      for (const node of this.#alive) void this.#renew(node);
    }, HEARTBEAT_MS);
  }

  /** Adds a node; returns its full name. */
  async add(name: string, zone?: string): Promise<string> {
    const node = await this.#cluster.addNode(name, [], zone);
    const spec = { holderIdentity: node, leaseDurationSeconds: LEASE_SECONDS, renewTime: microTime() };
    const [apiVersion, metadata] = ['coordination.k8s.io/v1', { name: node }];
    await this.#cluster.api.create(LEASES, { apiVersion, kind: 'Lease', metadata, spec });
    this.#leases.add(node);
    this.#alive.add(node);
    return node;
  }

  /** Adds a node that has not reported for `seconds`. */
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

  /** Keeps the node running but reports it as not ready. */
  fail(node: string): Promise<void> {
    return this.#cluster.kubelet.failNode(node);
  }

  /** Stops the node's heartbeats. */
  die(node: string): void {
    this.#alive.delete(node);
    this.#cluster.kubelet.removeNode(node);
  }

  /** Resumes the node's heartbeats, and reports it as ready. */
  revive(node: string): void {
    this.#alive.add(node);
    this.#cluster.kubelet.addNode(node);
  }

  /** Resolves when the node controller has noticed that these nodes failed, or died. */
  untilDown(nodes: readonly string[]): Promise<void> {
    return this.#untilSeen(nodes, 'down');
  }

  /** Resolves when the node controller has noticed that these nodes are back. */
  untilUp(nodes: readonly string[]): Promise<void> {
    return this.#untilSeen(nodes, 'up');
  }

  /** Deletes the node and its lease from the cluster. */
  async remove(node: string): Promise<void> {
    this.#alive.delete(node);
    await this.#removeLease(node);
    await this.#cluster.deleteNode(node);
  }

  /** Throws when heartbeats could not be sent. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#leases].map((node) => this.#removeLease(node)));
  }

  async #untilSeen(nodes: readonly string[], state: 'up' | 'down'): Promise<void> {
    for (const node of nodes)
      await until(`${node} is ${state}`, async () => {
        const { spec } = WatchedNode.parse(await this.#cluster.api.read(`/api/v1/nodes/${node}`));
        return spec.taints.some(({ key }) => DOWN_KEYS.includes(key)) === (state === 'down');
      });
  }

  async #renew(node: string): Promise<void> {
    try {
      await this.#cluster.api.patch(`${LEASES}/${node}`, { spec: { renewTime: microTime() } });
      this.#missed.delete(node);
    } catch (error) {
      this.#note(node, error);
    }
  }

  async #removeLease(node: string): Promise<void> {
    await this.#cluster.api.remove(`${LEASES}/${node}`);
    this.#leases.delete(node);
  }

  #note(node: string, error: unknown): void {
    // The node was removed meanwhile.
    if (error instanceof ApiError && error.status === 404) return;
    const missed = (this.#missed.get(node) ?? 0) + 1;
    this.#missed.set(node, missed);
    if (missed === MAX_MISSED) this.#failure ??= error;
  }
}

/** `meta/v1.MicroTime`. */
const microTime = (): string => new Date().toISOString().replace('Z', '000Z');

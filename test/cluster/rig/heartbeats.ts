import { ApiError } from '#shared/kubernetes/api-error.ts';
import type { AdminApi } from './admin-api.ts';

/** Often enough for a node that counts as down after fifteen seconds. */
const HEARTBEAT_MS = 3_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

/** The signs of life of kubelets: each renews its node's Lease, and says whether the node is ready. */
export class Heartbeats {
  readonly #api: AdminApi;
  readonly #ready = new Map<string, 'True' | 'False'>();
  readonly #timer: NodeJS.Timeout;
  #failure: unknown;

  constructor(api: AdminApi) {
    this.#api = api;
    this.#timer = setInterval(() => {
      for (const node of this.#ready.keys()) this.#beat(node).catch((error) => this.#note(error));
    }, HEARTBEAT_MS);
  }

  async begin(node: string): Promise<void> {
    const spec = { holderIdentity: node, leaseDurationSeconds: 40, renewTime: microTime() };
    const metadata = { name: node };
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
    await this.#api.create(LEASES, lease);
    this.#ready.set(node, 'True');
    await this.#beat(node);
  }

  /** The node goes on, but says that it is not ready. */
  async notReady(node: string): Promise<void> {
    this.#ready.set(node, 'False');
    await this.#beat(node);
  }

  /** Nothing is heard of the node any more. */
  die(node: string): void {
    this.#ready.delete(node);
  }

  async forget(node: string): Promise<void> {
    this.die(node);
    await this.#api.remove(`${LEASES}/${node}`);
  }

  /** Throws when a node's signs could not be given. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #beat(node: string): Promise<void> {
    const status = this.#ready.get(node);
    if (status === undefined) return;
    await this.#api.patch(`${LEASES}/${node}`, { spec: { renewTime: microTime() } });
    const condition = { type: 'Ready', status, reason: 'Suite', lastHeartbeatTime: new Date().toISOString() };
    await this.#api.patchStatus(`/api/v1/nodes/${node}`, { conditions: [condition] });
  }

  #note(error: unknown): void {
    // The node was deleted meanwhile.
    if (!(error instanceof ApiError && error.status === 404)) this.#failure ??= error;
  }
}

/** `meta/v1.MicroTime`. */
const microTime = (): string => new Date().toISOString().replace('Z', '000Z');

import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ClusterRelay, type ClusterRelayDeps, type ClusterRelayState } from './cluster-relay.ts';

/** For each lease it holds a relay lets others go first for so long when another is free, but no longer than this. */
const HANDICAP_MS = 50;
export const MAX_HANDICAP_MS = 2_000;

/** Follows many clusters in one process, each for as long as it holds that cluster's lease. */
export class Relay {
  readonly #clusters = new Map<ClusterName, ClusterRelay>();
  readonly #deps: ClusterRelayDeps;

  constructor(deps: Omit<ClusterRelayDeps, 'hesitationMs'>) {
    this.#deps = { ...deps, hesitationMs: () => Math.min(HANDICAP_MS * this.#held(), MAX_HANDICAP_MS) };
  }

  /** Follows a cluster from now on. */
  add(name: ClusterName, api: KubernetesApi): void {
    const cluster = new ClusterRelay(name, api, this.#deps);
    this.#clusters.set(name, cluster);
    cluster.start();
  }

  /** Follows a cluster no longer; resolves when what waits is sent and the lease given up. */
  async remove(name: ClusterName): Promise<void> {
    const cluster = this.#clusters.get(name);
    this.#clusters.delete(name);
    await cluster?.stop();
  }

  /** Sends what waits, gives the leases up and ends. */
  async stop(): Promise<void> {
    await Promise.all([...this.#clusters.values()].map((cluster) => cluster.stop()));
    this.#deps.outbox.stop();
  }

  /** Where each cluster stands. */
  states(): ReadonlyMap<ClusterName, ClusterRelayState> {
    return new Map([...this.#clusters].map(([name, cluster]) => [name, cluster.state]));
  }

  #held(): number {
    return [...this.#clusters.values()].filter(({ state }) => state !== 'standby').length;
  }
}

import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ProofStore, StoredProofs } from '#shared/state/proofs.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Proofs in memory, which a test writes. */
export class ProofsInMemory implements ProofStore {
  readonly #proofs = new Map<ClusterName, StoredProofs>();
  readonly #traces = new Map<ClusterName, EpochMs>();

  async notedProbe(cluster: ClusterName, sentAt: EpochMs, _now: EpochMs, failure?: string): Promise<void> {
    const probe = { sentAt, ...(failure === undefined ? {} : { failure }) };
    this.#proofs.set(cluster, { ...(await this.read(cluster)), probe });
  }

  async notedPass(cluster: ClusterName): Promise<void> {
    const proofs = await this.read(cluster);
    this.#proofs.set(cluster, { ...proofs, passes: proofs.passes + 1 });
  }

  async notedDelta(cluster: ClusterName, sentAt: EpochMs): Promise<void> {
    this.#traces.set(cluster, sentAt);
  }

  async read(cluster: ClusterName): Promise<StoredProofs> {
    return this.#proofs.get(cluster) ?? { passes: 0 };
  }

  async tracedAt(cluster: ClusterName): Promise<EpochMs | undefined> {
    return this.#traces.get(cluster);
  }
}

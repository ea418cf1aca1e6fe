import type { EvictDeps } from '#shared/engine/evict/ports.ts';
import { whyNotEvicting } from '#shared/engine/evict/proofs.ts';
import type { Prover } from '#shared/engine/watch/ports.ts';

/**
 * Proves evictions by a call, in the process that decides and evicts. There, the relay, deciding, and
 * evicting share their dependencies.
 */
export const ownProver = (deps: Pick<EvictDeps, 'rules' | 'store' | 'clusters' | 'clock'>): Prover => ({
  async prove(cluster) {
    const asOf = deps.clock.now();
    const unproven = await whyNotEvicting(cluster, deps);
    return unproven === undefined ? { asOf } : { unproven };
  },
});

import type { EvictDeps } from '#shared/engine/evict/evict-node.ts';
import { whyNotEvicting } from '#shared/engine/evict/probe.ts';
import type { Prover } from '#shared/engine/watch/prover.ts';

/** Proves evictions in the process that decides and evicts, by a call: relay, deciding, and evicting share what they need of the world. */
export const ownProver = (deps: Pick<EvictDeps, 'rules' | 'store' | 'clusters' | 'clock'>): Prover => ({
  async prove(cluster) {
    const asOf = deps.clock.now();
    const unproven = await whyNotEvicting(cluster, deps);
    return unproven === undefined ? { asOf } : { unproven };
  },
});

import type { EvictDeps } from '#functions/evict/evict-node.ts';
import { whyNotEvicting } from '#functions/evict/probe.ts';
import type { Prover } from '#functions/watch-relay/prover.ts';

/** Proves evictions in the process that decides and evicts, by a call: relay, deciding, and evicting share what they need of the world. */
export const ownProver = (deps: Pick<EvictDeps, 'rules' | 'store' | 'clusters' | 'clock'>): Prover => ({
  async prove(cluster) {
    const asOf = deps.clock.now();
    const unproven = await whyNotEvicting(cluster, deps);
    return unproven === undefined ? { asOf } : { unproven };
  },
});

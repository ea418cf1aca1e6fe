import type { Prover } from '#functions/watch-relay/prover.ts';

/** Evictions work, as often as anybody asks. */
export const PROVEN: Prover = { prove: async () => ({ asOf: Date.now() }) };

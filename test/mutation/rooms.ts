/** Files that are mutated together, and the tests that must detect the mutants. */
export interface Room {
  readonly mutate: readonly string[];
  readonly testFiles: readonly string[];
  /**
   * The percentage of mutants that the tests must detect, where survivors are only listed. Absent: `equivalent.ts`
   * explains each survivor.
   */
  readonly minScore?: number;
}

/** The rooms in which decisions are made, carried out, and forwarded. */
export const ROOMS: Readonly<Record<string, Room>> = {
  taints: { mutate: ['shared/taints/*.ts'], testFiles: ['test/unit/taints/*.test.ts'] },
  eviction: { mutate: ['shared/eviction/*.ts'], testFiles: ['test/unit/eviction/*.test.ts'] },
  policy: {
    mutate: ['shared/state/policy-document.ts'],
    testFiles: ['test/unit/state/policy-*.test.ts'],
  },
  messages: {
    mutate: [
      'shared/aws/{consume,delta-message,due-message,rejected-message,due-queues,sqs-*,queue-set,limits}.ts',
    ],
    // Those of `lambda` load a function once in a process, so that they fail the second time.
    testFiles: ['test/unit/aws/*.test.ts'],
  },
  'work-queue': {
    mutate: ['shared/engine/work-queue/*.ts'],
    testFiles: ['test/unit/engine/work-queue/*.test.ts'],
  },
  decide: {
    mutate: ['shared/engine/decide/*.ts'],
    testFiles: ['test/unit/{deltas,engine/decide}/*.test.ts'],
    minScore: 90,
  },
  relay: {
    mutate: ['shared/aws/relay/*.ts'],
    testFiles: ['test/unit/aws/relay/*.test.ts'],
    minScore: 90,
  },
  evict: {
    mutate: ['shared/engine/evict/*.ts'],
    testFiles: ['test/unit/{evict,engine/evict}/*.test.ts'],
    minScore: 90,
  },
  watch: {
    mutate: ['shared/engine/watch/*.ts'],
    testFiles: ['test/unit/engine/watch/*.test.ts'],
    minScore: 90,
  },
};

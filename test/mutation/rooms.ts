/** What is mutated together, and the tests that have to notice. */
export interface Room {
  readonly mutate: readonly string[];
  readonly testFiles: readonly string[];
}

/** Where decisions are made, and messages carried. */
export const ROOMS: Readonly<Record<string, Room>> = {
  taints: { mutate: ['shared/taints/*.ts'], testFiles: ['test/unit/taints/*.test.ts'] },
  eviction: { mutate: ['shared/eviction/*.ts'], testFiles: ['test/unit/eviction/*.test.ts'] },
  policy: {
    mutate: ['shared/clusters/policy-document.ts'],
    testFiles: ['test/unit/clusters/policy-document.test.ts'],
  },
  queues: { mutate: ['shared/queues/*.ts'], testFiles: ['test/unit/queues/*.test.ts'] },
  'work-queue': {
    mutate: ['shared/work-queue/*.ts'],
    testFiles: ['test/unit/work-queue/*.test.ts'],
  },
};

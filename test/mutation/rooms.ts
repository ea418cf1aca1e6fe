/** Files that are mutated together, and the tests that must detect the mutants. */
export interface Room {
  readonly mutate: readonly string[];
  readonly testFiles: readonly string[];
}

/** The rooms in which decisions are made and messages are forwarded. */
export const ROOMS: Readonly<Record<string, Room>> = {
  taints: { mutate: ['shared/taints/*.ts'], testFiles: ['test/unit/taints/*.test.ts'] },
  eviction: { mutate: ['shared/eviction/*.ts'], testFiles: ['test/unit/eviction/*.test.ts'] },
  policy: {
    mutate: ['shared/state/policy-document.ts'],
    testFiles: ['test/unit/state/policy-document.test.ts'],
  },
  messages: {
    mutate: [
      'shared/aws/{delta-message,due-message,message-*,rejected-message,lambda/*,due-queues,sqs-*,queue-set,limits}.ts',
    ],
    testFiles: ['test/unit/aws/{*,lambda/*}.test.ts'],
  },
  'work-queue': {
    mutate: ['shared/engine/work-queue/*.ts'],
    testFiles: ['test/unit/engine/work-queue/*.test.ts'],
  },
};

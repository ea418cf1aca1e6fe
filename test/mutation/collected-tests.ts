import { type MockTracker, mock } from 'node:test';

/** The parts of `node:test`'s context that a test receives. */
export interface CollectedContext {
  readonly name: string;
  readonly mock: MockTracker;
  after(hook: () => unknown): void;
  diagnostic(message: string): void;
}

export interface CollectedTest {
  /** The file's suites and the test's own name. */
  readonly name: string;
  readonly body: (context: CollectedContext) => unknown;
}

type Body = (context: CollectedContext) => unknown;

interface Suite {
  readonly name: string;
  readonly before: Body[];
  readonly after: Body[];
}

export { mock };

let collected: CollectedTest[] = [];
let suites: readonly Suite[] = [];

const suite = (name: string): Suite => ({ name, before: [], after: [] });

/** Discards the collected tests, and collects the tests of one file while `load` runs. */
export async function collectTests(
  file: string,
  load: () => Promise<unknown>,
): Promise<readonly CollectedTest[]> {
  collected = [];
  suites = [suite(file)];
  await load();
  return collected;
}

/** Replaces `describe` of `node:test`. */
export function describe(name: string, ...rest: readonly [object, () => void] | readonly [() => void]): void {
  const outer = suites;
  suites = [...outer, suite(name)];
  (rest.at(-1) as () => void)();
  suites = outer;
}

/** Replaces `test` of `node:test`; options, which matter only for concurrent runs, are ignored. */
export function test(name: string, ...rest: readonly [object, Body] | readonly [Body]): void {
  const around = suites;
  collected.push({
    name: [...around.map((each) => each.name), name].join(' > '),
    body: async (context) => {
      try {
        for (const each of around) for (const hook of each.before) await hook(context);
        await (rest.at(-1) as Body)(context);
      } finally {
        for (const each of around.toReversed()) for (const hook of each.after) await hook(context);
      }
    },
  });
}

/** Replace the hooks of `node:test`; a suite's hooks run around each test, because a mutant's tests run one by one. */
export const before = (hook: Body): void => void suites.at(-1)?.before.push(hook);
export const after = (hook: Body): void => void suites.at(-1)?.after.push(hook);
export { after as afterEach, before as beforeEach };

const Tracker = mock.constructor as new () => MockTracker;

/** Runs a test, and the hooks that it registered. Rejects if the test does. */
export async function runTest({ name, body }: CollectedTest): Promise<void> {
  const hooks: (() => unknown)[] = [];
  const context = {
    name,
    mock: new Tracker(),
    after: (hook: () => unknown) => void hooks.push(hook),
    diagnostic: () => undefined,
  };
  try {
    await body(context);
  } finally {
    for (const hook of hooks) await hook();
    context.mock.reset();
  }
}

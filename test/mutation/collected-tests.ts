import { type MockTracker, mock } from 'node:test';

/** What a test is given, of what `node:test` gives it. */
export interface CollectedContext {
  readonly name: string;
  readonly mock: MockTracker;
  after(hook: () => unknown): void;
}

export interface CollectedTest {
  /** Its file's suites and its own name. */
  readonly name: string;
  readonly body: (context: CollectedContext) => unknown;
}

type Body = (context: CollectedContext) => unknown;

let collected: CollectedTest[] = [];
let suites: readonly string[] = [];

/** Forgets what was collected, and collects the tests of one file anew while `load` runs. */
export async function collectTests(
  file: string,
  load: () => Promise<unknown>,
): Promise<readonly CollectedTest[]> {
  collected = [];
  suites = [file];
  await load();
  return collected;
}

/** In place of `describe` of `node:test`. */
export function describe(name: string, ...rest: readonly [object, () => void] | readonly [() => void]): void {
  const outer = suites;
  suites = [...outer, name];
  (rest.at(-1) as () => void)();
  suites = outer;
}

/** In place of `test` of `node:test`; options are for whom runs tests beside one another. */
export function test(name: string, ...rest: readonly [object, Body] | readonly [Body]): void {
  collected.push({ name: [...suites, name].join(' > '), body: rest.at(-1) as Body });
}

const Tracker = mock.constructor as new () => MockTracker;

/** Runs a test, and what it wanted done after it. Rejects as it does. */
export async function runTest({ name, body }: CollectedTest): Promise<void> {
  const hooks: (() => unknown)[] = [];
  const context = { name, mock: new Tracker(), after: (hook: () => unknown) => void hooks.push(hook) };
  try {
    await body(context);
  } finally {
    for (const hook of hooks) await hook();
    context.mock.reset();
  }
}

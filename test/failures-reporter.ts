import { relative, resolve } from 'node:path';
import type { TestEvent } from 'node:test/reporters';
import { stripVTControlCharacters } from 'node:util';

/** A test that failed. */
export interface Failure {
  /** The file in Node's arguments, from the working directory. */
  readonly file: string;
  /** The name of the test, with the suites around it. */
  readonly name: string;
  /** The first line of its error. */
  readonly error: string;
}

/** Describes a failure in one line. */
export const failureText = ({ file, name, error }: Failure): string => `${file}: ${name}: ${error}`;

/** A test that was skipped. */
export interface Skipped {
  readonly name: string;
  readonly reason: string;
}

/** A suite fails with its tests, each of which has an event of its own. */
const OF_TESTS = 'subtestsFailed';

/**
 * A reporter for Node's test runner: a line of JSON for each test that failed or was skipped. A test that is skipped
 * without a reason has failed, and so has a file without tests.
 */
export default async function* failuresReporter(
  source: AsyncIterable<TestEvent>,
): AsyncGenerator<string, void> {
  /** The names of the running tests and suites, by nesting. */
  const under: string[] = [];
  let found: Failure[] = [];
  for await (const event of source) {
    if (event.type === 'test:start') under.splice(event.data.nesting, Infinity, event.data.name);
    if (event.type === 'test:fail') {
      const { details, file = '', name, nesting, todo } = event.data;
      const { failureType, cause } = details.error as {
        readonly failureType?: string;
        readonly cause?: unknown;
      };
      if (todo !== undefined || failureType === OF_TESTS) continue;
      found.push({
        file: relative(process.cwd(), file),
        name: [...under.slice(0, nesting), name].join(' > '),
        error: firstLine(cause ?? details.error),
      });
    }
    if (event.type === 'test:pass') {
      const { name, file = '', skip = event.data.todo } = event.data;
      if (typeof skip === 'string' && skip !== '')
        yield `${JSON.stringify({ name, reason: skip } satisfies Skipped)}\n`;
      else if (skip)
        found.push({ file: relative(process.cwd(), file), name, error: 'skipped without a reason' });
      // Node reports a file that defines no test as a test that passes.
      if (resolve(name) === file)
        yield `${JSON.stringify({ file: name, name, error: 'it has no tests' } satisfies Failure)}\n`;
    }
    if (event.type !== 'test:summary') continue;
    // A test may be defined by a module that several files share; the summary names the file that ran it.
    // A file that `npm test` generates for a folder is none.
    const { file } = event.data;
    for (const failure of found)
      yield `${JSON.stringify(file?.endsWith('.ts') ? { ...failure, file: relative(process.cwd(), file) } : failure)}\n`;
    found = [];
  }
}

const firstLine = (error: unknown): string =>
  stripVTControlCharacters(error instanceof Error ? error.message : String(error))
    .split('\n')
    .find((line) => line.trim() !== '') ?? 'no message';

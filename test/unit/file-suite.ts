import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { relative } from 'node:path';
import { after, before, describe } from 'node:test';
import { inspect } from 'node:util';

const load = createRequire(import.meta.url);

/** A test that waits for ever fails by its name, and before its process is stopped after five minutes. */
const MAX_MS = 4 * 60_000;

/** The file whose tests run now. */
let current = '';
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => process.stderr.write(`${event} during ${current}: ${inspect(error)}\n`));
}

/** Process state that the files of a folder share. */
const shared = () => ({
  timers: [globalThis.setTimeout, globalThis.setInterval, globalThis.setImmediate, globalThis.Date],
  environment: { ...process.env },
  directory: process.cwd(),
  umask: process.umask(),
});

/**
 * Loads a test file into its own suite, so that its top-level hooks apply only to it. Fails the suite if the file
 * leaves the process changed. Loading is synchronous, because Node would assign what follows an `await` to no suite
 * without the hook of `untracked-resources.ts`: a file that awaits at its top level cannot be loaded.
 */
export function fileSuite(file: string): Promise<void> | void {
  const name = relative(import.meta.dirname, file);
  return describe(name, { timeout: MAX_MS }, () => {
    const found = shared();
    before(() => {
      current = name;
    });
    after(() => assert.deepEqual(shared(), found, 'the process is not as the file found it'));
    load(file);
  });
}

import assert from 'node:assert/strict';
import { relative } from 'node:path';
import { after, describe } from 'node:test';
import { pathToFileURL } from 'node:url';

/** Process state that the files of a folder share. */
const shared = () => ({
  timers: [globalThis.setTimeout, globalThis.setInterval, globalThis.setImmediate, globalThis.Date],
  environment: { ...process.env },
  directory: process.cwd(),
  umask: process.umask(),
});

/**
 * Loads a test file into its own suite, so that its top-level hooks apply only to it. Fails the suite if the file
 * leaves the process changed.
 */
export function fileSuite(file: string): Promise<void> | void {
  return describe(relative(import.meta.dirname, file), async () => {
    const found = shared();
    after(() => assert.deepEqual(shared(), found, 'the process is not as the file found it'));
    await import(pathToFileURL(file).href);
  });
}

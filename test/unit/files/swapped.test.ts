import assert from 'node:assert/strict';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test';
import { readOwn } from '#shared/files/owner-only.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = fs.mkdtempSync(join(tmpdir(), 'swapped-'));
  path = join(dir, 'file');
  fs.writeFileSync(path, 'ours', { mode: 0o600 });
});
afterEach(() => fs.rmSync(dir, { recursive: true }));

/** Replaces the file at the path after it was checked. */
function swapped(context: TestContext, swap: () => void): void {
  const { lstatSync } = fs;
  const swapping = (...args: Parameters<typeof lstatSync>) => {
    const found = lstatSync(...args);
    swap();
    return found;
  };
  context.mock.method(fs, 'lstatSync', swapping as typeof lstatSync);
  syncBuiltinESMExports();
  context.after(() => {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

const options = { skip: process.platform === 'win32' && 'Windows has no owners and modes' };

describe('a file that is swapped after the check', () => {
  test('is not read through a link', options, (context) => {
    swapped(context, () => {
      fs.unlinkSync(path);
      fs.writeFileSync(join(dir, 'target'), 'theirs', { mode: 0o600 });
      fs.symlinkSync(join(dir, 'target'), path);
    });
    assert.throws(() => readOwn(path), { code: 'ELOOP' });
  });

  test('is not read if other users may write it', options, (context) => {
    swapped(context, () => fs.chmodSync(path, 0o666));
    assert.throws(() => readOwn(path), {
      name: 'ForeignFileError',
      message: /may be written by other users/,
    });
  });
});

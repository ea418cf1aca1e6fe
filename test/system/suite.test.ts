import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const STEADY = "import { test } from 'node:test'; test('steady', () => {});";
const SKIPPED =
  "import { test } from 'node:test'; test('rests', (t) => t.skip('its server has no such thing'));";
const UNREASONED = "import { test } from 'node:test'; test('rests', { skip: true }, () => {});";
const BROKEN = "import { test } from 'node:test'; test('broken', () => { throw new Error('as ever'); });";

/** Returns a module, which is no test file, with a test in a suite that fails the first time it is run. */
const flaky = (folder: string) => `
import { existsSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
export const define = () => describe('a contract', () => {
  test('flaps', () => {
    if (existsSync('${folder}/ran')) return;
    writeFileSync('${folder}/ran', '');
    throw new Error('once');
  });
});`;
const SHARES = "import { define } from './flaky.ts'; define();";

/** Runs a suite of these files, and returns its result. */
function suite(t: TestContext, files: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'suite-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'flaky.ts'), flaky(folder));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const { NODE_TEST_CONTEXT: _, TAINTWARD_FAILURES: __, ...env } = process.env;
  const noted = join(folder, 'noted');
  writeFileSync(noted, '');
  const { status, stdout } = spawnSync(process.execPath, ['test/suite.ts', folder, ...args], {
    cwd: PROJECT_DIR,
    env: { ...env, TAINTWARD_FLAKY: noted },
    encoding: 'utf8',
  });
  const lines = (start: string) => stdout.split('\n').filter((line) => line.startsWith(start));
  return { status, lines, noted: readFileSync(noted, 'utf8') };
}

for (const isolation of ['process', 'none']) {
  describe(`a suite whose files have isolation ${isolation}`, () => {
    const own = ['--isolation', isolation];

    test('passes if all of its tests do', (t) => {
      assert.equal(suite(t, { 'a.test.ts': STEADY }, ...own, '--rerun').status, 0);
    });

    test('names and counts the tests that were skipped, with their reasons', (t) => {
      const { status, lines } = suite(t, { 'a.test.ts': STEADY, 'b.test.ts': SKIPPED }, ...own);
      assert.deepEqual(
        { status, count: lines('1 skipped'), skipped: lines('SKIPPED') },
        {
          status: 0,
          count: ['1 skipped by name'],
          skipped: ['SKIPPED rests: its server has no such thing'],
        },
      );
    });

    test('fails if a test is skipped without a reason, or a file has no tests', (t) => {
      for (const second of [UNREASONED, 'export {};'])
        assert.equal(suite(t, { 'a.test.ts': STEADY, 'b.test.ts': second }, ...own, '--rerun').status, 1);
    });

    test('passes, and names the test, if a failed test passes by itself', (t) => {
      const files = { 'a.test.ts': SHARES, 'b.test.ts': STEADY };
      const { status, lines, noted } = suite(t, files, ...own, '--rerun');
      assert.deepEqual(
        { status, flaky: lines('FLAKY'), noted },
        { status: 0, flaky: ['FLAKY a contract > flaps'], noted: 'a contract > flaps\n' },
      );
    });

    test('fails if a test fails twice', (t) => {
      const { status, lines } = suite(t, { 'a.test.ts': SHARES, 'b.test.ts': BROKEN }, ...own, '--rerun');
      assert.equal(status, 1);
      assert.equal(lines('run once more').length, 2);
    });

    test('fails at the first failure without --rerun', (t) => {
      const { status, lines } = suite(t, { 'a.test.ts': SHARES }, ...own);
      assert.deepEqual([status, lines('FLAKY')], [1, []]);
    });

    test('fails if a file cannot be loaded', (t) => {
      assert.equal(suite(t, { 'a.test.ts': "import './nowhere.ts';" }, ...own, '--rerun').status, 1);
    });
  });
}

test('a suite without tests fails', (t) => {
  assert.equal(suite(t, {}).status, 64);
});

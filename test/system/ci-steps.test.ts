import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const FAILING =
  "import { test } from 'node:test'; test('counts', () => { throw new Error('2 is not 3\\nindeed'); });";

/** Runs a script of steps as `.ci/run` does, and returns its status and the lines that it printed. */
function steps(
  t: TestContext,
  script: string,
): { readonly status: number | null; readonly lines: readonly string[] } {
  const work = mkdtempSync(join(tmpdir(), 'steps-'));
  t.after(() => rmSync(work, { recursive: true }));
  writeFileSync(join(work, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(work, 'counting.test.ts'), FAILING);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout } = spawnSync(
    'bash',
    ['-c', `set -euo pipefail; work=${work}; . .ci/steps\n${script}\nverdict`],
    { cwd: PROJECT_DIR, env, encoding: 'utf8' },
  );
  return { status, lines: stdout.split('\n') };
}

test('lists what failed and passes if nothing did', (t) => {
  const { status, lines } = steps(t, 'try one true\nbeside other try two true\njoined other');
  assert.deepEqual([status, lines.includes('0 failed:')], [0, true]);
});

test('runs all steps after failures, and lists each with file, test, and first line', (t) => {
  const { status, lines } = steps(
    t,
    `broken() { echo 'error: no such thing'; false; echo unreachable; }
     try first broken
     beside suites try suite node test/suite.ts $work/counting.test.ts
     try last echo reached
     joined suites`,
  );
  assert.equal(status, 1);
  assert.ok(lines.includes('reached') && !lines.includes('unreachable'));
  const failed = lines.filter((line) => line.startsWith('FAILED')).toSorted();
  assert.equal(failed.length, 2);
  assert.equal(failed[0], 'FAILED first: error: no such thing');
  assert.match(failed[1] ?? '', /^FAILED suite: \S*counting\.test\.ts: counts: 2 is not 3$/);
});

test('fails if steps that run beside others end early', (t) => {
  const { status, lines } = steps(
    t,
    'setup() { false; try never true; }\nbeside suites setup\njoined suites',
  );
  assert.deepEqual([status, lines.includes('FAILED suites: ended early')], [1, true]);
});

test('lists what steps skipped, and how long each took', (t) => {
  const { status, lines } = steps(
    t,
    `try words echo 'SKIPPED words: there is no Go'
     skip chart 'there is no helm'`,
  );
  const listed = (start: RegExp) => lines.filter((line) => start.test(line));
  assert.deepEqual(
    [status, listed(/^SKIPPED \w+: /), listed(/ s: words$/).length],
    [
      0,
      [
        'SKIPPED words: there is no Go',
        'SKIPPED words: words: there is no Go',
        'SKIPPED chart: there is no helm',
      ],
      1,
    ],
  );
});

test('runs at most so many lanes at once, and notes one that ends early', (t) => {
  const { status, lines } = steps(
    t,
    `lanes=2
     running() { ls $work/running | wc -l; }
     mkdir $work/running
     waiting() { touch $work/running/$1; sleep 0.2; echo "at once: $(running)"; sleep 0.2; rm $work/running/$1; }
     for each in 1 2 3 4; do lane $each waiting $each; done
     lane broken false
     lanes_joined`,
  );
  const most = lines.flatMap((line) => /^at once: *(\d+)$/.exec(line)?.[1] ?? []).toSorted();
  assert.equal(most.length, 4);
  assert.ok(Number(most.at(-1)) <= 2, `${most.at(-1)} at once`);
  assert.deepEqual([status, lines.includes('FAILED broken: ended early')], [1, true]);
});

test('does not fail by figures', (t) => {
  const { status, lines } = steps(t, 'judge mutants false');
  assert.deepEqual([status, lines.includes('MISSED (fails nothing) mutants')], [0, true]);
});

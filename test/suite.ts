import { spawnSync } from 'node:child_process';
import { appendFileSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Failure, failureText, type Skipped } from './failures-reporter.ts';

/*
 * Runs a suite of processes: `node test/suite.ts test/cluster [--isolation none]`. With --rerun, which CI uses for
 * suites beside real servers, a file with a failing test is run again, by itself. A test that passes then is reported
 * as FLAKY; a test that fails again fails the suite. Skipped tests are reported and counted, with their reasons.
 * --concurrency N is for suites whose files need no servers.
 */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    isolation: { type: 'string', default: 'process' },
    concurrency: { type: 'string', default: '1' },
    rerun: { type: 'boolean', default: false },
  },
});
/** Files to which the names of flaky tests, and the failures, are also added; a caller that runs several suites sets them. */
const { TAINTWARD_FLAKY, TAINTWARD_FAILURES } = process.env;
const besideServers = values.concurrency === '1';

/** The longest file takes half as long on a busy machine. Without this limit a hanging file would never be reported. */
const FILE_LIMIT_MS = 20 * 60_000;

/** The reasons of skipped tests, by test. */
const skipped = new Map<string, string>();

/** Runs test files one after the other, and returns the failed tests; `undefined`: the failure is not in a test. */
function run(files: readonly string[]): readonly Failure[] | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'taintward-suite-'));
  try {
    const failures = join(folder, 'failures');
    const reporter = new URL('failures-reporter.ts', import.meta.url).href;
    const { status } = spawnSync(
      process.execPath,
      [
        ...['--test', `--test-concurrency=${values.concurrency}`, `--test-isolation=${values.isolation}`],
        `--test-timeout=${FILE_LIMIT_MS}`,
        // A failing hook leaves timers, watches, and processes behind, which would keep the file running without this.
        ...(besideServers ? ['--test-force-exit'] : []),
        ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
        ...[`--test-reporter=${reporter}`, `--test-reporter-destination=${failures}`],
        ...files,
      ],
      { stdio: 'inherit' },
    );
    const lines = readFileSync(failures, 'utf8').split('\n').filter(Boolean);
    const results = lines.map((line): Failure | Skipped => JSON.parse(line));
    const failed: Failure[] = [];
    for (const result of results) {
      if ('reason' in result) skipped.set(result.name, result.reason);
      else failed.push(result);
    }
    return status !== 0 && failed.length === 0 ? undefined : failed;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const files = positionals
  .flatMap((given) => globSync(given.endsWith('.ts') ? given : `${given}/**/*.test.ts`))
  .toSorted();
if (files.length === 0) {
  process.stderr.write(`there are no tests in ${positionals.join(', ')}\n`);
  process.exit(64);
}

/** Fails the suite with these failures; `undefined`: the failure is not in a test. */
function fail(failures: readonly Failure[] | undefined): void {
  process.exitCode = 1;
  if (TAINTWARD_FAILURES && failures)
    appendFileSync(TAINTWARD_FAILURES, failures.map((each) => `${failureText(each)}\n`).join(''));
}

const failed = run(files);
const again = Map.groupBy(failed ?? [], ({ file }) => file);
if (failed === undefined || (failed.length > 0 && !values.rerun)) fail(failed);
else {
  const flaky: string[] = [];
  for (const [file, tests] of again) {
    process.stdout.write(`\nrun once more, by itself: ${file}\n`);
    // Where files share a process, only the module that defines a test may be known.
    const still = run(files.includes(file) ? [file] : files);
    if (still === undefined || still.length > 0) fail(still);
    const failing = new Set(still?.map(({ name }) => name));
    if (still) flaky.push(...tests.map(({ name }) => name).filter((name) => !failing.has(name)));
  }
  for (const name of flaky) process.stdout.write(`FLAKY ${name}\n`);
  if (TAINTWARD_FLAKY && flaky.length > 0) appendFileSync(TAINTWARD_FLAKY, `${flaky.join('\n')}\n`);
}
process.stdout.write(`\n${skipped.size} skipped by name\n`);
for (const [name, reason] of skipped) process.stdout.write(`SKIPPED ${name}: ${reason}\n`);

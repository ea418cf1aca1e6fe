import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { BUNDLE_FILE, bundleFunction, FUNCTION_NAMES } from '../../cdk/bundle.ts';

/** Fresh processes per bundle; the median of their times is told. */
const RUNS = 15;

/** Everything that any function reads from its environment; no one is called. */
const ENVIRONMENT = {
  TABLE_NAME: 'bench',
  SOURCE_QUEUE_URL: 'https://example.com/1/source',
  DEAD_LETTER_QUEUE_URL: 'https://example.com/1/dead',
  EVICTIONS_DUE_URL: 'https://example.com/1/due',
  EVICTIONS_DUE_ARN: 'arn:aws:sqs:eu-west-1:123456789012:due',
  SCHEDULE_GROUP_NAME: 'bench',
  SCHEDULE_ROLE_ARN: 'arn:aws:iam::123456789012:role/bench',
  HISTORY_DAYS: '7',
  COMPARISON_OPERATORS: 'false',
  METRIC_NAMESPACE: 'bench',
  AWS_REGION: 'eu-west-1',
};

const IMPORT = `
const start = performance.now();
await import(process.argv[1]);
process.stdout.write(String(performance.now() - start));`;

/** Milliseconds a fresh process takes to load a bundle with its clients, as a cold function does. */
function coldImportMs(file: string): number {
  const args = ['--enable-source-maps', '--input-type=module', '--eval', IMPORT, file];
  return Number(
    execFileSync(process.execPath, args, { env: { ...process.env, ...ENVIRONMENT }, encoding: 'utf8' }),
  );
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
try {
  const lines = FUNCTION_NAMES.map((name) => {
    bundleFunction(name, join(dir, name));
    const file = join(dir, name, BUNDLE_FILE);
    const code = readFileSync(file);
    const times = Array.from({ length: RUNS }, () => coldImportMs(file));
    const columns = [code.length / 1000, gzipSync(code).length / 1000, median(times)];
    return name.padEnd(12) + columns.map((value) => value.toFixed(0).padStart(12)).join('');
  });
  const title = `function    ${['kB', 'kB gzipped', 'import, ms'].map((text) => text.padStart(12)).join('')}`;
  const note = `Import: median of ${RUNS} fresh processes on ${process.arch}, Node ${process.version}, with source maps.`;
  process.stdout.write(`${[title, ...lines, '', note].join('\n')}\n`);
} finally {
  rmSync(dir, { recursive: true });
}

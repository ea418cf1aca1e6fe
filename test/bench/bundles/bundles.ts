import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { BUNDLE_FILE, bundle, bundleFunction, FUNCTION_NAMES, LAMBDA_ALIAS } from '#deploy/build/bundle.ts';
import { type Scenario, takingTurns } from '#test/bench/scenario.ts';

const RUNS = 15;
const SHORT_RUNS = 1;

/** The environment variables of all functions; no service is called. */
const ENVIRONMENT = {
  TABLE_NAME: 'bench',
  SOURCE_QUEUE_URL: 'https://example.com/1/source',
  DEAD_LETTER_QUEUE_URL: 'https://example.com/1/dead',
  EVICTIONS_DUE_URL: 'https://example.com/1/due',
  EVICTIONS_DUE_ARN: 'arn:aws:sqs:eu-west-1:123456789012:due',
  SCHEDULE_GROUP_NAME: 'bench',
  AGENT_PREFIX: 'bench-agent-',
  SCHEDULE_ROLE_ARN: 'arn:aws:iam::123456789012:role/bench',
  HISTORY_DAYS: '7',
  COMPARISON_OPERATORS: 'false',
  METRIC_NAMESPACE: 'bench',
  METRICS_BY_CLUSTER: 'false',
  CLUSTER_GRANTS: '{"both":[],"relay":[],"evict":[]}',
  INSTALLATION_NAME: 'bench',
  AWS_REGION: 'eu-west-1',
};

const IMPORT = `
const start = performance.now();
await import(process.argv[1]);
process.stdout.write(String(performance.now() - start));`;

const PEER = 'evict with client-node';

/** Measures the size and the load time of a cold function, beside one that uses the generated client. */
export const bundles: Scenario = {
  about: 'bundles of the functions, and how long a fresh process takes to load one',
  async run(report, { runs = RUNS, short }) {
    const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
    try {
      const peerFile = join(dir, BUNDLE_FILE);
      bundle('test/bench/bundles/with-client-node.ts', BUNDLE_FILE, dir, { alias: LAMBDA_ALIAS });
      const peerKb = kbOf(peerFile);
      for (const name of FUNCTION_NAMES) {
        bundleFunction(name, join(dir, name));
        const file = join(dir, name, BUNDLE_FILE);
        const own = kbOf(file);
        const loads = await takingTurns(short ? SHORT_RUNS : runs, {
          ours: () => coldImportMs(file),
          peer: () => coldImportMs(peerFile),
        });
        const beside = (values: readonly number[]) => ({ name: PEER, values: [...values] });
        report({
          what: `${name}: bundle, gzipped`,
          unit: 'kB',
          ours: [own.gzipped],
          peer: beside([peerKb.gzipped]),
          note: `${own.plain} kB as it is`,
        });
        report({
          what: `${name}: import in a fresh process`,
          unit: 'ms',
          ours: [...loads.ours],
          peer: beside(loads.peer),
        });
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  },
};

function kbOf(file: string): { readonly plain: number; readonly gzipped: number } {
  const code = readFileSync(file);
  return { plain: Math.round(code.length / 1000), gzipped: Math.round(gzipSync(code).length / 1000) };
}

/** Returns the milliseconds that a fresh process takes to load a bundle with its clients, as a cold function does. */
function coldImportMs(file: string): number {
  const args = ['--input-type=module', '--eval', IMPORT, file];
  // Lambda sets no further certificates, which Node.js would parse.
  const { NODE_EXTRA_CA_CERTS: _, ...own } = process.env;
  const env = { ...own, ...ENVIRONMENT };
  const { stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  // Node quotes the line that threw, which here is a whole library.
  if (!stdout) throw new Error(`${basename(dirname(file))}: ${/^\w*Error: .*$/m.exec(stderr)?.[0]}`);
  return Math.round(Number(stdout) * 10) / 10;
}

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Metafile } from 'esbuild';
import { billOfMaterials, packagesIn } from '#deploy/build/bill-of-materials.ts';
import {
  BUNDLE_FILE,
  bundleFunction,
  bundleProgram,
  FUNCTION_NAMES,
  type FunctionName,
  PROGRAM_NAMES,
  PROJECT_DIR,
  type ProgramName,
  programFile,
  roomOf,
} from '#deploy/build/bundle.ts';

const MAX_BYTES = 1_000_000;

/** Code that a function does not need, as parts of paths. */
const STRANGERS: Readonly<Record<FunctionName, readonly string[]>> = (() => {
  // Libraries for clusters, metrics that are scraped, and the needs of `npm start` and the command line alone.
  const everywhere = ['@kubernetes/', 'prom-client', 'commander', 'sqlite', 'functions/service/'].concat(
    // Credentials that Lambda sets in no function's environment, and calls that no function makes.
    ['credential-provider-sso', 'submodules/event-streams/'],
  );
  const clusters = ['shared/kubernetes/rest', 'client-eks', 'client-secrets-manager'];
  const deciding = ['shared/taints/deadline', 'shared/eviction/plan', 'shared/eviction/policy', 'js-yaml'];
  return {
    'node-delta': [...everywhere, ...clusters, 'engine/evict/', 'shared/access/connect'],
    'pod-delta': [...everywhere, ...clusters, 'engine/evict/', 'shared/access/connect'],
    evict: [...everywhere, 'shared/eviction/plan'],
    expiry: [
      ...everywhere,
      ...clusters,
      ...deciding,
      'client-scheduler',
      'shared/access/connect',
      'shared/access/registered-clusters',
    ],
    heartbeat: [...everywhere, ...clusters, ...deciding, 'client-scheduler', 'client-sqs'],
  };
})();

const ENVIRONMENT = {
  TABLE_NAME: 'taintward',
  SOURCE_QUEUE_URL: 'https://example.com/1/source',
  DEAD_LETTER_QUEUE_URL: 'https://example.com/1/dead',
  EVICTIONS_DUE_URL: 'https://example.com/1/due',
  EVICTIONS_DUE_ARN: 'arn:aws:sqs:eu-west-1:123456789012:due',
  SCHEDULE_GROUP_NAME: 'taintward',
  AGENT_PREFIX: 'taintward-agent-',
  SCHEDULE_ROLE_ARN: 'arn:aws:iam::123456789012:role/schedules',
  HISTORY_DAYS: '7',
  COMPARISON_OPERATORS: 'false',
  METRIC_NAMESPACE: 'taintward',
  METRICS_BY_CLUSTER: 'false',
  CLUSTER_GRANTS: '{"both":[],"relay":[],"evict":[]}',
  INSTALLATION_NAME: 'taintward.eu-west-1.123456789012',
  AWS_REGION: 'eu-west-1',
};

/** The endpoint of each of the SDK's clients, and of the credential provider that assumes roles. */
const ENDPOINTS: Readonly<Record<string, string>> = {
  'client-dynamodb': 'dynamodb',
  'client-eks': 'eks',
  'client-eventbridge': 'events',
  'client-scheduler': 'scheduler',
  'client-secrets-manager': 'secretsmanager',
  'client-sqs': 'sqs',
  'client-sts': 'sts',
  'credential-providers': 'sts',
};

/**
 * Returns the VPC endpoints that, by the guide, `caller` calls itself. Fargate's own calls are in no code of the
 * project.
 */
function endpointsInGuide(caller: string): readonly string[] {
  const guide = readFileSync(join(PROJECT_DIR, 'docs/how-to/grant-cluster-access.md'), 'utf8');
  const rows = [...guide.matchAll(/^\| `com\.amazonaws\.REGION\.([\w.]+)`.* \| (.*) \|$/gm)];
  return rows.flatMap(([, endpoint = '', callers = '']) => (callers.includes(caller) ? [endpoint] : []));
}

/** Returns the endpoints that the code of a bundle calls, by the clients that it contains. */
const endpointsCalledBy = (inputs: readonly string[]): readonly string[] => {
  const clients = inputs.map((path) => /@aws-sdk\/(client-[\w-]+|credential-providers)\//.exec(path)?.[1]);
  return [...new Set(clients.flatMap((name) => (name ? (ENDPOINTS[name] ?? `no endpoint of ${name}`) : [])))];
};

describe("each function's bundle", () => {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bundles-'));
  const fileOf = (name: FunctionName) => join(dir, name, BUNDLE_FILE);
  const inputs = new Map<FunctionName, readonly string[]>();
  before(() => {
    for (const name of FUNCTION_NAMES) {
      const used = Object.values(bundleFunction(name, join(dir, name)).outputs).flatMap(({ inputs: parts }) =>
        Object.entries(parts).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
      );
      inputs.set(name, used);
    }
  });
  after(() => rmSync(dir, { recursive: true }));
  const inputsOf = (name: FunctionName) => inputs.get(name) ?? [];

  test('is smaller than 1 MB', () => {
    for (const name of FUNCTION_NAMES) {
      const { size } = statSync(fileOf(name));
      assert.ok(size < MAX_BYTES, `${name} has ${size} bytes`);
    }
  });

  test('contains nothing that its function does not use', () => {
    for (const name of FUNCTION_NAMES) {
      for (const stranger of STRANGERS[name]) {
        assert.deepEqual(
          inputsOf(name).filter((path) => path.includes(stranger)),
          [],
          name,
        );
      }
    }
  });

  test('for evict calls the AWS APIs that the guide has VPC endpoints for', () => {
    assert.deepEqual(endpointsCalledBy(inputsOf('evict')).toSorted(), endpointsInGuide('`evict`').toSorted());
  });

  test("contains zod's messages in one language only", () => {
    for (const name of FUNCTION_NAMES) {
      const languages = inputsOf(name).filter((path) => /zod\/v4\/locales\/(?!en\.js)/.test(path));
      // Import zod as `import * as z`: esbuild cannot leave out unused parts of an object.
      assert.deepEqual(languages, [], name);
    }
  });

  test('loads no fetch, which an import of node:http would load', () => {
    const script =
      "await import(process.argv[1]); process.stdout.write(process.moduleLoadList.filter((name) => name.includes('undici')).join())";
    for (const name of FUNCTION_NAMES) {
      const { stdout, stderr } = spawnSync(
        process.execPath,
        ['--input-type=module', '-e', script, fileOf(name)],
        { env: ENVIRONMENT, encoding: 'utf8' },
      );
      assert.deepEqual([stdout, stderr], ['', ''], name);
    }
  });

  test('has a source map with the paths of its sources in the project', () => {
    for (const name of FUNCTION_NAMES) {
      const { sources } = JSON.parse(readFileSync(`${fileOf(name)}.map`, 'utf8')) as { sources: string[] };
      assert.ok(sources.includes(`${roomOf(name)}/lambda.ts`));
    }
  });

  test('names missing environment variables, and otherwise exports a handler', async (t) => {
    const { env } = process;
    t.after(() => {
      process.env = env;
    });
    for (const name of FUNCTION_NAMES) {
      const url = pathToFileURL(fileOf(name)).href;
      process.env = { ...env };
      delete process.env['TABLE_NAME'];
      await assert.rejects(import(`${url}?without`), {
        name: 'EnvironmentError',
        message: /^The environment variable TABLE_NAME is not set: /,
      });
      process.env = { ...env, ...ENVIRONMENT };
      const module: { handler?: unknown } = await import(url);
      assert.equal(typeof module.handler, 'function');
    }
  });
});

describe("each program's bundle", () => {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-programs-'));
  const metafiles = new Map<ProgramName, Metafile>();
  before(() => {
    for (const name of PROGRAM_NAMES) metafiles.set(name, bundleProgram(name, join(dir, name)));
  });
  after(() => rmSync(dir, { recursive: true }));
  const metafileOf = (name: ProgramName) => metafiles.get(name) ?? assert.fail(name);

  test('has a bill of materials with exactly its packages, once each, with version and license', () => {
    for (const name of PROGRAM_NAMES) {
      const metafile = metafileOf(name);
      const { components, dependencies } = billOfMaterials({ metafile });
      const refs = components.map((component) => component['bom-ref']);
      assert.deepEqual(refs.toSorted(), [...packagesIn({ metafile })].toSorted());
      assert.ok(refs.some((ref) => ref.startsWith('zod@')));
      for (const component of components) {
        const { version, licenses } = component as { version?: string; licenses?: readonly object[] };
        assert.match(version ?? '', /^\d+\./);
        assert.ok(licenses && licenses.length > 0, component['bom-ref']);
      }
      for (const { dependsOn = [] } of dependencies) {
        for (const ref of dependsOn) assert.ok(refs.includes(ref), ref);
      }
    }
  });

  test('for the relay calls the AWS APIs that the guide has VPC endpoints for', () => {
    const inputs = Object.keys(metafileOf('relay').inputs);
    assert.deepEqual(endpointsCalledBy(inputs).toSorted(), endpointsInGuide('relay,').toSorted());
  });

  test('for the relay contains nothing of the service, and those for agent and service nothing of the command line', () => {
    const strangers = {
      relay: ['functions/service/', 'shared/console/', 'engine/evict/'],
      agent: [
        'functions/cli/',
        '@bomb.sh/tab',
        'shared/console/',
        'state/sqlite',
        'client-eks',
        'client-secrets-manager',
      ],
      service: ['functions/cli/', '@bomb.sh/tab'],
    };
    for (const [name, others] of Object.entries(strangers)) {
      const inputs = Object.keys(metafileOf(name as ProgramName).inputs);
      for (const stranger of others) {
        assert.deepEqual(
          inputs.filter((path) => path.includes(stranger)),
          [],
          name,
        );
      }
    }
  });

  test('loads the generated Kubernetes client, 4 MB of text, only where it is needed', () => {
    for (const name of PROGRAM_NAMES) {
      const { outputs } = metafileOf(name);
      const loaded = new Set<string>();
      const load = (file: string): void => {
        if (loaded.has(file)) return;
        loaded.add(file);
        for (const { path, kind } of outputs[file]?.imports ?? []) {
          if (kind === 'import-statement') load(path);
        }
      };
      load(programFile(name));
      const inputs = [...loaded].flatMap((file) => Object.keys(outputs[file]?.inputs ?? {}));
      assert.ok(inputs.some((path) => path.startsWith('functions/')));
      assert.deepEqual(
        inputs.filter((path) => path.startsWith('node_modules/@kubernetes/')),
        [],
        name,
      );
      assert.ok(
        Object.keys(metafileOf(name).inputs).some((path) => path.startsWith('node_modules/@kubernetes/')),
      );
    }
  });

  test('loads no fetch, which an import of node:http would load', () => {
    for (const name of PROGRAM_NAMES) {
      const imported = Object.values(metafileOf(name).outputs).flatMap(({ imports }) => imports);
      const https = imported.filter(({ path, kind }) => path === 'node:https' && kind === 'import-statement');
      assert.ok(https.length > 0, name);
      const http = imported.filter(
        ({ path, kind }) => /^(node:)?http$/.test(path) && kind === 'import-statement',
      );
      assert.deepEqual(http, [], name);
    }
  });

  test('for the relay runs, and reports a missing environment variable', () => {
    const { TABLE_NAME: _table, ...env } = process.env;
    const { status, stderr } = spawnSync(process.execPath, [join(dir, 'relay', programFile('relay'))], {
      env,
      encoding: 'utf8',
    });
    assert.equal(status, 1);
    assert.match(stderr, /^taintward relay: The environment variable TABLE_NAME is not set: /);
  });
});

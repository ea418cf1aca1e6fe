import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { ContextFleet } from '#shared/operations/fleet/fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { quiet } from '#test/unit/cli/command-line.ts';
import { plainOutput } from '#test/unit/cli/plain-output.ts';
import { addBarePod, type SettledCluster, settledCluster } from '#test/world/settled-cluster.ts';

const DOC = readFileSync(new URL('../../../docs/how-to/preview-a-taint.md', import.meta.url), 'utf8');
const ALL = 'node-1,node-2,node-3,node-4';

describe('taintward what-if in the simulated cluster', () => {
  let settled: SettledCluster;
  before(async () => {
    settled = await settledCluster(addBarePod);
  });
  after(() => settled.close());

  /** Returns a fleet of the same cluster whose pod `debug` has this owner; its Job, if any, has this `backoffLimit`. */
  const owned = (owner: object, backoffLimit?: number): ContextFleet => {
    const { objects } = settled.live;
    const changed: Pick<ClusterObjects, 'get' | 'list' | 'tryCreate'> = {
      get: async (path) => (path.includes('/jobs/') ? { spec: { backoffLimit } } : objects.get(path)),
      async *list(path, query) {
        for await (const json of objects.list(path, query)) {
          const metadata = fieldsOf(json['metadata']);
          const ownerReferences = [{ ...owner, controller: true }];
          yield metadata['name'] === 'debug' ? { ...json, metadata: { ...metadata, ownerReferences } } : json;
        }
      },
      tryCreate: (path, body) => objects.tryCreate(path, body),
    };
    const live = { ...settled.live, objects: changed as ClusterObjects, close: () => undefined };
    return { ...settled.fleet, cluster: async () => live };
  };

  const run = (...args: readonly string[]) => runOn(settled.fleet, ...args);

  async function runOn(fleet: ContextFleet, ...args: readonly string[]) {
    const { state, deps } = plainOutput();
    let complaint = '';
    const program = createProgram({
      live: async () => fleet,
      clock: systemClock,
      ...deps,
    } satisfies Partial<CliDeps> as unknown as CliDeps);
    quiet(program, (text) => {
      complaint += text;
    });
    await program.parseAsync(['what-if', ...args], { from: 'user' }).catch((error: unknown) => {
      if (complaint === '') throw error;
    });
    return { ...state, complaint };
  }

  test('prints the example of the documentation, and exits with 2 because a budget breaks', async () => {
    const { printed, exitCode } = await run('--taint', 'maintenance=now:NoExecute', '--nodes', ALL);
    assert.ok(DOC.includes(`\n${printed}\`\`\`\n`), printed);
    assert.equal(exitCode, 2);
  });

  test('prints each pod in wide output', async () => {
    const { printed } = await run('--taint', 'maintenance:NoExecute', '--nodes', 'node-1', '-o', 'wide');
    assert.match(printed, /default\/debug +node-1 +evicted now +maintenance:NoExecute/);
  });

  test('exits with 0 where nothing breaks', async () => {
    const { printed, exitCode } = await run(
      ...['--taint', 'maintenance:NoExecute', '--nodes', 'node-4', '-o', 'json'],
    );
    const { pods, now, later, keep, breaks } = JSON.parse(printed);
    assert.deepEqual([pods, now, later, keep, breaks], [4, 1, 2, 1, []]);
    assert.equal(exitCode, 0);
  });

  test('exits with 2 only where a Job would fail', async () => {
    const onJob = (backoffLimit: number) =>
      runOn(
        owned({ apiVersion: 'batch/v1', kind: 'Job', name: 'j' }, backoffLimit),
        ...['--taint', 'maintenance:NoExecute', '--nodes', 'node-1'],
      );
    const [fails, survives] = [await onJob(0), await onJob(6)];
    const line = '- Job default/j fails (failures: 1, backoffLimit: 0).\n';
    assert.ok(fails.printed.endsWith(`This breaks:\n${line}`), fails.printed);
    assert.match(survives.printed, /Nothing breaks\.\n$/);
    assert.deepEqual([fails.exitCode, survives.exitCode], [2, 0]);
  });

  test('counts static pods, which break nothing', async () => {
    const fleet = owned({ apiVersion: 'v1', kind: 'Node', name: 'node-1' });
    const { printed, exitCode } = await runOn(
      fleet,
      ...['--taint', 'maintenance:NoExecute', '--nodes', 'node-1', '-o', 'json'],
    );
    const { mirrors, breaks } = JSON.parse(printed);
    assert.deepEqual([mirrors, breaks], [1, []]);
    assert.equal(exitCode, 0);
  });

  test('prints JSON or YAML with times as texts', async () => {
    const { printed } = await run('--taint', 'maintenance:NoExecute', '--nodes', ALL, '-o', 'json');
    const answer = JSON.parse(printed);
    assert.deepEqual([answer.pods, answer.now, answer.later, answer.keep], [17, 7, 6, 4]);
    assert.match(answer.pace.lastAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.equal(answer.each.length, 17);
    const yaml = await run('--taint', 'maintenance:NoExecute', '--nodes', ALL, '-o', 'yaml');
    assert.match(yaml.printed, /^cluster: simulated\n/);
  });

  test('rejects an invalid taint and an invalid node selection', async () => {
    const taint = await run('--taint', 'maintenance', '--nodes', ALL);
    assert.match(taint.complaint, /"maintenance" lacks an effect/);
    const nodes = await run('--taint', 'maintenance:NoExecute', '--nodes', 'zone=a,=');
    assert.match(nodes.complaint, /label selector part "="/);
  });
});

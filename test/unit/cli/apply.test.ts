import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { AccessAnswer } from '#shared/access/access-check.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import type { ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { commandLine, NOW } from './command-line.ts';

const prod = clusterName('prod');
const GROUP = 'apiVersion: taintward.dev/v1\n';
const cluster = (name: string, region = 'eu-west-1') =>
  `${GROUP}kind: Cluster\nmetadata: { name: ${name} }\nspec:\n  access: { kind: eks, clusterName: ${name}, region: ${region} }\n---\n`;
const policy = (settings: string, clusters = "['*']") =>
  `${GROUP}kind: Policy\nmetadata: { name: all }\nspec:\n  clusters: ${clusters}\n  policy: ${settings}\n`;

/** The command line on a deployment with these clusters, and a directory of documents. */
function bench(
  t: TestContext,
  names: readonly string[],
  answer: AccessAnswer = { reached: true, missing: [] },
) {
  const content = new Map<ClusterName, RegisteredCluster>();
  for (const name of names.map(clusterName))
    content.set(name, {
      name,
      access: { kind: 'eks', clusterName: name, region: 'eu-west-1' },
      addedAt: 1,
    });
  const registry: ClusterRegistry = {
    list: async () => ({ clusters: [...content.values()], strays: [] }),
    get: async (name) => content.get(name),
    add: async (added) => {
      content.set(added.name, added);
      return 'added';
    },
    replace: async (changed) => {
      content.set(changed.name, changed);
      return 'replaced';
    },
    remove: async (name) => (content.delete(name) ? 'removed' : 'unknown'),
  };
  const uids = { system: 'own', nodes: [] };
  const leases = {
    read: async (name: string) => (name === 'prod' ? { uids } : undefined),
  } as unknown as Fleet['leases'];
  const checks: (readonly [cluster: string, namespaces: readonly string[]])[] = [];
  const checkAccess: Fleet['checkAccess'] = async ({ name, namespaces }) => {
    checks.push([name, namespaces]);
    return answer;
  };
  const line = commandLine(t, { kind: 'deployed', registry, leases, checkAccess });
  const dir = mkdtempSync(join(tmpdir(), 'fleet-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const write = (...texts: readonly string[]) => {
    mkdirSync(join(dir, 'more'), { recursive: true });
    writeFileSync(join(dir, 'more/fleet.yaml'), texts.join(''));
  };
  const entries = async () =>
    (await line.rulesStore.audit({ from: 0, to: NOW * 2 })).map(
      ({ kind, cluster: name, reason }) => `${kind} ${name} ${reason}`,
    );
  const apply = (...args: readonly string[]) => line.run('apply', '-f', dir, ...args);
  return { ...line, content, dir, write, entries, apply, checks };
}

const CANNOT_ASK = {
  name: 'CliError',
  message: 'Cannot prompt: standard input is not a terminal. To proceed, rerun with --yes.',
};

test('a first run registers and applies, a second one writes nothing', async (t) => {
  const { apply, write, entries, content, state, rulesStore } = bench(t, []);
  write(cluster('prod'), cluster('stage'), policy('{ mode: enforce }'));
  await assert.rejects(apply(), CANNOT_ASK);
  assert.match(
    await apply('--dry-run'),
    /^Dry run: .*\nCluster prod is registered: EKS cluster prod in eu-west-1\.\n/,
  );
  assert.equal(state.exitCode, 2, 'drift');
  assert.equal(JSON.parse(await apply('--dry-run', '-o', 'json')).length, 4);
  assert.deepEqual([[...content], await entries()], [[], []], 'nothing was changed');

  await apply('--yes', '--reason', '4711abc');
  assert.deepEqual([...content.keys()], ['prod', 'stage']);
  assert.equal((await rulesStore.read(prod)).orders.policy?.read.mode, 'enforce');
  const once = [
    ...['cluster-added prod 4711abc', 'cluster-added stage 4711abc'],
    ...['policy prod 4711abc', 'policy stage 4711abc'],
  ];
  assert.deepEqual((await entries()).toSorted(), once);

  assert.equal(
    await apply('--reason', '4712'),
    'The fleet is as its documents declare. Nothing was changed.\n',
  );
  assert.equal(await apply('--dry-run'), 'Dry run: nothing would change.\n');
  assert.equal(state.exitCode, 0);
  assert.deepEqual((await entries()).toSorted(), once);
});

test('checks each new cluster under its own policy', async (t) => {
  const { apply, write, checks } = bench(t, []);
  const names = ['prod', 'stage', 'test'];
  const policies = names.map((name) =>
    policy(`{ mode: enforce, include: [{ namespaces: [of-${name}] }] }\n---\n`, `[${name}]`).replace(
      'all',
      name,
    ),
  );
  write(...names.map((name) => cluster(name)), ...policies);
  await apply('--dry-run');
  assert.deepEqual(
    checks,
    names.map((name) => [name, [`of-${name}`]]),
  );
});

test('changes access in place: evictions, a pause, and the time of registration stay', async (t) => {
  const { apply, write, entries, content, store, rulesStore, run } = bench(t, ['prod']);
  const schedule = [aRecord()];
  await store.commit(aRef(prod), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  write(policy('{ mode: enforce }', '[prod]'));
  await apply('--yes');
  await run('pause', 'prod', '--reason', 'incident 4711', '--for', '4h');
  write(cluster('prod', 'eu-north-1'), policy('{ mode: enforce, evictionRate: 5 }'));
  assert.match(
    await apply(),
    /^The access of cluster prod is changed: .* eu-north-1, instead of .* eu-west-1\. /,
  );
  assert.deepEqual(content.get(prod), {
    name: prod,
    access: { kind: 'eks', clusterName: 'prod', region: 'eu-north-1' },
    addedAt: 1,
  });
  assert.equal((await store.load(aRef(prod), NOW)).scheduled.size, 1);
  const { orders } = await rulesStore.read(prod);
  assert.deepEqual([orders.stops.length, orders.policy?.read.evictionRate], [1, 5]);
  assert.ok((await entries()).includes('cluster-changed prod undefined'));
});

test('asks before it frees or hastens pods, and before it removes, only with --prune', async (t) => {
  const { apply, write, state, questions, content, rulesStore } = bench(t, ['prod', 'stage']);
  write(cluster('prod'), policy('{ mode: enforce }', '[prod]'));
  state.answer = false;
  await assert.rejects(apply(), { message: 'Canceled. Nothing was changed.' });
  assert.equal((await rulesStore.read(prod)).orders.policy, undefined);
  state.answer = true;
  await apply();
  await apply();
  assert.equal(questions.length, 2, 'nothing was left to apply');
  write(cluster('prod'), policy('{ mode: observe }', '[prod]'));
  await apply();
  assert.equal(questions.length, 2, 'observe mode frees no pods');
  assert.deepEqual([...content.keys()], ['prod', 'stage']);
  assert.match(await apply('--prune'), /^Cluster stage is removed from the registry\.\n/);
  assert.deepEqual([questions.length, ...content.keys()], [3, 'prod']);
});

for (const [what, documents, complaint] of [
  ['documents with faults', `${GROUP}kind: Cluster\n`, /metadata .*\n.*spec /],
  ['an empty directory', '', /No documents found/],
  ['--prune of all clusters', policy('{ mode: observe }'), /--prune would remove all clusters/],
  ['a cluster that is another one', cluster('edge') + cluster('prod', 'eu-north-1'), /another cluster/],
] as const)
  test(`rejects ${what}, and changes nothing`, async (t) => {
    const uids = { system: 'other', nodes: [] };
    const { apply, write, state, content, entries } = bench(t, ['prod'], {
      reached: true,
      missing: [],
      uids,
    });
    write(documents);
    await assert.rejects(apply('--prune', '--yes'), {
      name: 'CliError',
      message: /^\d faults?\. Nothing was changed\.$/,
    });
    assert.match(state.complaint + state.complained, complaint);
    assert.deepEqual([...content.keys()], ['prod']);
    assert.deepEqual(await entries(), []);
  });

test('rejects a change of a policy that a file owns, and names the owner', async (t) => {
  const { apply, write, state, fleet } = bench(t, ['prod']);
  const owner = '/etc/policy.yaml';
  await perform(
    { kind: 'apply-policy', cluster: prod, text: 'mode: observe', owner },
    await fleet.operator(),
  );
  write(policy('{ mode: enforce }'));
  await assert.rejects(apply('--yes'), { message: '1 fault. Nothing was changed.' });
  assert.match(state.complained, /belongs to \/etc\/policy\.yaml/);
});

describe('documents of a fleet', () => {
  test('are compared with all clusters by policy diff', async (t) => {
    const { run, write, dir, state } = bench(t, ['prod', 'stage']);
    write(cluster('prod'), policy('{ mode: enforce }'));
    assert.deepEqual((await run('policy', 'diff', '-f', dir)).split('\n'), [
      'CLUSTER   SETTING   CURRENT   NEW',
      'prod      mode      observe   enforce',
      'stage     mode      observe   enforce',
      '',
    ]);
    assert.equal(state.exitCode, 2);
    write(policy('{ mode: observe }'));
    assert.equal(await run('policy', 'diff', '-f', dir), 'No settings of 2 clusters would change.\n');
    assert.equal(state.exitCode, 0);
  });

  test('are validated without a fleet', async (t) => {
    const { run, write, dir, state } = bench(t, []);
    write(cluster('prod'), policy('{ mode: enforce }'));
    assert.equal(
      await run('policy', 'validate', '-f', join(dir, 'more/fleet.yaml')),
      `${dir}/more/fleet.yaml is valid. Documents: 1 of clusters, 1 of policies.\n`,
    );
    write('{ "apiVersion": "taintward.dev/v1", "kind": "Policy" }');
    await assert.rejects(run('policy', 'validate', '-f', join(dir, 'more/fleet.yaml')));
    assert.match(state.complained, /document 1: metadata is missing/);
    write(cluster('prod'), policy('{ mode: enforce }', '[stage]'));
    await assert.rejects(run('policy', 'validate', '-f', dir), { message: '1 fault. Nothing was changed.' });
    assert.match(state.complained, /cluster "stage" not found/);
  });
});

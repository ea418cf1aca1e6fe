import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { type Shown, shownCluster } from '#test/world/shown-cluster.ts';
import { commandLine, NOW } from './command-line.ts';

const GPU = { key: 'gpu', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 };
const SET = ['--set', 'key=gpu,operator=Exists,effect=NoExecute,seconds=300'] as const;
const TEMPLATE = '/apis/apps/v1/namespaces/shop/deployments/web';
const JOB = '/apis/batch/v1/namespaces/shop/jobs/web';

const podOf = (name: string) => ({
  metadata: {
    namespace: 'shop',
    name,
    uid: `uid-${name}`,
    creationTimestamp: '2026-11-21T11:00:00Z',
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', controller: true }],
  },
  spec: { nodeName: 'n1', tolerations: [GPU] },
});
const owned = (manager: string) => ({
  managedFields: [
    { manager, fieldsV1: { 'f:spec': { 'f:template': { 'f:spec': { 'f:tolerations': {} } } } } },
  ],
});

/** A command line on a workload, by default a Deployment, with two pods on the tainted node n1. */
function bench(t: TestContext, metadata: object = {}, spec: object = {}, kind = 'Deployment') {
  const template = { spec: { tolerations: [GPU] } };
  const shown: Shown = {
    [kind === 'Job' ? JOB : TEMPLATE.replace('deployment', kind.toLowerCase())]: {
      metadata: { name: 'web', resourceVersion: '7', ...metadata },
      spec: { template, ...spec },
    },
    '/api/v1/namespaces/shop/pods': [podOf('web-0'), podOf('web-1')],
    '/api/v1/namespaces/shop/pods/web-0': podOf('web-0'),
    '/api/v1/nodes': [
      { metadata: { name: 'n1' }, spec: { taints: [{ key: 'gpu', effect: 'NoExecute' }] } },
      { metadata: { name: 'n2' }, spec: { taints: [{ key: 'ssd', effect: 'NoSchedule' }] } },
    ],
  };
  const live = shownCluster(shown, NOW);
  const patches: unknown[] = [];
  const objects = Object.assign(live.objects, {
    patch: async (...args: Parameters<ClusterObjects['patch']>) => patches.push(args),
  }) as unknown as ClusterObjects;
  const line = commandLine(t, { cluster: async () => ({ ...live, objects }) });
  const run = (...args: readonly string[]) =>
    line.run('tolerations', ...args, ...(args.includes('--cluster') ? [] : ['--cluster', 'prod']));
  const answer = async (...args: readonly string[]) => JSON.parse(await run(...args, '-o', 'json'));
  return { ...line, run, answer, patches };
}

const kinds = (pods: readonly { readonly before: { kind: string }; readonly after?: { kind: string } }[]) =>
  pods.map(({ before, after }) => [before.kind, after?.kind]);

describe('taintward tolerations', () => {
  test('shows the list with what pods get in addition, and the taints of all nodes', async (t) => {
    const { answer, run } = bench(t);
    const { next, added, taints, pods, commands, ineffective } = await answer('shop/Deployment/web');
    assert.deepEqual(next, [GPU]);
    assert.deepEqual(
      added.map(({ key }: { key: string }) => key),
      ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'],
    );
    assert.deepEqual(
      taints.map((each: { taint: { key: string }; schedules: boolean }) => [each.taint.key, each.schedules]),
      [
        ['gpu', true],
        ['ssd', false],
      ],
    );
    assert.deepEqual([kinds(pods)[0], pods.length, commands], [['held', 'held'], 2, []]);
    assert.equal(ineffective[0].rule, 'replacement-loops');
    const text = await run('deployment/web', '-n', 'shop');
    assert.match(text, /^shop\/Deployment\/web has 1 toleration, and 2 running pods\.$/m);
    assert.match(text, /^ +\[0\] +gpu +Exists +NoExecute +60 +replacement-loops$/m);
    assert.match(text, /^ +\[1\] +node\.kubernetes\.io\/not-ready .* 300 +added to pods$/m);
  });

  test('previews a template for the replacements of its pods, and says that a rollout follows', async (t) => {
    const { run, answer, patches } = bench(t);
    const { pods, effects, current, next } = await answer('shop/Deployment/web', ...SET);
    assert.deepEqual([current, next], [[GPU], [{ ...GPU, tolerationSeconds: 300 }]]);
    assert.equal(pods[0].after.dueAt, new Date(NOW + 300_000).toISOString());
    assert.match(effects.join(), /A rollout follows/);
    const text = await run('shop/Deployment/web', '--set', 'key=ssd,operator=Exists');
    assert.match(text, /^ +web-0 +n1 +.* +scheduled to another node$/m);
    assert.match(
      text,
      /^ +kubectl patch deployment web --namespace shop --field-manager taintward-cli --type json --patch '\[\{"op":"add"/m,
    );
    assert.deepEqual(patches, []);
  });

  test('says which pods get a list, and when, if no rollout follows', async (t) => {
    for (const [kind, spec, sentence] of [
      ['DaemonSet', { updateStrategy: { type: 'OnDelete' } }, /^Only pods that are created later/],
      ['Deployment', { paused: true }, /^This Deployment is paused: .* until it is resumed/],
      ['Job', {}, /^API servers reject the change/],
    ] as const) {
      const { answer } = bench(t, {}, spec, kind);
      assert.match((await answer(`shop/${kind}/web`, ...SET)).effects[0], sentence);
    }
  });

  test('writes the whole list only to the template that was read, by its own field manager', async (t) => {
    const { run, patches, state, questions, rulesStore } = bench(t, owned('taintward-cli'));
    const apply = ['shop/Deployment/web', ...SET, '--apply', '--context', 'prod'];
    state.answer = false;
    await assert.rejects(run(...apply), { message: 'Canceled. Nothing was changed.' });
    assert.deepEqual([patches, questions], [[], ['Change these tolerations?']]);
    state.answer = true;
    assert.match(await run(...apply), /^Changed deployment web\.$/m);
    assert.deepEqual(patches, [
      [
        TEMPLATE,
        [
          { op: 'replace', path: '/metadata/resourceVersion', value: '7' },
          {
            op: 'add',
            path: '/spec/template/spec/tolerations',
            value: [{ ...GPU, tolerationSeconds: 300 }],
          },
        ],
        'taintward-cli',
      ],
    ]);
    const [{ actor, kind, message } = assert.fail()] = await rulesStore.audit({ from: 0, to: NOW + 1 });
    assert.deepEqual(
      [actor, kind, message],
      ['anna', 'tolerations-changed', 'changed tolerations of shop/Deployment/web: deployment web'],
    );
  });

  test('writes nothing that another field manager or a controller owns, and names it', async (t) => {
    for (const [metadata, name] of [
      [owned('argocd-controller'), /field manager argocd-controller owns spec\.template\.spec\.tolerations/],
      [
        podOf('x').metadata.ownerReferences && { ownerReferences: podOf('x').metadata.ownerReferences },
        /ReplicaSet web-1 controls this Deployment/,
      ],
    ] as const) {
      const { run, patches, state } = bench(t, metadata);
      await assert.rejects(run('shop/Deployment/web', ...SET, '--apply', '--yes', '--context', 'prod'), {
        message: '1 fault. Nothing was changed.',
      });
      assert.match(state.complained, name);
      assert.deepEqual(patches, []);
      await assert.rejects(run('shop/Deployment/web', ...SET, '-o', 'patch'), /Nothing was changed/);
    }
  });

  test('adds to running pods only what they lack, before what they have, as long as they are the same pods', async (t) => {
    const { run, patches, answer } = bench(t, owned('argocd-controller'));
    const list = [
      '--set',
      'key=gpu,operator=Exists,effect=NoExecute,seconds=60',
      '--set',
      'key=b,operator=Exists',
      '--set',
      'key=c,operator=Exists',
    ];
    await run('shop/web-0', ...list, '--apply', '--yes', '--context', 'prod');
    assert.deepEqual(patches, [
      [
        '/api/v1/namespaces/shop/pods/web-0',
        [
          { op: 'test', path: '/metadata/uid', value: 'uid-web-0' },
          { op: 'add', path: '/spec/tolerations/0', value: { key: 'c', operator: 'Exists' } },
          { op: 'add', path: '/spec/tolerations/0', value: { key: 'b', operator: 'Exists' } },
        ],
        'taintward-cli',
      ],
    ]);
    const { commands, effects } = await answer('shop/Deployment/web', '--pods', ...list);
    assert.equal(commands.length, 2);
    const { pods, ineffective, added } = await answer('shop/Deployment/web', '--pods', ...SET);
    assert.equal(pods[0].after.dueAt, new Date(NOW + 300_000).toISOString());
    assert.deepEqual([ineffective.at(-1).rule, ineffective.at(-1).toleration, added], ['shadowed', 1, []]);
    assert.match(effects.join(), /until they are deleted/);
    assert.deepEqual((await answer('shop/pod/web-0', ...list.slice(0, 2))).commands, []);
  });

  test('reads the list from a file, and rejects one that an API server would reject', async (t) => {
    const { run, answer, state } = bench(t);
    const file = join(mkdtempSync(join(tmpdir(), 'tolerations-')), 'list.yaml');
    t.after(() => rmSync(join(file, '..'), { recursive: true }));
    const given = (text: string) => {
      writeFileSync(file, text);
      return answer('shop/Deployment/web', '-f', file);
    };
    assert.deepEqual((await given('- key: a\n  operator: Exists\n')).next, [
      { key: 'a', operator: 'Exists' },
    ]);
    assert.deepEqual((await given('tolerations: []\n')).next, []);
    await assert.rejects(given('- key: a\n  tolerationSeconds: "5"\n'), {
      message: /is no list of tolerations in YAML: 0\.tolerationSeconds .*expected number/,
    });
    for (const text of ['a: 1\n', '{', '- {keys: a}\n'])
      await assert.rejects(given(text), { name: 'CliError' });
    await assert.rejects(run('shop/Deployment/web', '--set', 'operator=Equal,effect=NoSchedule,seconds=5'), {
      message: '2 faults. Nothing was changed.',
    });
    assert.match(state.complained, /operator must be Exists when `key` is empty/);
    assert.match(state.complained, /effect must be 'NoExecute' when `tolerationSeconds` is set/);
  });

  test('rejects options that do not fit, and objects that are not there', async (t) => {
    const { run } = bench(t);
    const web = 'shop/Deployment/web';
    for (const [args, message] of [
      [[web, '--apply'], /require --set or --file/],
      [[web, ...SET, '--apply', '--yes'], /--apply requires --context NAME, your own credentials/],
      [[web, ...SET, '--apply', '--context', 'x', '-o', 'json'], /--output applies only without --apply/],
      [[web, '--set', 'gpu'], /Specify fields as in/],
      [[web, '--set', 'key=a,key=b'], /repeats a field/],
      [[web, '--set', 'key=a,seconds=soon'], /tolerationSeconds/],
      [['shop/Deployment/db'], /There is no shop\/Deployment\/db/],
      [['shop/Rollout/web'], /its kind is not one of Kubernetes itself/],
      [['web'], /Specify NAMESPACE\/KIND\/NAME/],
    ] as const)
      await assert.rejects(run(...args), { message });
  });
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { pendingGroups } from '#shared/operations/ask/pending-groups.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { type Shown, shownCluster } from '#test/world/shown-cluster.ts';
import { commandLine, NOW } from './command-line.ts';

const prod = clusterName('prod');
const WEB = { kind: 'ReplicaSet', name: 'web-1' };

const podOf = (name: string, owner: object) => ({
  metadata: {
    namespace: 'shop',
    name,
    uid: name,
    creationTimestamp: '2026-11-21T11:00:00Z',
    labels: { app: 'web' },
    ownerReferences: [owner],
  },
  spec: { nodeName: 'n1' },
});
const ofReplicaSet = { apiVersion: 'apps/v1', ...WEB, controller: true };
const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', controller: true };
const budget = (name: string, app: string) => ({
  metadata: { name },
  spec: { selector: { matchLabels: { app } } },
  status: { disruptionsAllowed: 1 },
});
const PODS = [podOf('web-0', ofReplicaSet), podOf('web-1', ofReplicaSet), podOf('web-2', ofReplicaSet)];
const SHOWN: Shown = {
  '/api/v1/pods': PODS,
  '/api/v1/namespaces/shop/pods': [...PODS, podOf('db-0', { ...ofReplicaSet, name: 'db-1' })],
  '/apis/apps/v1/namespaces/shop/replicasets/web-1': { metadata: { ownerReferences: [DEPLOYMENT] } },
  '/apis/apps/v1/namespaces/shop/deployments/web': { spec: { replicas: 4 }, status: { readyReplicas: 3 } },
  '/apis/policy/v1/namespaces/shop/poddisruptionbudgets': [budget('web', 'web'), budget('db', 'db')],
  '/api/v1/nodes': [
    { metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'a' } } },
    { metadata: { name: 'n2', labels: { 'topology.kubernetes.io/zone': 'a' } } },
    { metadata: { name: 'n3' } },
  ],
};

/** Pods of a Deployment on two nodes, of which one pod is due and held, and a pod without a workload. */
async function bench(t: TestContext, shown: Shown | undefined) {
  const line = commandLine(t, shown ? { cluster: async () => shownCluster(shown, NOW) } : {});
  const operator = await line.fleet.operator();
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: enforce\n' }, operator);
  const target = { kind: 'pod', namespace: 'shop', name: 'web-0' } as const;
  await perform({ kind: 'hold', cluster: prod, target, reason: 'x' }, operator);
  const record = (name: string, dueAt: number, owner?: typeof WEB) =>
    aRecord({ uid: podUid(name), namespace: 'shop', name, dueAt, ...(owner ? { owner } : {}) });
  const on = async (node: string, ...schedule: ReturnType<typeof aRecord>[]) => {
    const ref = { ...aRef(prod), node: nodeName(node) };
    await line.store.commit(ref, 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  };
  await on('n1', record('web-0', NOW - 1_000, WEB), record('web-1', NOW + 60_000, WEB));
  await on('n2', record('web-2', NOW - 1_000, WEB));
  await on('n3', record('tool', NOW + 30_000));
  const groups = async (...args: readonly string[]) =>
    JSON.parse(await line.run('pending', 'prod', ...args, '-o', 'json'));
  return { ...line, groups };
}

const WEB_BUDGET = { name: 'web', allowed: 1, selector: { matchLabels: { app: 'web' } } };
const ON_HOLD = { hold: 1 };
const COUNTS = { pending: 1, due: 0, held: 0, heldBy: {}, observed: 0, blocked: 0, retrying: 0, failed: 0 };
const TOOL = { ...COUNTS, cluster: 'prod', nextAt: '2026-11-21T12:00:30.000Z' };

test('groups pending evictions by workload, with its ready pods and budgets', async (t) => {
  const { run, groups, state } = await bench(t, SHOWN);
  assert.deepEqual(await groups('--by', 'workload'), [
    {
      cluster: 'prod',
      namespace: 'shop',
      kind: 'Deployment',
      name: 'web',
      ...COUNTS,
      pending: 3,
      due: 2,
      held: 1,
      heldBy: ON_HOLD,
      nextAt: '2026-11-21T12:01:00.000Z',
      replicas: { desired: 4, ready: 3 },
      budgets: [WEB_BUDGET],
    },
    { ...TOOL, namespace: 'shop', kind: 'Pod', name: 'tool', budgets: [] },
  ]);
  const [, web, tool] = (await run('pending', 'prod', '--by', 'workload')).split('\n');
  assert.match(web ?? '', /^prod +shop\/Deployment\/web +3 +2 +1 on hold +in 1m +3 of 4 +web allows 1$/);
  assert.match(tool ?? '', /^prod +shop\/Pod\/tool +1 +0 +in 30s$/);
  assert.doesNotMatch(state.complained, /read/);
});

test('offers a hold of a group only if it holds all of its evictions', async (t) => {
  const { fleet } = commandLine(t);
  const place = { namespace: 'shop', kind: 'ReplicaSet', name: 'web-1' };
  const offered = async (...names: readonly string[]) => {
    const pending = names.map((name) => ({
      cluster: prod,
      node: nodeName('n1'),
      state: undefined,
      gates: [],
      record: aRecord({ uid: podUid(name), namespace: 'shop', name, owner: { ...WEB, name } }),
    }));
    const places = { placeOf: () => place };
    const { groups } = await pendingGroups(fleet, { cluster: prod, pending }, 'workload', NOW, places);
    return groups.map(({ target }) => target?.kind);
  };
  assert.deepEqual(await offered('web-1'), ['workload']);
  for (const names of [['other'], ['web-1', 'other'], ['other', 'web-1']])
    assert.deepEqual(await offered(...names), [undefined]);
});

test('groups only held evictions', async (t) => {
  const { groups } = await bench(t, SHOWN);
  const [web, ...more] = await groups('--by', 'workload', '--held');
  assert.deepEqual([web.pending, web.heldBy, web.nextAt, more], [1, ON_HOLD, undefined, []]);
});

test('groups by node without the cluster, and by zone with it', async (t) => {
  const { groups, run } = await bench(t, SHOWN);
  const byNode = await groups('--by', 'node');
  assert.deepEqual(
    byNode.map((each: Record<string, unknown>) => [each['node'], each['pending'], each['due']]),
    [
      ['n1', 2, 1],
      ['n2', 1, 1],
      ['n3', 1, 0],
    ],
  );
  const byZone = await groups('--by', 'zone');
  assert.deepEqual(
    byZone.map((each: Record<string, unknown>) => [each['zone'], each['pending'], each['due']]),
    [
      ['a', 3, 2],
      [undefined, 1, 0],
    ],
  );
  assert.match(await run('pending', 'prod', '--by', 'zone'), /^prod +\(unknown\) +1 +0 +in 30s$/m);
});

test('groups by the known controllers in a cluster that cannot be reached, and says so', async (t) => {
  const { groups, run, state } = await bench(t, undefined);
  const [tool, web] = await groups('--by', 'workload');
  assert.deepEqual(tool, { ...TOOL, namespace: 'shop', kind: 'Pod', name: 'tool' });
  assert.deepEqual([web.kind, web.name, web.pending, web.replicas], ['ReplicaSet', 'web-1', 3, undefined]);
  assert.match(
    state.complained,
    /^The workloads of cluster prod are unknown: Cluster prod can't be reached from here\.$/m,
  );
  assert.deepEqual((await groups('--by', 'zone')).length, 1);
  assert.equal(await run('pending', 'stage', '--by', 'workload', '--held'), 'No held evictions.\n');
});

const WORKLOAD = ['explain', 'workload', 'shop/Deployment/web', '--cluster', 'prod'];
const KEPT = [
  'How to keep its pods',
  "  hold it: taintward hold workload shop/Deployment/web --cluster prod --reason 'REASON'",
  '  2 pending evictions are held by it, 1 of them due now.',
  '  1 pod remains held: on hold.',
  '',
];

test('explains the pods of a workload on its nodes, with budgets and the effects of a hold', async (t) => {
  const { run } = await bench(t, SHOWN);
  const output = await run('explain', 'workload', 'deployment/web', '-n', 'shop', '--cluster', 'prod');
  assert.deepEqual(output.replace(/hold h\w{8}/, 'hold H').split('\n'), [
    'Deployment shop/web has 3 pods on 1 node, 3 of 4 ready: 2 pods will be evicted now; 1 pod is held. But nothing is evicted at present: no npm start runs.',
    '',
    'Pods',
    '  NODE   ZONE   POD          OUTCOME',
    '  n1            shop/web-1   evicted at 2026-11-21T12:00:00Z',
    '  n1            shop/web-2   evicted at 2026-11-21T12:00:00Z',
    '  n1            shop/web-0   on hold, due 2026-11-21T11:59:59Z',
    '',
    'Rules',
    '  disruption budget: web allows 1',
    '  policy: enforce',
    '  held by: hold H (anna: x)',
    '  built-in controller: unknown (its control plane shows neither flags nor metrics, and no pod is marked by it)',
    '',
    ...KEPT,
  ]);
  const story = JSON.parse(await run(...WORKLOAD, '-o', 'json'));
  assert.deepEqual([story.replicas, story.budgets], [{ desired: 4, ready: 3 }, [WEB_BUDGET]]);
  assert.deepEqual(
    story.nodes.map(({ node, pods }: { node: string; pods: object[] }) => [node, pods.length]),
    [['n1', 3]],
  );
});

test('explains a workload by its records in a cluster that cannot be reached', async (t) => {
  const { run } = await bench(t, undefined);
  const lines = (await run(...WORKLOAD)).split('\n');
  assert.equal(
    lines[0],
    'Deployment shop/web has 3 pods on 2 nodes: 2 pods will be evicted by 2026-11-21T12:01:00Z (in 1m), the first now; 1 pod is held. But nothing is evicted at present: no npm start runs.',
  );
  assert.deepEqual(lines.slice(-11, -6), KEPT);
  assert.match(lines.at(-3) ?? '', /^ {2}budgets: Cluster prod can't be reached from here$/);
});

test('explains a workload of a cluster that takes no more holds', async (t) => {
  const { run, fleet } = await bench(t, SHOWN);
  const operator = await fleet.operator();
  const target = { kind: 'namespace', namespace: 'other' } as const;
  for (let holds = 1; holds < 100; holds++)
    await perform({ kind: 'hold', cluster: prod, target, reason: 'x' }, operator);
  assert.match(await run(...WORKLOAD), /^ {2}Cluster prod has the maximum of 100 holds\. /m);
});

test('explains no workload without pods, and no name without a namespace', async (t) => {
  const { run } = await bench(t, SHOWN);
  await assert.rejects(run('explain', 'workload', 'shop/Deployment/wep', '--cluster', 'prod'), {
    message:
      'Workload shop/Deployment/wep has no pods on nodes of cluster prod. Check namespace, kind, and name.',
  });
  await assert.rejects(run('explain', 'workload', 'deployment/web', '--cluster', 'prod'), {
    message: /^Specify NAMESPACE\/KIND\/NAME, /,
  });
});

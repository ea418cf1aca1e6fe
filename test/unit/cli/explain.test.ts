import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { splitNames } from '#functions/cli/explain.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { FleetError } from '#shared/operations/fleet/fleet.ts';
import { aNode, anEnding, aRecord, aTaint } from '#test/contracts/partition-builders.ts';
import { liveNode } from '#test/unit/engine/watch/live-objects.ts';
import { running } from '#test/world/embedded-fleet.ts';
import { recordContact } from '#test/world/record-contact.ts';
import { shownCluster } from '#test/world/shown-cluster.ts';
import { commandLine, NOW } from './command-line.ts';

const PROD = clusterName('prod');
const WHY = 'Cannot get pods at prod: the connection was refused';

/** The command line on an unreachable cluster: web-0 was evicted, and web-1 is due in 4 minutes. */
async function bench(t: TestContext) {
  const line = commandLine(t, { service: running });
  const { store, rulesStore, leases, clock, fleet } = line;
  await recordContact(leases, PROD, NOW);
  Object.assign(fleet, { cluster: () => Promise.reject(new FleetError(`${WHY}.`)) });
  const operator = { rulesStore, clock, actor: 'anna' };
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce' }, operator);
  const ref = { cluster: PROD, node: nodeName('node-1') };
  const gone = aRecord({ uid: podUid('u0'), startedAt: NOW - 400_000, dueAt: NOW - 100_000 });
  const owner = { kind: 'ReplicaSet', name: 'web-5d4f' };
  const coming = aRecord({ uid: podUid('u1'), name: 'web-1', owner, dueAt: NOW + 240_000 });
  const node = aNode({ taints: [aTaint({ since: NOW - 60_000 })] });
  const change = { node, schedule: [gone, coming], end: [], live: true };
  await store.commit(ref, 0, change, NOW - 400_000);
  await store.end(ref, [anEnding(gone, { delayMs: 12 })], NOW - 100_000);
  return { ...line, operator };
}

test('warns while the process is frozen, and does not claim that a due pod is being evicted', async (t) => {
  const { run, state, fleet, clock } = await bench(t);
  Object.assign(fleet, { service: () => Promise.reject(new FleetError('It is frozen.')) });
  await clock.advanceTo(NOW + 300_000);
  const stalled = /But nothing is evicted at present: npm start does not respond\./;
  const pod = await run('explain', 'pod', 'default/web-1', '--cluster', 'prod');
  assert.match(pod, /^default\/web-1 has been due since 2026-11-21T12:04:00Z \(1m ago\) because [^.]*\./);
  assert.match(pod, stalled);
  assert.match(state.complained, /^This answer may be outdated\. The running npm start does not respond: /);
  assert.equal(state.exitCode, 69);
  assert.match(await run('explain', 'node', 'node-1', '--cluster', 'prod'), stalled);
  assert.equal(state.exitCode, 69);
});

test('explains a pod with its outcome in the first line, then the basis, then the limits of the answer', async (t) => {
  const { run } = await bench(t);
  assert.deepEqual((await run('explain', 'pod', 'default/web-1', '--cluster', 'prod')).split('\n'), [
    'default/web-1 will be evicted at 2026-11-21T12:04:00Z (in 4m) because it tolerates node.kubernetes.io/unreachable:NoExecute for 5m. This is its record: the pod could not be read.',
    '',
    'Rules',
    '  policy: enforce, deletes pods',
    '',
    'History',
    '  TIME                   WHAT        POD             NODE     DUE                    DELAY   REMOVED   BY   CAUSE',
    '  2026-11-21T12:00:00Z   scheduled   default/web-1   node-1   2026-11-21T12:04:00Z                          node.kubernetes.io/unreachable:NoExecute since 2026-11-21T11:59:59Z (added), toleration 1: 5m',
    '',
    'Unknown',
    `  the pod: ${WHY}`,
    '',
  ]);
});

test("names the operator and reason of a held pod's hold, and the command that releases it", async (t) => {
  const { run, operator } = await bench(t);
  await perform({ kind: 'stop', cluster: PROD, reason: 'an incident' }, operator);
  const output = await run('explain', 'pod', 'default/web-1', '--cluster', 'prod');
  assert.match(
    output,
    /^default\/web-1 is due at \S+ \(in 4m\) .*, but is held by the stop of the cluster \(anna: an incident\)\./,
  );
  assert.match(output, /How to release it\n {2}taintward resume prod --reason 'REASON'\n/);
});

test('prints all fields as JSON for programs, with times as text', async (t) => {
  const { run } = await bench(t);
  const story = JSON.parse(await run('explain', 'pod', 'default/web-1', '--cluster', 'prod', '-o', 'json'));
  assert.deepEqual(story.outcome, {
    kind: 'evict',
    at: '2026-11-21T12:04:00.000Z',
    by: 'delete',
    dueAt: '2026-11-21T12:04:00.000Z',
    causes: [
      {
        taint: { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
        since: '2026-11-21T11:59:59.000Z',
        known: 'added',
        toleration: 1,
        seconds: 300,
      },
    ],
    heldBy: [],
    blockedBy: [],
  });
  assert.deepEqual(story.unknown, [{ what: 'the pod', reason: WHY }]);
  assert.match(
    await run('explain', 'pod', 'default/web-1', '--cluster', 'prod', '-o', 'yaml'),
    /^headline: .*\nat: ['"]?2026-11-21T12:00:00\.000Z/,
  );
});

test('groups the pods of a node by workload, and lists each pod with -o wide', async (t) => {
  const { run } = await bench(t);
  const output = await run('explain', 'node', 'node-1', '--cluster', 'prod');
  assert.match(
    output,
    /^node-1 has node\.kubernetes\.io\/unreachable:NoExecute: 1 pod will be evicted at 2026-11-21T12:04:00Z \(in 4m\)\. This is the stored state: the node could not be read\.\n/,
  );
  assert.match(output, / {2}default\/ReplicaSet\/web-5d4f {3}1 +1: 2026-11-21T12:04:00Z\n/);
  assert.doesNotMatch(output, /POD {2,}OUTCOME/);
  assert.match(
    await run('explain', 'node', 'node-1', '--cluster', 'prod', '-o', 'wide'),
    /Pods\n {2}POD {13}OUTCOME\n {2}default\/web-1 {3}evicted at 2026-11-21T12:04:00Z\n/,
  );
});

test('requires a namespace for a pod, and a cluster name if there are several', async (t) => {
  const { run } = await bench(t);
  await assert.rejects(run('explain', 'pod', 'web-1', '--cluster', 'prod'), {
    name: 'UsageError',
    message: 'Specify NAMESPACE/NAME, for example shop/web-0, or NAME with --namespace.',
  });
  await assert.rejects(run('explain', 'pod', 'default/web-1'), {
    message: 'Missing cluster name. Specify one of: prod, stage.',
  });
});

test('takes names as kubectl writes them', async (t) => {
  const { run } = await bench(t);
  const cluster = ['--cluster', 'prod'];
  const output = await run('explain', 'pod', 'default/web-1', ...cluster);
  assert.equal(await run(...splitNames(['explain', 'pod/web-1', '-n', 'default', ...cluster])), output);
  assert.equal(await run('explain', 'pod', 'web-1', '--namespace', 'default', ...cluster), output);
  assert.equal(
    await run(...splitNames(['explain', 'node/node-1', ...cluster])),
    await run('explain', 'node', 'node-1', ...cluster),
  );
  assert.deepEqual(splitNames(['explain', 'deployment/web']), ['explain', 'workload', 'deployment/web']);
  assert.deepEqual(splitNames(['explain', 'shop/web']), ['explain', 'shop/web']);
  for (const more of [['web-1'], ['default/web-1', '-n', 'default']])
    await assert.rejects(run('explain', 'pod', ...more, ...cluster), /Specify NAMESPACE\/NAME, for example/);
});

test('counts a toleration that compares only with --comparison-operators', async (t) => {
  const { run, fleet } = await bench(t);
  const toleration = { key: 'level', operator: 'Gt', value: '1', effect: 'NoExecute' };
  const name = { name: 'web-2', namespace: 'default', uid: 'u2', creationTimestamp: '2026-11-21T11:00:00Z' };
  const shown = {
    '/api/v1/namespaces/default/pods/web-2': {
      metadata: name,
      spec: { nodeName: 'node-2', containers: [], tolerations: [toleration] },
      status: { phase: 'Running' },
    },
  };
  const live = shownCluster(shown, NOW);
  const taint = aTaint({ key: 'level', value: '5', since: NOW - 60_000 });
  Object.assign(live.api, { getNode: async () => ({ ...liveNode('node-2'), taints: [taint] }) });
  Object.assign(fleet, { cluster: async () => live });
  const explained = async (...more: readonly string[]) =>
    (await run('explain', 'pod', 'default/web-2', '--cluster', 'prod', ...more)).split('\n')[0];
  assert.match(`${await explained()}`, /^default\/web-2 is being evicted now/);
  assert.match(`${await explained('--comparison-operators')}`, /^default\/web-2 stays: it tolerates/);
});

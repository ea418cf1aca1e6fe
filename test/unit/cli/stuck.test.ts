import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { commandLine, NOW } from './command-line.ts';

const stuck = (name: string, nodeState: StuckPod['nodeState'], ...finalizers: string[]): StuckPod => ({
  node: nodeName('n1'),
  uid: podUid(name),
  namespace: 'default',
  name,
  gracePeriodEndedAt: NOW,
  finalizers,
  nodeState,
});

test('lists evicted pods that are stuck terminating with their finalizers and remedies', async (t) => {
  const { run, leases } = commandLine(t);
  assert.equal(await run('pending', '--stuck'), 'No pods are stuck terminating.\n');
  const lease = await leases.take(clusterName('prod'), undefined, 'relay', NOW);
  assert.ok(lease);
  const pods = [
    stuck('a', 'there', 'example.com/backup'),
    stuck('b', 'there'),
    stuck('c', 'unreachable'),
    stuck('d', 'gone'),
  ];
  await leases.reportStuck(lease, pods);
  const [, ...lines] = (await run('pending', 'prod', '--stuck')).trimEnd().split('\n');
  const advice = [
    /default\/a .* example\.com\/backup +the controller of each finalizer must remove it/,
    /default\/b .* volumes that are still mounted$/,
    /default\/c .* node\.kubernetes\.io\/out-of-service=nodeshutdown:NoExecute, or delete the Node/,
    /default\/d .* the pod garbage collector/,
  ];
  for (const [index, pattern] of advice.entries()) assert.match(String(lines[index]), pattern);
  assert.equal(await run('pending', 'stage', '--stuck'), 'No pods are stuck terminating.\n');
});

test('prints stuck pods as JSON for programs', async (t) => {
  const { run, leases } = commandLine(t);
  const lease = await leases.take(clusterName('prod'), undefined, 'relay', NOW);
  assert.ok(lease);
  await leases.reportStuck(lease, [stuck('a', 'there', 'example.com/backup')]);
  const [found] = JSON.parse(await run('pending', '--stuck', '-o', 'json'));
  assert.deepEqual(
    [found.cluster, found.pod, found.finalizers, found.gracePeriodEndedAt],
    ['prod', 'a', ['example.com/backup'], new Date(NOW).toISOString()],
  );
});

test('warns that the list may be outdated while npm start does not run', async (t) => {
  const { run, state } = commandLine(t);
  await run('pending', 'prod');
  assert.match(state.complained, /^This list may be outdated\. No npm start runs on this state directory: /);
  assert.equal(state.exitCode, 69);
});

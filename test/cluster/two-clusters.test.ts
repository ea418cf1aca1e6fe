import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from './rig/deadline.ts';
import { filePair } from './rig/file-pair.ts';
import { evictedOnTime } from './rig/on-time.ts';
import type { TestCluster } from './rig/test-cluster.ts';
import { tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';

const pair = filePair();

test('leaves pods and nodes of the same names in the other cluster alone when one cluster is tainted', async () => {
  const { alpha, beta, service } = pair();
  const [node] = await Promise.all([alpha, beta].map((cluster) => cluster.addNode('equal')));
  assert.ok(node);
  const tolerations = [tolerates('x', 2)];
  const [pod, namesake] = await Promise.all(
    [alpha, beta].map((cluster) => cluster.addPod(node, 'equal', { tolerations })),
  );
  const [bare, itsNamesake] = await Promise.all([alpha, beta].map((cluster) => cluster.addPod(node, 'bare')));
  assert.ok(pod && namesake && bare && itsNamesake);
  const tainted = await alpha.taint(node, { key: 'x' });
  await evictedOnTime(bare, 0, tainted);
  await evictedOnTime(pod, 2, tainted);
  assertUntouched(namesake, itsNamesake);
  assert.deepEqual(service.printed(`beta ${node}`), []);
  assert.deepEqual(beta.witness.taintManagerEvents(pod.name), []);
});

test('gives pods of the same name in two clusters their own deadlines, which only their own node cancels', async () => {
  const { alpha, beta, service } = pair();
  const [node] = await Promise.all([alpha, beta].map((cluster) => cluster.addNode('own')));
  assert.ok(node);
  const [saved, lost] = await Promise.all([
    alpha.addPod(node, 'own', { tolerations: [tolerates('x', 4)] }),
    beta.addPod(node, 'own', { tolerations: [tolerates('x', 5)] }),
  ]);
  await alpha.taint(node, { key: 'x' });
  const tainted = await beta.taint(node, { key: 'x' });
  for (const context of ['alpha', 'beta']) {
    await service.untilPrinted(`${context} ${node}`, 'eviction at');
  }
  await alpha.untaint(node);
  await evictedOnTime(lost, 5, tainted);
  assertUntouched(saved);
});

test('evicts the pods of two nodes of the same name that are tainted simultaneously in two clusters', async () => {
  const { alpha, beta } = pair();
  const [node] = await Promise.all([alpha, beta].map((cluster) => cluster.addNode('same')));
  assert.ok(node);
  const names = Array.from({ length: 40 }, (_, index) => `same-${index}`);
  const podsIn = (cluster: TestCluster) =>
    Promise.all(
      names.map((name, index) =>
        cluster.addPod(node, name, { tolerations: index % 2 === 0 ? [] : [tolerates('x', 1)] }),
      ),
    );
  const clusters = await Promise.all(
    [alpha, beta].map(async (cluster) => ({ cluster, pods: await podsIn(cluster) })),
  );
  await Promise.all(clusters.map(({ cluster }) => cluster.taint(node, { key: 'x' })));
  await until('all are evicted', () =>
    clusters.every(({ pods }) => pods.every(({ evictedAt }) => evictedAt !== undefined)),
  );
});

test('evicts on time in one cluster while the other is unreachable', async (t) => {
  const { alpha, beta, wiretap, service } = pair();
  const [node] = await Promise.all([alpha, beta].map((cluster) => cluster.addNode('reach')));
  assert.ok(node);
  const tolerations = [tolerates('x', 2)];
  const [inAlpha, inBeta] = await Promise.all(
    [alpha, beta].map((cluster) => cluster.addPod(node, 'reach', { tolerations })),
  );
  assert.ok(inAlpha && inBeta);
  await beta.taint(node, { key: 'x' });
  await service.untilPrinted(`beta ${node}`, inBeta.name, 'eviction at');
  await wiretap.cut();
  const tainted = await alpha.taint(node, { key: 'x' });
  await evictedOnTime(inAlpha, 2, tainted);
  assertUntouched(inBeta);
  await wiretap.mend();
  const backAt = Date.now();
  const evictedAt = await until('the other is evicted', () => inBeta.evictedAt);
  t.diagnostic(`evicted ${evictedAt - backAt} ms after its cluster came back`);
});

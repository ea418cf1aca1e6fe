import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from './rig/deadline.ts';
import { fileStage } from './rig/file-stage.ts';
import { evictedOnTime } from './rig/on-time.ts';
import type { Span } from './rig/test-cluster.ts';
import { FOREVER, tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';

const stage = fileStage('served');

const COMEBACKS = 10;

test('evicts a pod that is re-created under its name on the still tainted node, ten times in a row', async (t) => {
  const { cluster } = stage();
  const node = await cluster.addNode('stateful');
  let pod = await cluster.addPod(node, 'db-0', {
    tolerations: [tolerates('maintenance', 1)],
    comesBack: true,
  });
  const late: number[] = [];
  let since: Span = await cluster.taint(node, { key: 'maintenance' });
  for (let round = 1; round <= COMEBACKS; round++) {
    late.push(await evictedOnTime(pod, 1, since));
    const evicted = pod;
    pod = await until('it comes back', () => cluster.witness.podsNamed(pod.name)[round]);
    since = { requestedAt: evicted.evictedAt ?? 0, seenAt: pod.seenAt };
    if (round % 2 === 0) {
      await cluster.untaint(node);
      since = await cluster.taint(node, { key: 'maintenance' });
    }
  }
  await cluster.untaint(node);
  t.diagnostic(`evicted ${late.join(', ')} ms after each deadline`);
  const evicted = cluster.witness.podsNamed(pod.name).filter(({ evictedAt }) => evictedAt !== undefined);
  assert.equal(evicted.length, COMEBACKS);
  assert.ok(evicted.every(({ disruption }) => disruption?.beforeDeletion));
});

test('evicts the pods of a deleted node that have a deadline at that deadline, and no others', async () => {
  const { cluster, service } = stage();
  const [tainted, untainted] = await Promise.all([
    cluster.addNode('gone'),
    cluster.addNode('gone-untainted'),
  ]);
  const [timed, lasting, forever, bystander] = await Promise.all([
    cluster.addPod(tainted, 'timed', { tolerations: [tolerates('maintenance', 3)] }),
    cluster.addPod(tainted, 'lasting', { tolerations: [tolerates('maintenance', 5)] }),
    cluster.addPod(tainted, 'forever', { tolerations: [FOREVER] }),
    cluster.addPod(untainted, 'bystander'),
  ]);
  const span = await cluster.taint(tainted, { key: 'maintenance' });
  for (const pod of [timed, lasting]) await service.untilPrinted(tainted, pod.name, 'eviction at');
  await cluster.deleteNode(tainted);
  await cluster.deleteNode(untainted);
  await evictedOnTime(timed, 3, span);
  await evictedOnTime(lasting, 5, span);
  assertUntouched(forever, bystander);
});

test('keeps the pods of a node that is re-created without its taint, and evicts those of a node that is still tainted', async () => {
  const { cluster, service } = stage();
  const names = ['back-untainted', 'back-tainted'];
  const [clean, dirty] = await Promise.all(names.map((name) => cluster.addNode(name)));
  assert.ok(clean && dirty);
  const tolerations = [tolerates('maintenance', 4)];
  const [saved, lost] = await Promise.all([
    cluster.addPod(clean, 'saved', { tolerations }),
    cluster.addPod(dirty, 'lost', { tolerations }),
  ]);
  await cluster.taint(clean, { key: 'maintenance' });
  const span = await cluster.taint(dirty, { key: 'maintenance' });
  await service.untilPrinted(clean, saved.name, 'eviction at');
  await service.untilPrinted(dirty, lost.name, 'eviction at');
  await cluster.deleteNode(clean);
  await cluster.deleteNode(dirty);
  await cluster.addNode('back-untainted');
  await cluster.addNode('back-tainted', [{ key: 'maintenance', effect: 'NoExecute' }]);
  await evictedOnTime(lost, 4, span);
  await until('an Event', () => cluster.witness.taintManagerEvents(saved.name).length > 0);
  assertUntouched(saved);
});

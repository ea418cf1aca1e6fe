import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from './rig/deadline.ts';
import { fileStage } from './rig/file-stage.ts';
import { evictedOnTime, momentComes } from './rig/on-time.ts';
import { tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import { cancellingDeletion } from './rig/upstream-events.ts';

const stage = fileStage('bare');

const SOON_MS = 5_000;

test('evicts every pod at its original deadline despite repeated kill -9, and overdue pods immediately after the restart', async (t) => {
  const { cluster } = stage();
  const stateDir = stage().newStateDir();
  const node = await cluster.addNode('killed');
  // Both later services have started by then, even on a busy machine.
  const times = [2, 11, 12];
  const pods = await Promise.all(
    times.map((seconds) =>
      cluster.addPod(node, `killed-${seconds}`, { tolerations: [tolerates('x', seconds)] }),
    ),
  );
  const [overdue, ...timed] = pods;
  assert.ok(overdue);
  const first = await stage().start({ stateDir });
  const tainted = await cluster.taint(node, { key: 'x' });
  for (const pod of pods) await first.untilPrinted(node, pod.name, 'eviction at');
  await first.kill();

  const second = await stage().start({ stateDir });
  await second.kill();
  await momentComes(tainted.seenAt + 3_000);
  assert.ok(overdue.evictedAt === undefined || overdue.evictedAt >= tainted.requestedAt + 2_000);

  await stage().start({ stateDir });
  const readyAt = Date.now();
  const late = await Promise.all(
    timed.map((pod, index) => evictedOnTime(pod, times[index + 1] ?? 0, tainted)),
  );
  assert.ok(overdue.evictedAt);
  assert.ok(overdue.evictedAt < readyAt + SOON_MS, 'what is overdue goes at once');
  t.diagnostic(`evicted ${late.join(', ')} ms after their original deadlines`);
});

test('evicts no pods for a taint that was removed while the service was down', async () => {
  const { cluster } = stage();
  const stateDir = stage().newStateDir();
  const [node, other] = await Promise.all([cluster.addNode('removed'), cluster.addNode('stays')]);
  const tolerations = [tolerates('x', 9)];
  const [early, saved, fence] = await Promise.all([
    cluster.addPod(node, 'early', { tolerations: [tolerates('x', 3)] }),
    cluster.addPod(node, 'saved', { tolerations }),
    cluster.addPod(other, 'fence', { tolerations }),
  ]);
  const service = await stage().start({ stateDir });
  await cluster.taint(node, { key: 'x' });
  const tainted = await cluster.taint(other, { key: 'x' });
  for (const pod of [early, saved]) await service.untilPrinted(node, pod.name, 'eviction at');
  await service.untilPrinted(other, fence.name, 'eviction at');
  await service.kill();
  await cluster.untaint(node);
  await momentComes(tainted.seenAt + 3_000);

  await stage().start({ stateDir });
  await evictedOnTime(fence, 9, tainted);
  assertUntouched(early, saved);
  for (const pod of [early, saved]) {
    await until(`an Event on ${pod.name}`, () =>
      cluster.witness
        .taintManagerEvents(pod.name)
        .some(({ message }) => message === cancellingDeletion(cluster.namespace, pod.name)),
    );
  }
});

test('applies taints that were set before the first start or while the service was down', async () => {
  const { cluster } = stage();
  const stateDir = stage().newStateDir();
  const [before, meanwhile] = await Promise.all([cluster.addNode('before'), cluster.addNode('meanwhile')]);
  const [a, b] = await Promise.all([
    cluster.addPod(before, 'before'),
    cluster.addPod(meanwhile, 'meanwhile'),
  ]);
  await cluster.taint(before, { key: 'x' });
  const first = await stage().start({ stateDir });
  await until('it is evicted', () => a.evictedAt);
  await first.kill();
  await cluster.taint(meanwhile, { key: 'x' });
  await stage().start({ stateDir });
  await until('it is evicted', () => b.evictedAt);
});

test('ends promptly with exit code 0 on SIGTERM, and loses nothing', async (t) => {
  const { cluster } = stage();
  const stateDir = stage().newStateDir();
  const node = await cluster.addNode('stopped');
  const pod = await cluster.addPod(node, 'stopped', { tolerations: [tolerates('x', 9)] });
  const service = await stage().start({ stateDir });
  const tainted = await cluster.taint(node, { key: 'x' });
  await service.untilPrinted(node, pod.name, 'eviction at');
  const requestedAt = Date.now();
  const { code, stderr } = await service.stop();
  const tookMs = Date.now() - requestedAt;
  t.diagnostic(`stopped within ${tookMs} ms`);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  const again = await stage().start({ stateDir });
  await evictedOnTime(pod, 9, tainted);
  assert.equal((await again.stop()).code, 0);
});

test('evicts hundreds of pods, and no others, despite being killed repeatedly meanwhile', async (t) => {
  const { cluster } = stage();
  const stateDir = stage().newStateDir();
  const nodes = await Promise.all(
    Array.from({ length: 10 }, (_, index) => cluster.addNode(`storm-${index}`)),
  );
  const spare = await cluster.addNode('storm-spared');
  const pods = await Promise.all(
    nodes.flatMap((node, n) => Array.from({ length: 30 }, (_, p) => cluster.addPod(node, `storm-${n}-${p}`))),
  );
  const spared = await cluster.addPod(spare, 'storm-spared');
  const evicted = () => pods.filter(({ evictedAt }) => evictedAt !== undefined).length;
  let service = await stage().start({ stateDir });
  await Promise.all(nodes.map((node) => cluster.taint(node, { key: 'x' })));
  const killedAfter: number[] = [];
  for (const share of [0.05, 0.3, 0.6]) {
    await until('some are evicted', () => evicted() >= share * pods.length);
    await service.kill();
    killedAfter.push(evicted());
    service = await stage().start({ stateDir });
  }
  await until('all are evicted', () => evicted() === pods.length);
  t.diagnostic(`killed after ${killedAfter.join(', ')} of ${pods.length} evictions`);
  assert.ok(pods.every(({ disruption }) => disruption?.beforeDeletion));
  assertUntouched(spared);
});

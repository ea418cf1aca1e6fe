import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched, evictedAfter } from '#test/cluster/rig/deadline.ts';
import { fileStage } from '#test/cluster/rig/file-stage.ts';
import { FOREVER, tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { cancellingDeletion } from '#test/cluster/rig/upstream-events.ts';
import type { WatchedToleration } from '#test/cluster/rig/watched.ts';

const stage = fileStage('served');

const NOT_READY = 'node.kubernetes.io/not-ready';

test('evicts a pod that does not tolerate the taint immediately, and keeps a pod that tolerates it indefinitely', async () => {
  const { cluster } = stage();
  const node = await cluster.addNode('at-once');
  const [intolerant, otherEffect, otherValue, negative, forever, anything, fence] = await Promise.all([
    cluster.addPod(node, 'intolerant'),
    cluster.addPod(node, 'other-effect', {
      tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }],
    }),
    cluster.addPod(node, 'other-value', { tolerations: [{ key: 'gpu', value: 'new', effect: 'NoExecute' }] }),
    cluster.addPod(node, 'negative', { tolerations: [tolerates('gpu', -5)] }),
    cluster.addPod(node, 'forever', { tolerations: [{ key: 'gpu', value: 'old', effect: 'NoExecute' }] }),
    cluster.addPod(node, 'anything', { tolerations: [FOREVER] }),
    cluster.addPod(node, 'fence', { tolerations: [tolerates('gpu', 2)] }),
  ]);
  const tainted = await cluster.taint(node, { key: 'gpu', value: 'old' });
  for (const pod of [intolerant, otherEffect, otherValue, negative]) await evictedAfter(pod, 0, tainted);
  await evictedAfter(fence, 2, tainted);
  assertUntouched(forever, anything);
});

test('evicts a pod that tolerates the taint for a time within a second after it, and never before', async (t) => {
  const { cluster } = stage();
  const node = await cluster.addNode('timed');
  const times = [1, 2, 3, 5];
  const pods = await Promise.all(
    times.map((seconds) =>
      cluster.addPod(node, `timed-${seconds}`, { tolerations: [tolerates('maintenance', seconds)] }),
    ),
  );
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  const late = await Promise.all(pods.map((pod, index) => evictedAfter(pod, times[index] ?? 0, tainted)));
  t.diagnostic(`evicted ${late.join(', ')} ms after the deadlines of ${times.join(', ')} s`);
});

test('counts the time of a pod that is created on a tainted node from its creation', async () => {
  const { cluster } = stage();
  const node = await cluster.addNode('late-comer');
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  const first = await cluster.addPod(node, 'first', { tolerations: [tolerates('maintenance', 1)] });
  await until('the first is evicted', () => first.evictedAt);
  const requestedAt = Date.now();
  const second = await cluster.addPod(node, 'second', { tolerations: [tolerates('maintenance', 1)] });
  assert.ok(requestedAt > tainted.seenAt + 1000, 'the taint is older than the toleration lasts');
  await evictedAfter(second, 1, { requestedAt, seenAt: second.seenAt });
});

test('applies the first toleration that matches a taint, regardless of later ones', async () => {
  const { cluster } = stage();
  const node = await cluster.addNode('order');
  const [timedFirst, foreverFirst] = await Promise.all([
    cluster.addPod(node, 'timed-first', {
      tolerations: [tolerates('maintenance', 2), FOREVER],
    }),
    cluster.addPod(node, 'forever-first', {
      tolerations: [FOREVER, tolerates('maintenance', 2)],
    }),
  ]);
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  await evictedAfter(timedFirst, 2, tainted);
  assertUntouched(foreverFirst);
});

test('applies the earlier deadline of two taints, in any order of arrival', async () => {
  const { cluster } = stage();
  const [together, oneByOne] = await Promise.all([
    cluster.addNode('together'),
    cluster.addNode('one-by-one'),
  ]);
  const tolerations = [tolerates('slow', 6), tolerates('fast', 2)];
  const [a, b] = await Promise.all([
    cluster.addPod(together, 'two-taints', { tolerations }),
    cluster.addPod(oneByOne, 'second-taint', { tolerations }),
  ]);
  const both = await cluster.taint(together, { key: 'slow' }, { key: 'fast' });
  await cluster.taint(oneByOne, { key: 'slow' });
  await stage().service.untilPrinted(oneByOne, b.name, 'eviction at');
  const second = await cluster.taint(oneByOne, { key: 'fast' });
  await evictedAfter(a, 2, both);
  await evictedAfter(b, 2, second);
});

test("applies the other taint's deadline when the taint with the earlier deadline is removed", async () => {
  const { cluster, service } = stage();
  const node = await cluster.addNode('other-taint');
  const pod = await cluster.addPod(node, 'other-deadline', {
    tolerations: [tolerates('slow', 4), tolerates('fast', 2)],
  });
  const tainted = await cluster.taint(node, { key: 'slow' }, { key: 'fast' });
  await service.untilPrinted(node, pod.name, 'eviction at');
  await cluster.untaint(node, 'fast');
  await evictedAfter(pod, 4, tainted);
});

test('evicts no pods of a node that is untainted in time, and writes an Event', async () => {
  const { cluster, service } = stage();
  const [node, other] = await Promise.all([cluster.addNode('saved'), cluster.addNode('not-saved')]);
  const tolerations = [tolerates('maintenance', 3)];
  const [first, second, fence] = await Promise.all([
    cluster.addPod(node, 'saved-1', { tolerations }),
    cluster.addPod(node, 'saved-2', { tolerations }),
    cluster.addPod(other, 'not-saved', { tolerations }),
  ]);
  await cluster.taint(node, { key: 'maintenance' });
  const tainted = await cluster.taint(other, { key: 'maintenance' });
  for (const pod of [first, second]) await service.untilPrinted(node, pod.name, 'eviction at');
  await cluster.untaint(node);
  for (const pod of [first, second]) {
    const [event] = await until(`an Event on ${pod.name}`, () => {
      const events = cluster.witness.taintManagerEvents(pod.name);
      return events.length > 0 && events;
    });
    assert.equal(event?.message, cancellingDeletion(cluster.namespace, pod.name));
    assert.equal(event?.type, 'Normal');
  }
  await evictedAfter(fence, 3, tainted);
  assertUntouched(first, second);
  assert.equal(cluster.witness.taintManagerEvents(first.name).length, 1);
});

test('keeps a pod whose toleration is added or lengthened in time, and evicts one with a shortened toleration earlier', async () => {
  const { cluster, service } = stage();
  const node = await cluster.addNode('tolerations');
  const [added, lengthened, shortened, behind] = await Promise.all(
    [6, 6, 60, 6].map((seconds, index) =>
      cluster.addPod(node, `changed-${index}`, { tolerations: [tolerates('maintenance', seconds)] }),
    ),
  );
  assert.ok(added && lengthened && shortened && behind);
  const pods = [added, lengthened, shortened, behind];
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  for (const pod of pods) await service.untilPrinted(node, pod.name, 'eviction at');
  const lasting = (seconds: number) => (present: readonly WatchedToleration[]) =>
    present.map((each) => (each.key === 'maintenance' ? tolerates('maintenance', seconds) : each));
  await cluster.tolerate(shortened, lasting(5));
  await cluster.tolerate(added, (present) => [FOREVER, ...present]);
  await cluster.tolerate(behind, (present) => [...present, FOREVER]);
  await cluster.tolerate(lengthened, lasting(7));
  await evictedAfter(shortened, 5, tainted);
  await evictedAfter(behind, 6, tainted);
  await evictedAfter(lengthened, 7, tainted);
  assertUntouched(added);
  const messages = cluster.witness.taintManagerEvents(added.name).map(({ message }) => message);
  assert.deepEqual(messages, [cancellingDeletion(cluster.namespace, added.name)]);
});

test('respects the 300 s that admission adds for a failed node', async () => {
  const { cluster, service } = stage();
  const node = await cluster.addNode('failed');
  const pod = await cluster.addPod(node, 'defaults');
  const added = pod.tolerations.find(({ key }) => key === NOT_READY);
  assert.equal(added?.tolerationSeconds, 300, 'the API server added its default toleration');
  // A node lifecycle controller, if the cluster has one, sets this taint; it removes the taint from ready nodes.
  await cluster.kubelet.failNode(node);
  const tainted = await cluster.taint(node, { key: NOT_READY });
  const { text, at: printedAt } = await service.untilPrinted(node, pod.name, 'eviction at');
  // A line names the day of an eviction only if that is not its own.
  const [, today, day = today, time] = /^(\S+)T\S+ .* eviction at (?:(\S+)[T ])?(\S+) \(/.exec(text) ?? [];
  const plannedFor = Date.parse(`${day}T${time}`);
  // The service saw the taint at some time between these, and lines are to the second.
  assert.ok(
    plannedFor > tainted.requestedAt + 299_000 && plannedFor <= printedAt + 300_000,
    `${text}: tainted at ${tainted.requestedAt}, read at ${printedAt}`,
  );
  assert.match(text, /\(in (4m5\ds|5m)\) for node\.kubernetes\.io\/not-ready:NoExecute/);
  assertUntouched(pod);
});

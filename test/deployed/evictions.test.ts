import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { exposure, taintedTimes } from '#test/cluster/rig/exposure.ts';
import { latencyText } from '#test/cluster/rig/figures.ts';
import { evictedOnTime, momentComes } from '#test/cluster/rig/on-time.ts';
import { FOREVER, tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { cancellingDeletion, markingDeletion } from '#test/cluster/rig/upstream-events.ts';
import { deployed } from './rig/deployed-stage.ts';

test('applies a taint only to the tainted one of two clusters with the same nodes and pods', async (t) => {
  const { alpha, beta } = deployed();
  await deployed().withRelays(2);
  const [node, same] = await Promise.all([alpha, beta].map(({ cluster }) => cluster.addNode('shared')));
  assert.equal(node, same);
  assert.ok(node);
  const add = ({ cluster }: typeof alpha, name: string, tolerations: ReturnType<typeof tolerates>[] = []) =>
    cluster.addPod(node, name, { tolerations });
  const [mine, theirs] = await Promise.all([add(alpha, 'shared-now'), add(beta, 'shared-now')]);
  const [timed, stays] = await Promise.all([
    add(alpha, 'shared-timed', [tolerates('x', 4)]),
    add(beta, 'shared-timed', [tolerates('x', 4)]),
  ]);

  const inAlpha = await alpha.cluster.taint(node, { key: 'x' });
  const late = [await evictedOnTime(mine, 0, inAlpha), await evictedOnTime(timed, 4, inAlpha)];
  assertUntouched(theirs, stays);

  const inBeta = await beta.cluster.taint(node, { key: 'x' });
  late.push(await evictedOnTime(theirs, 0, inBeta), await evictedOnTime(stays, 4, inBeta));
  t.diagnostic(`evicted ${late.join(', ')} ms after their deadlines`);
});

test('evicts each pod of a node at its own deadline, with condition and Event, except those that tolerate indefinitely', async (t) => {
  const { cluster } = deployed().alpha;
  await deployed().withRelays(1);
  const node = await cluster.addNode('timed');
  const times = [0, 3, 3, 8];
  const pods = await Promise.all(
    times.map((seconds, index) =>
      cluster.addPod(node, `timed-${index}`, { tolerations: seconds > 0 ? [tolerates('x', seconds)] : [] }),
    ),
  );
  const stays = await cluster.addPod(node, 'timed-stays', { tolerations: [FOREVER] });
  const tainted = await cluster.taint(node, { key: 'x' });
  const late = await Promise.all(pods.map((pod, index) => evictedOnTime(pod, times[index] ?? 0, tainted)));
  t.diagnostic(`evicted ${late.join(', ')} ms after their deadlines`);
  assertUntouched(stays);
  for (const pod of pods) {
    assert.ok(pod.disruption?.beforeDeletion, 'the condition was there before the deletion');
    const event = await until(`an Event on ${pod.name}`, () =>
      cluster.witness.taintManagerEvents(pod.name).at(0),
    );
    assert.equal(event.message, markingDeletion(cluster.namespace, pod.name));
  }
});

test('cancels an eviction whose taint is removed in time, with an Event, and no other eviction', async () => {
  const { cluster } = deployed().alpha;
  await deployed().withRelays(1);
  const [saved, lost] = await Promise.all([cluster.addNode('saved'), cluster.addNode('lost')]);
  const tolerations = [tolerates('x', 8)];
  const [spared, goes] = await Promise.all([
    cluster.addPod(saved, 'spared', { tolerations }),
    cluster.addPod(lost, 'goes', { tolerations }),
  ]);
  await cluster.taint(saved, { key: 'x' });
  const tainted = await cluster.taint(lost, { key: 'x' });
  await deployed().state.scheduled('alpha', spared);
  await cluster.untaint(saved);
  await evictedOnTime(goes, 8, tainted);
  assertUntouched(spared);
  const event = await until('an Event on the pod that was spared', () =>
    cluster.witness.taintManagerEvents(spared.name).at(0),
  );
  assert.equal(event.message, cancellingDeletion(cluster.namespace, spared.name));
  const ended = await deployed().state.ended('alpha', spared);
  assert.equal(ended?.outcome, 'canceled');
});

test('evicts re-created pods on a flapping node while it is tainted, and never for an old taint', async (t) => {
  const { cluster } = deployed().alpha;
  await deployed().withRelays(1);
  const node = await cluster.addNode('flapping');
  const names = Array.from({ length: 10 }, (_, index) => `set-${index}`);
  await Promise.all(names.map((name) => cluster.addPod(node, name, { comesBack: true })));
  for (let cycle = 0; cycle < 3; cycle++) {
    await cluster.taint(node, { key: 'flap' });
    await momentComes(Date.now() + 1_000);
    const untainted = await cluster.untaint(node);
    await momentComes(untainted.seenAt + 1_000);
  }
  const living = () =>
    [...cluster.witness.pods.values()].filter((pod) => pod.node === node && !pod.evictedAt);
  const quietAt = Date.now() + 3_000;
  await momentComes(quietAt);
  const before = living().map(({ uid }) => uid);
  assert.equal(before.length, names.length, 'each pod stands again');

  const held = await cluster.taint(node, { key: 'flap' });
  await until('each standing pod goes', () =>
    before.every((uid) => cluster.witness.pods.get(uid)?.evictedAt),
  );
  await cluster.untaint(node);
  await momentComes(Date.now() + 3_000);

  const times = taintedTimes(cluster.witness.nodes.get(node) ?? []);
  const evicted = [...cluster.witness.pods.values()].filter((pod) => pod.node === node && pod.evictedAt);
  const exposures = evicted.map((pod) => exposure(pod, pod.evictedAt ?? 0, times));
  const strays = exposures.filter(
    (each) => each.kind === 'never tainted' || (each.kind === 'after untaint' && each.afterMs > 1_000),
  );
  const late = exposures.flatMap((each) => (each.kind === 'while tainted' ? [each.afterMs] : []));
  t.diagnostic(
    `${evicted.length} evictions, after the taint: ${latencyText(late)}; held since ${held.seenAt}`,
  );
  assert.deepEqual(strays, []);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Delta } from '#shared/eviction/facts.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import {
  after,
  at,
  committed,
  emptyPartition,
  forecast,
  found,
  nodeDelta,
  planned,
  podDelta,
  podGone,
  rules,
  taint,
  tolerating,
} from '#test/unit/eviction/builders.ts';
import { World } from '#test/world/world.ts';

/**
 * Returns a world with a node `n1` and a pod that tolerates the taint `a` for `seconds`, watched by a first
 * relay.
 */
async function worldWith(seconds: number): Promise<World> {
  const world = new World(at(0), rules.matching);
  world.cluster.putNode(liveNode());
  world.cluster.putPod(livePod('u1', { tolerations: [tolerating('a', seconds)], podSince: at(-9999) }));
  await world.deliver(await world.start());
  return world;
}

/** Sets exactly these taints on the node, and updates the relay. The returned deltas are not delivered yet. */
function setTaints(world: World, ...keys: readonly string[]): readonly Delta[] {
  const node = world.cluster.putNode(liveNode('n1', ...keys));
  return world.view?.upsertNode(node, world.clock.now()) ?? [];
}

const deletedAt = (world: World) => world.cluster.deletions.map((deletion) => (deletion.at - at(0)) / 1000);

describe('evicts no pod early', () => {
  test('after an operator redrives a dead letter hours later', async () => {
    const world = await worldWith(300);
    await world.clock.advanceTo(at(10));
    const deadLetter = setTaints(world, 'a');
    world.stop();
    await world.clock.advanceTo(at(40));
    setTaints(world);
    await world.clock.advanceTo(at(60));
    await world.deliver(await world.start());
    await world.clock.advanceTo(at(7200));
    await world.deliver(deadLetter);
    await world.clock.advanceTo(at(7260));
    await world.deliver(setTaints(world, 'a'));
    await world.clock.advanceTo(at(9000));
    assert.deepEqual(deletedAt(world), [7560]);
  });

  test('when the next relay saw the node without the taint, and reports it only after the taint returned', async () => {
    const world = await worldWith(60);
    await world.deliver(setTaints(world, 'a'));
    world.stop();
    await world.clock.advanceTo(at(20));
    setTaints(world);
    await world.clock.advanceTo(at(30));
    await world.start();
    await world.clock.advanceTo(at(31));
    await world.deliver(setTaints(world, 'a'));
    await world.clock.advanceTo(at(200));
    assert.deepEqual(deletedAt(world), [91]);
  });

  test('when the deltas of a flap arrive after the next relay found the taint', async () => {
    const world = await worldWith(60);
    await world.deliver(setTaints(world, 'a'));
    await world.clock.advanceTo(at(30));
    const off = setTaints(world);
    await world.clock.advanceTo(at(40));
    const onAgain = setTaints(world, 'a');
    world.stop();
    await world.clock.advanceTo(at(45));
    await world.deliver(await world.start());
    await world.clock.advanceTo(at(50));
    await world.deliver([...off, ...onAgain]);
    await world.clock.advanceTo(at(200));
    // The next relay found the taint at 45.
    assert.deepEqual(deletedAt(world), [105]);
  });
});

test('evicts no pod early while the deltas of a flap are queued, because the live taints have a newer stamp', async () => {
  const world = await worldWith(60);
  const set = (stamp: string, ...keys: readonly string[]) => {
    const node = world.cluster.putNode({ ...liveNode('n1', ...keys), taintsStamp: stamp });
    return world.view?.upsertNode(node, world.clock.now()) ?? [];
  };
  await world.deliver(set('kubectl@0', 'a'));
  await world.clock.advanceTo(at(30));
  const off = set('kubectl@30');
  await world.clock.advanceTo(at(40));
  const onAgain = set('kubectl@40', 'a');
  world.clock.setAlarm(at(66), () => world.deliver([...off, ...onAgain]));
  await world.clock.advanceTo(at(200));
  assert.deepEqual(deletedAt(world), [100]);
});

describe('a delta of a relay that lost its lease', () => {
  const fenced = { leaseEpoch: 2 };

  test('schedules nothing', () => {
    for (const delta of [nodeDelta(1), podDelta(1)]) {
      const decided = planned(emptyPartition, delta, fenced);
      assert.equal(forecast(committed(emptyPartition, decided)), 'none');
      assert.equal(decided.node, undefined);
    }
  });

  test('cancels nothing and moves no deadline', () => {
    const before = after(nodeDelta(1));
    for (const delta of [
      nodeDelta(20, { pods: [] }),
      podDelta(20, { pod: { ...podDelta(20).pod, tolerations: [tolerating('a')] } }),
    ]) {
      assert.equal(forecast(committed(before, planned(before, delta, fenced))), 'due at 60');
    }
  });

  test('still raises the start of a countdown, and rearms the timers', () => {
    const before = after(nodeDelta(1));
    const decided = planned(before, nodeDelta(30, { taints: [taint('a', 30)] }), fenced);
    assert.deepEqual(
      decided.node?.taints.map(({ since }) => since),
      [at(30)],
    );
    assert.deepEqual(decided.arm, [at(60)]);
    assert.equal(decided.live, true);
  });

  test('still ends a deleted pod', () => {
    const before = after(nodeDelta(1));
    assert.equal(forecast(committed(before, planned(before, podGone(20), fenced))), 'already-gone');
  });
});

describe('a delta that is older than two resyncs', () => {
  test('decides nothing, even if its relay still holds the lease', () => {
    const young = planned(emptyPartition, nodeDelta(1), { now: at(1 + 1200) });
    const old = planned(emptyPartition, nodeDelta(1), { now: at(1 + 1201) });
    assert.equal(forecast(committed(emptyPartition, young)), 'due at 60');
    assert.equal(forecast(committed(emptyPartition, old)), 'none');
  });
});

describe('a delta that lacks a later taint of the node', () => {
  const both = nodeDelta(20, { taints: [taint('a'), taint('b', 20)], pods: [] });

  test('decides no pod, because it carries no toleration of that taint', () => {
    assert.equal(forecast(after(both, podDelta(10))), 'none');
    const earlier = podDelta(10, { pod: { ...podDelta(10).pod, tolerations: [] } });
    assert.equal(forecast(after(nodeDelta(1), podDelta(20, { taints: both.taints }), earlier)), 'due at 20');
  });

  test('is applied when it is newer', () => {
    assert.equal(forecast(after(both, podDelta(30))), 'due at 60');
  });

  test('lacks the taint also when it has another value', () => {
    const valued = nodeDelta(20, {
      taints: [found('a', 0)].map((each) => ({ ...each, value: 'v' })),
      pods: [],
    });
    assert.equal(forecast(after(valued, podDelta(10))), 'none');
  });
});

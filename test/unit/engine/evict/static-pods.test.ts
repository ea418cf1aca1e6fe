import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import type { Delta, PodFacts } from '#shared/eviction/facts.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, pod, podDelta, podGone, rules, tolerating } from '#test/unit/eviction/builders.ts';
import { benchAfter, EvictBench } from './evict-bench.ts';

/** A mirror pod: all of one static pod have the same name. */
const MIRROR = { name: 'proxy-n1', owner: { kind: 'Node', name: 'n1' } };
const mirror = (uid: string, fields: Partial<PodFacts> = {}) =>
  pod(uid, { ...MIRROR, tolerations: [], ...fields });

const excluding: Rules = {
  ...rules,
  policy: { ...rules.policy, exclude: [{ namespaces: ['default'] }] },
  policyRevision: 2,
};

/** Returns a bench that has evicted the first mirror pod. */
async function evictedOnce(): Promise<EvictBench> {
  const bench = await benchAfter(
    [nodeDelta(1, { pods: [mirror('u1')] })],
    [livePod('u1', { ...MIRROR, tolerations: [] })],
  );
  assert.deepEqual(await bench.evicts(), ['u1']);
  return bench;
}

const apply = (bench: EvictBench, delta: Delta) =>
  applyDeltas([delta], { ...bench, announce: async () => undefined, leaseEpoch: async () => undefined });

/** The kubelet creates a mirror pod, and the relay reports it. */
async function appears(bench: EvictBench, fields: PodFacts, sequence: number): Promise<void> {
  const { uid, name, owner, tolerations } = fields;
  bench.cluster.putPod(livePod(uid, { name, ...(owner ? { owner } : {}), tolerations }));
  await apply(bench, podDelta(sequence, { pod: fields }));
}

const gateOf = async (bench: EvictBench, uid = 'u2') => (await bench.gates())[uid];

/** Advances to the armed times, as timers do. */
async function untilIdle(bench: EvictBench): Promise<void> {
  for (;;) {
    const next = bench.armed.sort((a, b) => a - b).shift();
    if (next === undefined) return;
    await bench.evicts(Math.max(next, bench.clock.now()));
  }
}

/** A mirror pod appears, and every armed time passes. */
async function settles(bench: EvictBench, fields: PodFacts, sequence: number): Promise<void> {
  await appears(bench, fields, sequence);
  await untilIdle(bench);
}

describe('the mirror pod that a kubelet recreates after an eviction', () => {
  test('is held unmarked, with an Event, and counts no further eviction', async () => {
    const bench = await evictedOnce();
    await settles(bench, mirror('u2'), 61);
    assert.deepEqual([bench.deleted, bench.lateness.length, bench.givenUp], [['u1'], 1, 0]);
    assert.equal(await gateOf(bench), 'recreated');
    assert.equal((await bench.cluster.getPod({ namespace: 'default', name: 'proxy-n1' }))?.disrupted, false);
    assert.match(
      bench.cluster.events.at(-1)?.message ?? '',
      /^Eviction held by the kubelet, which recreates it\. The pod has been due since /,
    );
  });

  test('stays held when the end of the earlier pod is long forgotten, also after deltas that change its deadline', async () => {
    const bench = await evictedOnce();
    await settles(bench, mirror('u2'), 61);
    await bench.clock.advanceTo(at(61) + 3 * ENDED_WINDOW_MS);
    const seconds = (bench.clock.now() - at(0)) / 1000;
    await apply(bench, nodeDelta(seconds, { pods: [mirror('u2')], wake: true }));
    await apply(bench, podDelta(seconds + 1, { pod: mirror('u2') }));
    const tolerant = mirror('u2', { tolerations: [tolerating('a', seconds + 60)] });
    bench.cluster.putPod(livePod('u2', { ...MIRROR, tolerations: tolerant.tolerations }));
    await apply(bench, podDelta(seconds + 2, { pod: tolerant }));
    assert.equal(await gateOf(bench), undefined);
    await untilIdle(bench);
    assert.deepEqual(bench.deleted, ['u1']);
    assert.equal(await gateOf(bench), 'recreated');
  });

  test('is held at its deadline, however long it tolerates the taint', async () => {
    const bench = await evictedOnce();
    const seconds = (3 * ENDED_WINDOW_MS) / 1000;
    await settles(bench, mirror('u2', { podSince: at(61), tolerations: [tolerating('a', seconds)] }), 61);
    assert.deepEqual([bench.deleted, await gateOf(bench)], [['u1'], 'recreated']);
  });

  test('is recognized before the end of the earlier pod is stored', async () => {
    const bench = await benchAfter([nodeDelta(1, { pods: [mirror('u1')] })], []);
    await settles(bench, mirror('u2'), 60);
    assert.deepEqual([bench.deleted, await gateOf(bench)], [[], 'recreated']);
  });

  test('is held again when another actor deletes it', async () => {
    const bench = await evictedOnce();
    await settles(bench, mirror('u2'), 61);
    await bench.clock.advanceTo(at(61) + 3 * ENDED_WINDOW_MS);
    const seconds = (bench.clock.now() - at(0)) / 1000;
    const deleted = { ...mirror('u2'), deleted: { at: at(seconds), by: 'other' as const } };
    await apply(bench, podGone(seconds, { uid: mirror('u2').uid, deleted }));
    await settles(bench, mirror('u3'), seconds + 1);
    assert.deepEqual([bench.deleted, await gateOf(bench, 'u3')], [['u1'], 'recreated']);
  });

  test('stays once its node is not tainted', async () => {
    const bench = await evictedOnce();
    await settles(bench, mirror('u2'), 61);
    await apply(bench, nodeDelta(80, { taints: [], pods: [] }));
    assert.equal((await bench.states())['u2'], 'canceled');
  });
});

describe('a mirror pod is evicted', () => {
  test('if a gate held the earlier pod of its name until another actor deleted it', async () => {
    const bench = new EvictBench();
    await bench.clock.advanceTo(at(61));
    bench.ruling = excluding;
    bench.cluster.putNode(liveNode('n1', 'a'));
    await settles(bench, mirror('u1'), 1);
    assert.equal(await gateOf(bench, 'u1'), 'excluded');
    bench.cluster.removePod(mirror('u1'));
    const deleted = { ...mirror('u1'), deleted: { at: at(62), by: 'other' as const } };
    await apply(bench, podGone(62, { uid: mirror('u1').uid, deleted }));
    bench.ruling = { ...rules, policyRevision: 3 };
    await settles(bench, mirror('u2'), 63);
    assert.deepEqual(bench.deleted, ['u2']);
  });

  test('if the earlier pod of its name was not due, and another actor deleted it or it is only seen to be gone', async () => {
    const earlier = mirror('u1', { tolerations: [tolerating('a', 600)] });
    for (const isReported of [true, false]) {
      const bench = await benchAfter([nodeDelta(1, { pods: [earlier] })], []);
      if (isReported) await apply(bench, podGone(60, { uid: earlier.uid }));
      assert.equal((await bench.states())['u1'], isReported ? 'already-gone' : 'scheduled');
      await settles(bench, mirror('u2'), 61);
      assert.deepEqual(bench.deleted, ['u2']);
    }
  });

  test('if the earlier pod of its name was spared when its node was untainted', async () => {
    const bench = await benchAfter([nodeDelta(1, { pods: [mirror('u1')] })], []);
    await apply(bench, nodeDelta(60, { taints: [], pods: [] }));
    await settles(bench, mirror('u2'), 61);
    assert.deepEqual(bench.deleted, ['u2']);
  });

  test('if its relay reports it again when it is due', async () => {
    const bench = await benchAfter([nodeDelta(1, { pods: [mirror('u1')] })], []);
    await settles(bench, mirror('u1'), 61);
    assert.deepEqual(bench.deleted, ['u1']);
  });

  test('if only a pod of another name, namespace, or kind of owner was evicted', async () => {
    for (const fields of [
      { name: 'other-n1' },
      { namespace: 'other' },
      { owner: { kind: 'StatefulSet', name: 'proxy' } },
    ]) {
      const bench = await evictedOnce();
      const { namespace, ...rest } = mirror('u2', fields);
      bench.cluster.putPod(livePod('u2', { ...rest, namespace }));
      await apply(bench, podDelta(61, { pod: { ...rest, namespace } }));
      await untilIdle(bench);
      assert.deepEqual(bench.deleted, ['u1', 'u2'], JSON.stringify(fields));
    }
  });
});

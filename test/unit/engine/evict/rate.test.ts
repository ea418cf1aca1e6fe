import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import { waitingPods } from '#test/contracts/permits-contract.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, pod, ref, tolerating } from '#test/unit/eviction/builders.ts';
import {
  asReported,
  duePods,
  heldUntil,
  passes,
  podsNamed,
  ruled,
  STOP,
  serverError,
} from './evict-bench.ts';

const at2PerSecond = ruled({ evictionRate: 2 });

/** Returns a bench with due pods of a cluster with a rate. */
const limited = (count: number, ruling = at2PerSecond) => duePods(count, ruling);

describe('in a cluster with a rate', () => {
  test('evicts pods at the rate, with one message per second', async () => {
    const bench = await limited(5);
    assert.equal((await bench.evicts()).length, 2);
    assert.deepEqual(bench.armed, [at(61), at(62)]);
    await bench.until(at(62));
    assert.deepEqual(bench.deletedAfter(60), [0, 0, 1, 1, 2]);
  });

  test('keeps waiting pods unmarked and without a failure, also after a crash', async () => {
    const bench = await limited(3);
    bench.timerOutages = 1;
    await assert.rejects(bench.pass());
    await bench.redelivered();
    const { node, scheduled } = await bench.stored();
    assert.equal(node?.retry, undefined);
    assert.ok([...scheduled.values()].every(({ failure }) => failure === undefined));
    assert.equal(bench.isMarked, false);
    await bench.until(at(70));
    assert.equal(bench.deleted.length, 3);
  });

  test('shares the rate among the nodes of a cluster', async () => {
    const bench = await limited(3);
    await bench.permits.take(ref.cluster, waitingPods(10), { evictionRate: 2, releaseRate: 50 }, at(60));
    await bench.pass();
    assert.deepEqual([bench.deleted, bench.armed], [[], [at(65), at(66)]]);
  });

  test('asks again a minute later for pods without a slot', async () => {
    const bench = await limited(2);
    await bench.permits.take(ref.cluster, waitingPods(120), { evictionRate: 2, releaseRate: 50 }, at(60));
    await bench.permits.take(ref.cluster, waitingPods(120), { evictionRate: 2, releaseRate: 50 }, at(60));
    await bench.pass();
    assert.deepEqual(bench.armed, [at(120)]);
    await bench.evicts(at(120));
    assert.deepEqual(bench.armed.slice(1), [at(121)]);
  });

  passes({
    'evicts pods on a node out of service immediately': {
      pods: podsNamed(5),
      rules: at2PerSecond,
      deleted: ['u1', 'u2', 'u3', 'u4', 'u5'],
      given: ({ cluster }) => cluster.putNode(liveNode('n1', 'a', NODE_OUT_OF_SERVICE)),
    },
  });

  test('evicts a pod whose eviction failed before waiting pods', async () => {
    const bench = await limited(1);
    bench.fails('delete', serverError(500), 1);
    await bench.pass();
    const { node } = await bench.stored();
    await bench.permits.take(ref.cluster, waitingPods(100), { evictionRate: 2, releaseRate: 50 }, at(60));
    await bench.evicts(node?.retry?.nextTryAt ?? 0);
    // The failed delete and another permit are those of the first second.
    assert.deepEqual(await bench.evicts(at(61)), ['u1']);
  });

  test('gives a slot to a pod that no budget blocked before it gives one to a blocked pod', async () => {
    const method = { kind: 'evict', timeoutMs: 600_000, onTimeout: 'delete' } as const;
    const bench = await asReported(
      livePod('u1', { labels: { app: 'web' } }),
      livePod('u2', { tolerations: [tolerating('a', 65)] }),
    );
    bench.ruling = ruled({ method, evictionRate: 1 });
    bench.cluster.budgets.set('web', { app: 'web', allowed: 0 });
    await bench.pass();
    assert.notEqual((await bench.stored()).scheduled.get(pod('u1').uid)?.blocked, undefined);
    assert.deepEqual(await bench.evicts(at(66)), ['u2']);
  });

  for (const [what, ruling, start, times] of [
    ['after slots that passed unused', at2PerSecond, 60, [0, 0, 120, 120, 121]],
    ['after the common end of their hold', heldUntil(180, at2PerSecond), 180, [0, 0, 1, 1, 2]],
  ] as const)
    test(`evicts pods at the rate ${what}`, async () => {
      const bench = await limited(5, ruling);
      await bench.pass();
      await bench.evicts(at(180));
      await bench.until(at(190));
      assert.deepEqual(bench.deletedAfter(start), times);
    });

  test('reserves no slot for a pod that a gate holds', async () => {
    const bench = await limited(2, { ...at2PerSecond, stops: [STOP] });
    await bench.pass();
    assert.deepEqual(
      await bench.permits.take(ref.cluster, waitingPods(1), { evictionRate: 2, releaseRate: 50 }, at(60)),
      [undefined],
    );
    assert.deepEqual(await bench.states(), { u1: 'scheduled', u2: 'scheduled' });
  });

  test('reports pods in observe mode at the rate at which enforce mode would evict them', async () => {
    const bench = await limited(5, { ...at2PerSecond, policy: { ...at2PerSecond.policy, mode: 'observe' } });
    const reported = () => bench.logged('eviction.would-evict').length;
    const counts: number[] = [];
    for (let second = 60; second <= 62; second++) {
      await bench.evicts(at(second));
      counts.push(reported());
    }
    assert.deepEqual(counts, [2, 4, 5]);
    assert.deepEqual(bench.cluster.deletions, []);
  });

  test('does not evict a pod in its slot when its taint was removed', async () => {
    const bench = await limited(5);
    await bench.pass();
    bench.cluster.putNode(liveNode('n1'));
    await bench.until(at(70));
    assert.equal(bench.deleted.length, 2);
  });

  test('evicts no pod while the table is unreachable, and rejects the message', async () => {
    const bench = await limited(2);
    const permits = { take: async () => Promise.reject(new Error('the table is away')) };
    await assert.rejects(bench.pass({ permits }), /the table is away/);
    assert.deepEqual(bench.deleted, []);
  });
});

test('evicts a pod with a slot by its own timer', async () => {
  const bench = await limited(1);
  await bench.permits.take(ref.cluster, waitingPods(10), { evictionRate: 2, releaseRate: 50 }, at(60));
  await bench.pass();
  bench.cluster.putPod(livePod('u1'));
  assert.deepEqual(await bench.evicts(), []);
  await bench.until(at(65));
  assert.deepEqual(bench.deleted, ['u1']);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, tolerating } from '#test/unit/eviction/builders.ts';
import { asReported, duePods, type EvictBench, STOP } from './evict-bench.ts';

/** Evicts at each armed time up to `endAt`. Returns the number of passes. */
async function play(bench: EvictBench, endAt: number): Promise<number> {
  let passes = 0;
  bench.armed.push(bench.clock.now());
  for (;;) {
    const next = bench.armed.length === 0 ? Infinity : Math.min(...bench.armed);
    if (next > endAt) return passes;
    bench.armed.splice(0, bench.armed.length, ...bench.armed.filter((moment) => moment > next));
    await bench.clock.advanceTo(Math.max(next, bench.clock.now()));
    passes += 1;
    assert.equal(await bench.pass(), undefined);
  }
}

describe('a process that evicts', () => {
  test('waits until the deadline has passed for the API server as well, where its own clock is ahead', async () => {
    const bench = await duePods(1);
    bench.cluster.skewMs = -20_000;
    assert.equal(await bench.pass(), undefined);
    assert.deepEqual(bench.deleted, []);
    assert.deepEqual(bench.armed, [at(80)]);
    assert.deepEqual(await bench.evicts(at(80)), ['u1']);
  });

  test('evicts at the deadline where the clocks differ by at most two seconds', async () => {
    for (const skewMs of [-2_000, 0, 2_000]) {
      const bench = await duePods(1);
      bench.cluster.skewMs = skewMs;
      assert.deepEqual(await bench.evicts(), ['u1'], `${skewMs} ms`);
    }
  });

  test('evicts once the earliest possible time by slow answers is past the deadline', async () => {
    const bench = await duePods(1);
    bench.cluster.otherSkews = [{ leastMs: -45_000, mostMs: 0 }];
    assert.deepEqual(await bench.evicts(), []);
    assert.deepEqual(bench.armed, [at(105)]);
    assert.equal(await bench.retry(), undefined);
    assert.deepEqual(await bench.evicts(at(105)), ['u1']);
  });

  test('evicts each pod once, in few passes, and never before its deadline by any clock', async () => {
    const range = fc
      .tuple(fc.integer({ min: -30_000, max: 30_000 }), fc.integer({ min: 0, max: 5_000 }))
      .map(([leastMs, widthMs]) => ({ leastMs, mostMs: leastMs + widthMs }));
    const skews = fc.array(range, { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(skews, fc.integer({ min: 0, max: 90 }), async (found, seconds) => {
        const tolerations = [tolerating('a', seconds)];
        const bench = await asReported(livePod('u1', { tolerations }));
        bench.cluster.otherSkews = found;
        bench.armed.push(at(Math.max(60, seconds)));
        const passes = await play(bench, at(600));
        const deadline = at(seconds);
        const [deletion, ...others] = bench.cluster.deletions;
        assert.ok(deletion && others.length === 0);
        for (const { leastMs } of [...found, { leastMs: 0 }]) {
          assert.ok(deletion.at + leastMs >= deadline - 2_000, `at ${deletion.at - at(0)}`);
        }
        assert.ok(passes <= 4, `${passes} looks`);
      }),
      { numRuns: 60 },
    );
  });

  test('measures the countdown of an unreported taint by a single clock', async () => {
    const bench = await duePods(1);
    bench.cluster.skewMs = -20_000;
    const tolerations = [tolerating('b', 300)];
    bench.cluster.putNode(liveNode('n1', 'b'));
    bench.cluster.putPod(livePod('u1', { tolerations }));
    await bench.pass();
    assert.equal((await bench.record())?.dueAt, at(340));
  });
});

describe('clocks that differ by more than 30 s', () => {
  /** Returns a bench with a due pod, where the clock of `evict` is 240 s ahead of the API server. */
  async function apart(): Promise<EvictBench> {
    const bench = await duePods(1);
    bench.cluster.skewMs = -240_000;
    return bench;
  }

  test('hold evictions, and the stored error names the clocks and their difference', async () => {
    for (const [skewMs, difference] of [
      [-240_000, '4m behind'],
      [240_000, '4m ahead of'],
    ] as const) {
      const bench = await duePods(1);
      bench.cluster.skewMs = skewMs;
      assert.deepEqual(await bench.evicts(), []);
      const retry = await bench.retry();
      assert.equal(
        retry?.error,
        `evictions are held because clocks differ: the API server's clock is at least ${difference} the clock of the evicting process`,
      );
      assert.ok(retry.nextTryAt >= at(90) && bench.armed.includes(retry.nextTryAt));
    }
  });

  test('hold no evictions where the clock of another API server agrees, and the earlier clock counts', async () => {
    const bench = await apart();
    bench.cluster.otherSkews = [{ leastMs: 0, mostMs: 1_000 }];
    await bench.pass();
    assert.equal(await bench.retry(), undefined);
    assert.deepEqual(bench.armed, [at(300)]);
  });

  test('allow evictions again once they agree, and never count toward the failure of an eviction', async () => {
    const bench = await apart();
    await play(bench, at(4.5 * 86_400));
    assert.equal(bench.givenUp, 0);
    bench.cluster.skewMs = 0;
    await play(bench, at(5 * 86_400));
    assert.deepEqual([bench.givenUp, bench.deleted, await bench.retry()], [0, ['u1'], undefined]);
  });

  test('still end records of deleted pods, and keep the gates of held pods', async () => {
    const bench = await apart();
    bench.cluster.removePod(livePod('u1'));
    assert.deepEqual(await bench.leaves(), { u1: 'already-gone' });
    const stopped = await apart();
    stopped.ruling = { ...stopped.ruling, stops: [STOP] };
    await stopped.pass();
    assert.equal((await stopped.record())?.held?.by.kind, 'stopped');
  });

  test('report no pod as would-evict in observe mode before they agree', async () => {
    const bench = await apart();
    bench.ruling = { ...bench.ruling, policy: { ...bench.ruling.policy, mode: 'observe' } };
    await bench.pass();
    assert.equal((await bench.record())?.held, undefined);
    bench.cluster.skewMs = 0;
    await play(bench, at(900));
    assert.equal((await bench.record())?.held?.by.kind, 'observe');
    assert.deepEqual(bench.deleted, []);
  });

  test('reserve neither slots nor permits', async () => {
    const bench = await apart();
    bench.ruling = { ...bench.ruling, policy: { ...bench.ruling.policy, evictionRate: 0.01 } };
    await bench.pass();
    bench.cluster.skewMs = 0;
    const retry = await bench.retry();
    assert.deepEqual(await bench.evicts(retry?.nextTryAt ?? 0), ['u1']);
  });
});

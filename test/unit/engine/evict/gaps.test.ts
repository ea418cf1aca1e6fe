import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import { ending, type Partition } from '#shared/eviction/records.ts';
import { waitingPods } from '#test/contracts/permits-contract.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, ref, tolerating } from '#test/unit/eviction/builders.ts';
import type { DrivenClock } from '#test/world/driven-clock.ts';
import { asReported, beforeCalls, duePods, type EvictBench, ruled, serverError } from './evict-bench.ts';

const SLOW_MS = 200;

/** Returns the latest time at which a delete may be sent, in ms after the server's answer about the node. */
async function latestAfterAnswer(bench: EvictBench): Promise<number> {
  const { cluster, clock } = bench;
  let answeredAt = 0;
  const getNode = cluster.getNode.bind(cluster);
  cluster.getNode = async (name) => {
    answeredAt = clock.now();
    return getNode(name);
  };
  const deletePod = cluster.deletePod.bind(cluster);
  let latest = 0;
  cluster.deletePod = async (found, preconditions, notAfter = Infinity) => {
    latest = notAfter - answeredAt;
    return deletePod(found, preconditions, notAfter);
  };
  assert.deepEqual(await bench.evicts(), ['u1']);
  return latest;
}

describe('a delete is sent within the limit after the answer about its node, for any time', () => {
  const slowly = (clock: DrivenClock) => clock.advanceTo(clock.now() + SLOW_MS);

  test('with a slow read of the table or of the rules after that answer', async () => {
    const [slowTable, slowRules] = [await duePods(1), await duePods(1)];
    const load = slowTable.store.load.bind(slowTable.store);
    slowTable.store.load = async (...args) => {
      const found = await load(...args);
      await slowly(slowTable.clock);
      return found;
    };
    const read = async () => {
      await slowly(slowRules.clock);
      return slowRules.ruling;
    };
    for (const bench of [slowTable, Object.assign(slowRules, { rules: read })])
      assert.equal(await latestAfterAnswer(bench), NODE_MAX_AGE_MS);
  });
});

test('credentials that are rejected during a pass fail the whole node, and no single pod', async () => {
  const bench = await duePods(3);
  bench.before('delete', (count) => {
    if (count > 1) throw serverError(401);
  });
  assert.equal((await bench.evicts()).length, 1);
  const { node } = await bench.stored();
  assert.equal(node?.retry?.everything, true);
  assert.deepEqual(
    (await bench.records()).map(({ failure }) => failure),
    [undefined, undefined],
  );
});

describe('a slot under the rate', () => {
  const at1PerSecond = ruled({ evictionRate: 1 });

  test('is not written on a record whose deadline another pass moved meanwhile', async () => {
    const bench = await duePods(1);
    bench.ruling = at1PerSecond;
    await bench.permits.take(ref.cluster, waitingPods(10), { evictionRate: 1, releaseRate: 50 }, at(60));
    const { store } = bench;
    const take = bench.permits.take.bind(bench.permits);
    const racing = Object.assign(bench, {
      permits: {
        take: async (...args: Parameters<typeof take>) => {
          const turns = await take(...args);
          const { revision, scheduled } = await store.load(ref, at(60));
          const later = [...scheduled.values()].map((record) => ({ ...record, dueAt: at(90) }));
          await store.commit(ref, revision, { schedule: later, end: [], live: true }, at(60));
          return turns;
        },
      },
    });
    await racing.pass();
    const [record] = await bench.records();
    assert.deepEqual([record?.dueAt, record?.turnAt], [at(90), undefined]);
  });

  test('ends when a gate holds the pod, which gets another slot afterwards', async () => {
    const bench = await duePods(1);
    bench.ruling = at1PerSecond;
    await bench.permits.take(ref.cluster, waitingPods(2), { evictionRate: 1, releaseRate: 50 }, at(60));
    await bench.pass();
    assert.equal((await bench.records())[0]?.turnAt, at(62));
    await bench.clock.advanceTo(at(62));
    const stop = { scope: 'cluster', actor: 'anna', at: at(62), reason: 'an incident' } as const;
    bench.ruling = { ...at1PerSecond, stops: [stop] };
    await bench.pass();
    const [record] = await bench.records();
    assert.deepEqual([record?.held?.by.kind, record?.turnAt], ['stopped', undefined]);
  });
});

describe('a retry of a node', () => {
  const failing = async () => {
    const bench = await asReported(livePod('u1'), livePod('u2', { tolerations: [tolerating('a', 600)] }));
    bench.fails('any', serverError(503));
    await bench.pass();
    return bench;
  };

  test('stays when a message arrives before it is due', async () => {
    const bench = await failing();
    const before = await bench.retry();
    assert.ok(before && before.nextTryAt > bench.clock.now());
    await bench.redelivered();
    assert.deepEqual(await bench.retry(), before);
  });

  test('stays when another pass sets a retry or a deadline while its end is recorded', async () => {
    for (const meanwhile of [
      ({ node, scheduled }: Partition) => ({
        node: node?.outage && { ...node, outage: { ...node.outage, nextTryAt: at(900) } },
        schedule: [...scheduled.values()],
      }),
      ({ node, scheduled }: Partition) => ({
        node,
        schedule: [...scheduled.values()].map((record) => ({ ...record, dueAt: at(60) })),
      }),
    ]) {
      const bench = await failing();
      const { store, clock } = bench;
      const before = await bench.stored();
      const went = [...before.scheduled.values()].filter(({ uid }) => uid === 'u1');
      const ends = went.map((record) => ending(record, { outcome: 'already-gone' }, record.version));
      await store.commit(ref, before.revision, { schedule: [], end: ends, live: true }, clock.now());
      await clock.advanceTo((await bench.retry())?.nextTryAt ?? 0);
      let loads = 0;
      beforeCalls(store, 'load', async (count) => {
        loads = count;
        if (count !== 2) return;
        const found = await bench.stored();
        const { node, schedule } = meanwhile(found);
        assert.ok(node);
        await store.commit(ref, found.revision, { node, schedule, end: [], live: true }, clock.now());
      });
      await bench.pass();
      assert.ok(loads >= 2);
      assert.notEqual(await bench.retry(), undefined);
    }
  });

  test('ends after a try that evicts every due pod', async () => {
    const bench = await failing();
    bench.recovers();
    assert.deepEqual(await bench.leaves((await bench.retry())?.nextTryAt ?? 0), {
      u1: 'evicted',
      u2: 'scheduled',
    });
    assert.equal(await bench.retry(), undefined);
  });
});

test('evicts pods that are long overdue and failed before after pods that have just become due', async () => {
  const overdue = ['u1', 'u2', 'u3'].map((uid) => livePod(uid, { tolerations: [tolerating('a', 5)] }));
  const bench = await asReported(...overdue, livePod('u4'), livePod('u5'), livePod('u6'));
  await bench.evicts(at(61));
  const order = bench.cluster.deletions.map(({ pod: { uid } }) => uid);
  assert.deepEqual(order.slice(0, 3).sort(), ['u4', 'u5', 'u6']);
  assert.deepEqual(order.slice(3).sort(), ['u1', 'u2', 'u3']);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { evictNode, tryAgain } from '#shared/engine/evict/evict-node.ts';
import type { EvictDeps } from '#shared/engine/evict/ports.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { AskingPod } from '#shared/eviction/rate.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import {
  API_REFUSALS,
  CLOCK_SKEW,
  type EvictionMetric,
  GIVEN_UP,
  OUT_OF_REACH,
} from '#shared/telemetry/metrics.ts';
import { liveNode } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, pod, ref, rules, taint, tolerating } from '#test/unit/eviction/builders.ts';
import {
  benchAfter,
  due,
  duePods,
  type EvictBench,
  podsNamed,
  ruled,
  serverError,
  stopped,
} from './evict-bench.ts';

describe('the Lease is read along with the node', () => {
  const notReady = [NODE_NOT_READY];
  const both = [NODE_UNREACHABLE, 'a'];
  const down = [NODE_UNREACHABLE];
  const CASES: readonly (readonly [string, readonly (readonly string[])[], Rules, boolean])[] = [
    ['if a pod is due because the node is unreachable', [down], rules, true],
    ['if that is one reason of several', [both], rules, true],
    ['if that concerns one pod of several', [notReady, down], rules, true],
    ['also in observe mode', [down], ruled({ mode: 'observe' }), true],
    ['not while the cluster is stopped', [down], stopped, false],
    ['not if policy does not ask for it', [down], ruled({ requireExpiredLease: false }), false],
    ['not if the node is only not ready', [notReady], rules, false],
  ];
  for (const [name, keysOfPods, ruling, isAlong] of CASES)
    test(name, async () => {
      const keys = new Set(keysOfPods.flat());
      const named = podsNamed(keysOfPods.length).map((each) => ({ ...each, tolerations: [] }));
      const bench = await benchAfter(
        [
          nodeDelta(1, {
            taints: [...keys].map((key) => taint(key, 1)),
            pods: named.map(({ uid }, index) =>
              pod(uid, {
                tolerations: [...keys]
                  .filter((key) => !keysOfPods[index]?.includes(key))
                  .map((key) => ({ key, operator: 'Exists' as const })),
              }),
            ),
          }),
        ],
        named,
      );
      bench.ruling = ruling;
      bench.cluster.putNode(liveNode('n1', ...keys));
      const answers: string[] = [];
      bench.cluster.beforeRequest = (verb) => void (verb === 'get-lease' && answers.push(verb));
      const list = bench.cluster.podsOnNode.bind(bench.cluster);
      bench.cluster.podsOnNode = async (node) => {
        for (let turns = 0; turns < 5; turns++) await nextTurn();
        answers.push('list');
        return list(node);
      };
      await bench.pass();
      assert.equal(answers[0] === 'get-lease', isAlong, `${answers}`);
    });
});

describe('a permit of the rate', () => {
  const policy = { evictionRate: 2 };

  /** Returns a bench with a due pod, whose permits are always granted, and each call recorded. */
  async function granted(pods = 1) {
    const bench = await duePods(pods, ruled(policy));
    const takes: (readonly AskingPod[])[] = [];
    const sends: unknown[] = [];
    bench.permits = {
      take: async (_cluster, requests) => {
        takes.push(requests);
        return requests.map(() => undefined);
      },
      sent: (_cluster, sent, _pace, now, sentBy) => sends.push([sent.uid, now, sentBy]),
    };
    return { bench, takes, sends };
  }

  test('counts from the latest time of its delete, and from the answer if that came earlier', async () => {
    const { bench, sends } = await granted();
    await bench.evicts();
    assert.deepEqual(sends, [
      ['u1', at(60), at(60.25)],
      ['u1', at(60), undefined],
    ]);
  });

  test('does not count anew from an answer that came later', async () => {
    const { bench, sends } = await granted();
    bench.cluster.onDeleted = () => void bench.clock.advanceTo(at(61));
    await bench.evicts();
    assert.deepEqual(sends, [['u1', at(60), at(60.25)]]);
  });

  test('serves the next try of a delete that was not sent', async () => {
    const { bench, takes, sends } = await granted();
    let late = 1;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'delete' && late-- > 0) void bench.clock.advanceTo(at(60.3));
    };
    assert.deepEqual(await bench.evicts(), ['u1']);
    assert.equal(takes.length, 1);
    assert.equal(sends.length, 3);
  });

  test('serves one delete that was sent', async () => {
    const { bench, takes } = await granted();
    bench.fails('delete', new ApiError('the pod changed', 409, 'Conflict'), 1);
    assert.deepEqual(await bench.evicts(), ['u1']);
    assert.equal(takes.length, 2);
  });

  test('is asked for in turn by pods that waited, or were tried before', async () => {
    const inTurn = async (prepare: (bench: EvictBench) => unknown) => {
      const { bench, takes } = await granted();
      await prepare(bench);
      await bench.evicts();
      return takes.at(-1)?.map((request) => request.inTurn);
    };
    const changed = (fields: object) => async (bench: EvictBench) => {
      const { revision, scheduled } = await bench.stored();
      const schedule = [...scheduled.values()].map((record) => ({ ...record, ...fields }));
      await bench.store.commit(ref, revision, { schedule, end: [], live: true }, at(60));
    };
    assert.deepEqual(await inTurn(() => undefined), [false]);
    assert.deepEqual(await inTurn(changed({ turnAt: at(59) })), [true]);
    assert.deepEqual(await inTurn(changed({ drains: true, notBefore: at(59) })), [true]);
    assert.deepEqual(await inTurn(changed({ drains: true })), [false]);
    const tried = async (bench: EvictBench) => {
      bench.fails('any', serverError(500), 1);
      await bench.pass();
      const retry = await bench.retry();
      await bench.clock.advanceTo(retry?.nextTryAt ?? assert.fail('it is not to be tried again'));
    };
    assert.deepEqual(await inTurn(tried), [true]);
  });
});

test('a pod is not marked if its method changed while the mark was waiting', async () => {
  const bench = await duePods(1);
  const mark = bench.cluster.markDisrupted.bind(bench.cluster);
  let patches = 0;
  bench.cluster.markDisrupted = (...args) => {
    bench.ruling = ruled({ method: { kind: 'evict', timeoutMs: 60_000, onTimeout: 'delete' } });
    return mark(...args);
  };
  bench.cluster.beforeRequest = (verb) => void (verb === 'patch' && patches++);
  assert.deepEqual(await bench.evicts(), ['u1']);
  assert.equal(patches, 0);
});

describe('when a pass cannot continue', () => {
  test('a stop that began meanwhile holds the pods that are left, and those that failed', async () => {
    const bench = await duePods(3);
    const outcomes = [undefined, serverError(500), serverError(503)];
    const remove = bench.cluster.deletePod.bind(bench.cluster);
    let turn: Promise<void> = Promise.resolve();
    bench.cluster.deletePod = (...args) => {
      const mine = turn.then(async () => {
        const error = outcomes.shift();
        if (!error) return remove(...args);
        if (outcomes.length === 0) bench.ruling = stopped;
        throw error;
      });
      turn = mine.catch(() => undefined);
      return mine;
    };
    assert.equal((await bench.evicts()).length, 1);
    assert.deepEqual(Object.values(await bench.gates()), ['stopped', 'stopped']);
  });

  test('nothing is held without a reason', async () => {
    const bench = await duePods(1);
    bench.fails('any', serverError(503), 1);
    await bench.evicts();
    assert.deepEqual(await bench.gates(), { u1: undefined });
    assert.ok(await bench.retry());
  });
});

describe('a pass reports', () => {
  const metricsOf = (bench: EvictBench) => {
    const counted: unknown[] = [];
    bench.cluster.skewMs = undefined;
    const put = (name: EvictionMetric, value: number) => {
      if ([CLOCK_SKEW, OUT_OF_REACH, API_REFUSALS, GIVEN_UP].some((each) => each === name))
        counted.push([name, value]);
    };
    Object.assign(bench.metrics, { put });
    return counted;
  };

  test('nothing of a cluster that works, and whose clock is not known', async () => {
    const bench = await duePods(1);
    const counted = metricsOf(bench);
    await bench.evicts();
    assert.deepEqual(counted, []);
  });

  test('how far a clock is off, in seconds', async () => {
    const bench = await duePods(1);
    const counted = metricsOf(bench);
    bench.cluster.skewMs = -1_500;
    await bench.evicts();
    assert.deepEqual(counted, [[CLOCK_SKEW, 1.5]]);
  });

  test('each request that a server rejects', async () => {
    const bench = await duePods(1);
    const counted = metricsOf(bench);
    bench.fails('delete', serverError(500));
    await bench.evicts();
    assert.deepEqual(counted, [[API_REFUSALS, 1]]);
  });

  test('that a complete pass proves that evictions work, and no other one', async () => {
    const proofs = async (bench: EvictBench) => {
      let passed = 0;
      const noted = { passed: async () => void passed++ } as unknown as NonNullable<EvictDeps['proofs']>;
      await bench.pass({ proofs: noted, rules: bench.rules });
      return passed;
    };
    const refused = await duePods(1);
    refused.fails('any', serverError(500));
    assert.deepEqual([await proofs(await duePods(1)), await proofs(refused)], [1, 0]);
  });

  test('that it stored the results, before their Events are posted', async () => {
    const bench = await duePods(1);
    const order: string[] = [];
    bench.cluster.beforeRequest = (verb) => void (verb === 'create' && order.push('event'));
    await evictNode(ref, bench, false, () => order.push('recorded'));
    assert.deepEqual(order, ['recorded', 'event']);
  });

  test('a pod of an observed cluster that ended by itself as one that it would have evicted', async () => {
    const bench = await duePods(1, ruled({ mode: 'observe' }));
    bench.cluster.removePod({ namespace: 'default', name: 'pod-u1' });
    await bench.evicts();
    assert.equal(bench.logged('eviction.would-evict').length, 1);
    assert.equal(bench.logged('pod.already-gone').length, 0);
  });
});

describe('a message that comes again', () => {
  test('arms the timers of stored records that are due later, and a first one does not', async () => {
    const bench = await benchAfter(
      [nodeDelta(1, { pods: [pod('u1', { tolerations: [tolerating('a', 90)] })] })],
      [],
    );
    const dueAt = (await bench.record())?.dueAt;
    await bench.pass();
    assert.deepEqual(bench.armed, []);
    await bench.redelivered();
    assert.deepEqual(bench.armed, [dueAt]);
  });

  test('arms nothing if nothing is due later', async () => {
    const bench = await due(...podsNamed(1));
    let calls = 0;
    Object.assign(bench.timers, { arm: async () => void calls++ });
    await bench.evicts();
    const before = calls;
    await bench.redelivered();
    assert.equal(calls, before);
  });
});

describe('a request to try again', () => {
  const failed = async (pods = 1) => {
    const bench = await duePods(pods);
    bench.fails('any', serverError(500), 1);
    await bench.evicts();
    return bench;
  };
  const uids = podsNamed(2).map(({ uid }) => uid);

  test('ends the wait of a node, and a redelivered one does not', async () => {
    const bench = await failed(2);
    await tryAgain(ref, uids, bench, true);
    assert.ok(((await bench.retry())?.nextTryAt ?? 0) > at(60));
    await tryAgain(ref, uids, bench);
    assert.equal((await bench.retry())?.nextTryAt, at(60));
  });

  test('changes nothing if nothing waits', async () => {
    const bench = await duePods(1);
    const { revision } = await bench.stored();
    await tryAgain(ref, uids, bench);
    assert.equal((await bench.stored()).revision, revision);
  });

  test('leaves the time at which failures began, unless they failed permanently', async () => {
    const bench = await failed();
    await bench.clock.advanceTo(at(61));
    const since = (await bench.retry())?.since;
    await tryAgain(ref, uids, bench);
    assert.equal((await bench.retry())?.since, since);
    const { revision, scheduled } = await bench.stored();
    const schedule = [...scheduled.values()].map((record) => ({ ...record, gaveUpAt: at(60) }));
    await bench.store.commit(ref, revision, { schedule, end: [], live: true }, at(61));
    await tryAgain(ref, uids, bench);
    assert.equal((await bench.retry())?.since, at(61));
    assert.equal((await bench.record())?.gaveUpAt, undefined);
    assert.deepEqual(bench.deleted, []);
  });
});

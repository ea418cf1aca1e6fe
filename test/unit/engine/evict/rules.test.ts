import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import type { Rules, Selection, Stop } from '#shared/eviction/policy.ts';
import { LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { RULES_MAX_AGE_MS, rulesReader } from '#shared/state/rules-store.ts';
import type { Clock } from '#shared/time/clock.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, pod, ref, rules, tolerating } from '#test/unit/eviction/builders.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';
import {
  beforeCalls,
  benchAfter,
  duePods,
  type EvictBench,
  heldUntil,
  passes,
  podsNamed,
  ruled,
  serverError,
  stopped,
} from './evict-bench.ts';

const observed: Rules = ruled({ mode: 'observe' });

/** Returns a reader of a store without a trip of the guard. */
function readerOf(clock: Clock, stored: { readonly stops?: readonly Stop[] } = {}) {
  const read = async () => ({
    orders: {
      revision: 1,
      stops: [],
      holds: [],
      policy: { text: '', read: rules.policy, revision: 1 },
      ...stored,
    },
    guard: { revision: 0, trips: [] },
    fleetRevision: 0,
  });
  return rulesReader({ rulesStore: { read }, matching: rules.matching, clock });
}

describe('the rules of a node', () => {
  test('are at least as new as the guard revision that its relay reported, before any action', async () => {
    const bench = await benchAfter([nodeDelta(1, { guardRevision: 7 })], podsNamed(1));
    const trip = { scope: 'customTaints', trippedAt: at(0), nodes: 20, outOf: 60 } as const;
    const tripped: Rules = { ...rules, trips: [trip], guardRevision: 7 };
    await bench.pass({ rules: async (_, revision = 0) => (revision < 7 ? rules : tripped) });
    assert.deepEqual(bench.deleted, []);
    assert.deepEqual(await bench.gates(), { u1: 'guard' });
  });

  test('block every eviction while the decision of the guard is not stored', async () => {
    const bench = await benchAfter([nodeDelta(1, { guardRevision: 1 })], podsNamed(1));
    const reader = readerOf(bench.clock);
    await assert.rejects(bench.pass({ rules: reader }), /decided is not stored/);
    assert.deepEqual(bench.deleted, []);
    assert.deepEqual(await bench.gates(), { u1: undefined });
  });
});

test('a stop after the clock was set back holds all pods, for any time until the clock catches up', async () => {
  const bench = await duePods(2);
  const clock = new SteppedClock(at(7_200));
  const stored: { stops?: readonly Stop[] } = {};
  const reader = readerOf(clock, stored);
  await reader(ref.cluster);
  clock.set(-3_600_000);
  stored.stops = [{ scope: 'cluster', actor: 'anna', at: clock.now(), reason: 'an incident' }];
  clock.pass(RULES_MAX_AGE_MS);
  await bench.pass({ clock, rules: reader });
  assert.deepEqual(bench.deleted, []);
  assert.deepEqual(await bench.gates(), { u1: 'stopped', u2: 'stopped' });
});

describe('a policy that excludes pods by what their records lack', () => {
  const traits = {
    annotations: { keep: 'true' },
    owner: { kind: 'CloneSet', name: 'web' },
    priorityClassName: 'system-node-critical',
  };
  const selections: readonly Selection[] = [
    { annotations: { keep: 'true' } },
    { ownerKinds: ['CloneSet'] },
    { priorityClassNames: ['system-node-critical'] },
  ];
  const excluding = (selection: Selection) => ruled({ exclude: [selection] });

  for (const selection of selections)
    passes({
      [`holds the pod that has it in the cluster, by ${Object.keys(selection)}`]: {
        pods: podsNamed(2),
        rules: excluding(selection),
        deleted: ['u2'],
        gates: { u1: 'excluded' },
        given: ({ cluster }) => cluster.putPod(livePod('u1', traits)),
      },
    });

  passes({
    'holds a pod that gets the annotation after its node was read': {
      rules: excluding({ annotations: { keep: 'true' } }),
      deleted: [],
      gates: { u1: 'excluded' },
      given: (bench) =>
        bench.before('patch', (count) => count === 1 && bench.cluster.putPod(livePod('u1', traits))),
    },
  });
});

describe('where the rules block evictions', () => {
  test('no pod is marked or deleted, and each is held once', async () => {
    const bench = await duePods(2, observed);
    await bench.pass();
    await bench.redelivered();
    const marked = [...bench.cluster.livePods.values()].filter(({ disrupted }) => disrupted);
    assert.deepEqual([marked.length, bench.deleted.length], [0, 0]);
    assert.deepEqual(await bench.gates(), { u1: 'observe', u2: 'observe' });
    assert.deepEqual(bench.armed, []);
    assert.equal(bench.logged('eviction.would-evict').length, 2);
  });

  test('a stop during a pass holds the pods that were not deleted yet', async () => {
    const bench = await duePods(3);
    bench.cluster.onDeleted = () => {
      bench.ruling = stopped;
    };
    await bench.pass();
    const deleted = bench.deleted;
    const gates = Object.values(await bench.gates());
    assert.ok(deleted.length < 3, `${deleted}`);
    assert.deepEqual(gates, Array(3 - deleted.length).fill('stopped'));
  });

  test('a pod that is released while its hold is recorded is looked at again', async () => {
    const bench = await duePods(1);
    let reads = 0;
    const again = await bench.pass({ rules: async () => (reads++ === 0 ? observed : rules) });
    assert.deepEqual(again, { againInSeconds: 0.25 });
    assert.deepEqual(await bench.evicts(), ['u1']);
  });

  test('pods of one hold share a timer for its end, for any number of passes', async () => {
    const later = pod('u2', { tolerations: [tolerating('a', 70)] });
    const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1'), later] })], podsNamed(2));
    bench.ruling = heldUntil(900);
    await bench.pass();
    await bench.evicts(at(70));
    assert.deepEqual(await bench.gates(), { u1: 'hold', u2: 'hold' });
    assert.deepEqual(bench.armed, [at(900)]);
  });

  test('a pod is retried soon when its cluster fails at the end of its hold', async () => {
    const bench = await duePods(1, heldUntil(900));
    await bench.pass();
    await bench.clock.advanceTo(at(900));
    bench.fails('any', serverError(503), 1);
    await bench.pass();
    const [, nextTryAt = Infinity] = bench.armed;
    assert.ok(nextTryAt <= at(905), 'no next try is armed');
    assert.deepEqual(await bench.evicts(nextTryAt), ['u1']);
  });

  test('an unreachable cluster is no failure, and due pods are held by their records', async () => {
    const bench = await duePods(2, stopped);
    bench.fails('any', serverError(503));
    await bench.pass();
    assert.deepEqual(await bench.gates(), { u1: 'stopped', u2: 'stopped' });
    assert.equal((await bench.stored()).node?.retry, undefined);
  });

  test('a pass without an observation holds no pod whose deadline another pass moved meanwhile', async () => {
    const patient = livePod('u1', { tolerations: [tolerating('a', 90)] });
    const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1')] })], [patient]);
    bench.ruling = stopped;
    bench.fails('any', serverError(503), 1);
    let others = 1;
    const again = await evictNode(ref, {
      ...bench,
      rules: async () => {
        if (others-- > 0) await bench.pass();
        return stopped;
      },
    });
    assert.deepEqual(again, { againInSeconds: 0.25 });
    const record = await bench.record();
    assert.deepEqual([record?.dueAt, record?.held], [at(90), undefined]);
  });
});

describe('in observe mode', () => {
  const trip = { scope: 'customTaints', trippedAt: at(0), nodes: 20, outOf: 60 } as const;
  const act = { actor: 'anna', at: at(0), reason: 'an incident' };
  const ruledBy = (policy: Partial<Rules['policy']>, more: Partial<Rules> = {}): Rules => ({
    ...observed,
    ...more,
    policy: { ...observed.policy, ...policy },
  });
  const gates: Readonly<Record<string, Rules>> = {
    guard: ruledBy({}, { trips: [trip], guardRevision: 1 }),
    hold: ruledBy({}, { holds: [{ ...act, id: 'h1', target: { kind: 'node', node: ref.node } }] }),
    stopped: ruledBy({}, { stops: [{ ...act, scope: 'fleet' }] }),
    excluded: ruledBy({ exclude: [{ namespaces: ['default'] }] }),
  };
  const eventsOf = (bench: EvictBench) =>
    bench.log.lines
      .filter(({ event }) => ['eviction.held', 'eviction.would-evict'].includes(event))
      .map(({ event, fields }) => [event, fields['by']]);

  for (const [kind, ruling] of Object.entries(gates)) {
    test(`a pod is reported as held (${kind}), and once as would-evict when nothing else holds it`, async () => {
      const bench = await duePods(1, ruling);
      assert.equal(await bench.pass(), undefined, 'nothing is left to do');
      assert.deepEqual(await bench.gates(), { u1: kind });
      assert.deepEqual(eventsOf(bench), [['eviction.held', kind]]);
      bench.ruling = { ...observed, policyRevision: 9, guardRevision: 9 };
      const deltas = { ...bench, announce: async () => undefined, leaseEpoch: async () => undefined };
      for (const sequence of [2, 3]) {
        await applyDeltas([nodeDelta(sequence)], deltas);
        await bench.evicts(at(60 + sequence));
      }
      assert.deepEqual(eventsOf(bench).slice(1), [['eviction.would-evict', undefined]]);
      assert.deepEqual(bench.causes, ['TaintwardEvictionHeld', 'TaintwardWouldEvict']);
      assert.deepEqual(bench.deleted, []);
    });

    test(`a pod that the built-in controller evicts is recorded with the gate that would have held it (${kind})`, async () => {
      const bench = await duePods(1, ruling);
      const deleted = { at: at(60), by: 'taint-manager' } as const;
      bench.cluster.putPod(livePod('u1', { terminating: true, disrupted: true, deleted }));
      await bench.pass();
      const [end] = (await bench.stored()).ended.values();
      assert.deepEqual([end?.outcome, end?.by?.kind], ['already-gone', kind]);
    });
  }

  passes({
    'a pod of an unreachable cluster is held by what is stored of it': {
      rules: gates['guard'] ?? rules,
      gates: { u1: 'guard' },
      given: (bench) => bench.fails('any', serverError(503)),
    },
  });

  test('a pod of an unreachable cluster that nothing is known to hold is not reported, and is evaluated again', async () => {
    const bench = await duePods(1, ruledBy({ exclude: [{ labels: { matchLabels: { app: 'web' } } }] }));
    bench.fails('any', serverError(503), 1);
    await bench.pass();
    assert.deepEqual(eventsOf(bench), []);
    await bench.evicts(bench.armed[0] ?? 0);
    assert.deepEqual(eventsOf(bench), [['eviction.would-evict', undefined]]);
  });

  test('a pass does not hold a pod for another gate after another pass reported it as would-evict', async () => {
    const bench = await duePods(1, observed);
    let others = 1;
    const rulesOfAnotherPass = async () => {
      if (others-- > 0) await bench.pass();
      return gates['hold'] ?? rules;
    };
    await bench.pass({ rules: rulesOfAnotherPass });
    assert.deepEqual(await bench.gates(), { u1: 'observe' });
    assert.equal(eventsOf(bench).length, 1);
  });

  test('the Eviction API is not called, and the Event says that a budget may block the eviction', async () => {
    const bench = await duePods(
      1,
      ruledBy({ method: { kind: 'evict', timeoutMs: 60_000, onTimeout: 'delete' } }),
    );
    bench.cluster.beforeRequest = (verb) => assert.notEqual(verb, 'evict');
    await bench.pass();
    assert.match(bench.cluster.events[0]?.message ?? '', /, unless a disruption budget had blocked it$/);
  });
});

/** Returns a bench whose first `times` marks wait too long; `meanwhile` runs during each wait. */
async function lateMarks(times: number, meanwhile: () => void = () => undefined) {
  const bench = await duePods(1);
  const mark = bench.cluster.markDisrupted.bind(bench.cluster);
  let reads = 0;
  bench.cluster.markDisrupted = async (...[ref, uid, now, allowed]) => {
    reads += 1;
    if (reads > times) return mark(ref, uid, now, allowed);
    meanwhile();
    assert.equal(await allowed?.(), bench.clock.now() + 250);
    throw new LateCallError('it could not be sent in time');
  };
  return bench;
}

test('marks and deletes a pod in its slot although its mark was late repeatedly', async () => {
  const bench = await lateMarks(9);
  assert.deepEqual(await bench.evicts(), ['u1']);
});

test('retries the eviction of a pod whose mark was late ten times in a pass', async () => {
  const bench = await lateMarks(10);
  assert.deepEqual(await bench.evicts(), []);
  assert.match((await bench.retry())?.error ?? '', /late, 10 times/);
  assert.deepEqual(await bench.evicts(bench.armed.at(-1)), ['u1']);
});

test('does not try again a late mark of a pass that another pod ended', async () => {
  const bench = await duePods(2);
  const mark = bench.cluster.markDisrupted.bind(bench.cluster);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let late = 0;
  bench.cluster.markDisrupted = async (...[ref, uid, now, allowed]) => {
    if (uid === 'u1') {
      setImmediate(resolve);
      throw serverError(429);
    }
    await ended;
    if (++late > 1) return mark(ref, uid, now, allowed);
    throw new LateCallError('it could not be sent in time');
  };
  assert.deepEqual(await bench.evicts(), []);
  assert.equal(late, 1);
});

test('neither marks nor deletes a pod whose mark was late after a stop', async () => {
  const bench = await lateMarks(1, () => {
    bench.ruling = stopped;
  });
  assert.deepEqual(await bench.evicts(), []);
  assert.ok(!bench.isMarked);
  assert.deepEqual(await bench.gates(), { u1: 'stopped' });
});

test('marks a pod with one request after a long wait while the rules, read again meanwhile, allow it', async () => {
  const bench = await duePods(1);
  let reads = 0;
  beforeCalls(bench.cluster, 'markDisrupted', async (count) => {
    reads = count;
    await bench.clock.advanceTo(at(70));
    bench.ruling = { ...rules };
  });
  await bench.pass();
  assert.deepEqual([reads, bench.deleted], [1, ['u1']]);
});

test('does not send a mark after a stop', async () => {
  const bench = await duePods(1);
  beforeCalls(bench.cluster, 'markDisrupted', () => Object.assign(bench, { ruling: stopped }));
  assert.deepEqual(await bench.evicts(), []);
  assert.ok(!bench.isMarked);
});

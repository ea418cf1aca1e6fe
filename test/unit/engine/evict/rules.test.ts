import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import type { Rules, Selection, Stop } from '#shared/eviction/policy.ts';
import { RULES_MAX_AGE_MS, rulesReader } from '#shared/state/rules-store.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, pod, ref, rules, tolerating } from '#test/unit/eviction/builders.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';
import { benchAfter, deletedFrom, type EvictBench, podsNamed, serverError } from './evict-bench.ts';

const observed: Rules = { ...rules, policy: { ...rules.policy, mode: 'observe' } };
const stopped: Rules = {
  ...rules,
  stops: [{ scope: 'fleet', who: 'anna', at: at(0), why: 'an incident' }],
};

const withPods = (count: number) =>
  benchAfter([nodeDelta(1, { pods: podsNamed(count).map(({ uid }) => pod(uid)) })], podsNamed(count));

const heldIn = async ({ store, clock }: EvictBench) =>
  [...(await store.load(ref, clock.now())).scheduled.values()].map(({ uid, held }) => [uid, held?.by.kind]);

describe('the rules of a node', () => {
  test('are at least as new as the guard revision that its relay reported, before any action', async () => {
    const bench = await benchAfter([nodeDelta(1, { guardRevision: 7 })], podsNamed(1));
    const trip = { scope: 'people', trippedAt: at(0), nodes: 20, outOf: 60 } as const;
    const tripped: Rules = { ...rules, trips: [trip], guardRevision: 7 };
    await evictNode(ref, { ...bench, rules: async (_, revision = 0) => (revision < 7 ? rules : tripped) });
    assert.deepEqual(deletedFrom(bench), []);
    assert.deepEqual(await heldIn(bench), [['u1', 'guard']]);
  });

  test('block every eviction while the decision of the guard is not stored', async () => {
    const bench = await benchAfter([nodeDelta(1, { guardRevision: 1 })], podsNamed(1));
    const read = async () => ({
      orders: { revision: 1, holds: [], policy: { text: '', read: rules.policy, revision: 1 } },
      guard: { revision: 0, trips: [] },
      fleetRevision: 0,
    });
    const reader = rulesReader({ rulesStore: { read }, matching: rules.matching, clock: bench.clock });
    await assert.rejects(evictNode(ref, { ...bench, rules: reader }), /decided is not stored/);
    assert.deepEqual(deletedFrom(bench), []);
    assert.deepEqual(await heldIn(bench), [['u1', undefined]]);
  });
});

describe('a stop after the clock was set back', () => {
  test('holds all pods, for any time until the clock catches up', async () => {
    const bench = await withPods(2);
    const clock = new SteppedClock(at(7_200));
    let stop: { readonly stop?: Stop } = {};
    const read = async () => ({
      orders: { revision: 1, holds: [], policy: { text: '', read: rules.policy, revision: 1 }, ...stop },
      guard: { revision: 0, trips: [] },
      fleetRevision: 0,
    });
    const reader = rulesReader({ rulesStore: { read }, matching: rules.matching, clock });
    await reader(ref.cluster);
    clock.set(-3_600_000);
    stop = { stop: { scope: 'cluster', who: 'anna', at: clock.now(), why: 'an incident' } };
    clock.pass(RULES_MAX_AGE_MS);
    await evictNode(ref, { ...bench, clock, rules: reader });
    assert.deepEqual(deletedFrom(bench), []);
    assert.deepEqual(await heldIn(bench), [
      ['u1', 'stopped'],
      ['u2', 'stopped'],
    ]);
  });
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
  const excluding = (selection: Selection): Rules => ({
    ...rules,
    policy: { ...rules.policy, exclude: [selection] },
  });

  for (const selection of selections) {
    const [by] = Object.keys(selection);
    test(`holds the pod that has it in the cluster, by ${by}`, async () => {
      const bench = await withPods(2);
      bench.cluster.putPod(livePod('u1', traits));
      bench.ruling = excluding(selection);
      await evictNode(ref, bench);
      assert.deepEqual(deletedFrom(bench), ['u2']);
      assert.deepEqual(await heldIn(bench), [['u1', 'excluded']]);
    });
  }

  test('holds a pod that gets the annotation after its node was read', async () => {
    const bench = await withPods(1);
    bench.ruling = excluding({ annotations: { keep: 'true' } });
    let isLate = true;
    bench.cluster.beforeRequest = (verb) => {
      if (verb !== 'patch' || !isLate) return;
      isLate = false;
      bench.cluster.putPod(livePod('u1', traits));
    };
    await evictNode(ref, bench);
    assert.equal(isLate, false);
    assert.deepEqual(deletedFrom(bench), []);
    assert.deepEqual(await heldIn(bench), [['u1', 'excluded']]);
  });
});

describe('where the rules block evictions', () => {
  test('no pod is marked or deleted, and each is held once', async () => {
    const bench = await withPods(2);
    bench.ruling = observed;
    await evictNode(ref, bench);
    await evictNode(ref, bench, true);
    const marked = [...bench.cluster.livePods.values()].filter(({ disrupted }) => disrupted);
    assert.deepEqual([marked.length, deletedFrom(bench).length], [0, 0]);
    assert.deepEqual(await heldIn(bench), [
      ['u1', 'observe'],
      ['u2', 'observe'],
    ]);
    assert.deepEqual(bench.armed, []);
    assert.equal(bench.log.lines.filter(({ event }) => event === 'eviction.would-evict').length, 2);
  });

  test('a stop during a pass holds the pods that were not deleted yet', async () => {
    const bench = await withPods(3);
    bench.cluster.onDeleted = () => {
      bench.ruling = stopped;
    };
    await evictNode(ref, bench);
    const deleted = deletedFrom(bench);
    const held = await heldIn(bench);
    assert.ok(deleted.length < 3, `${deleted}`);
    assert.equal(held.length, 3 - deleted.length);
    assert.ok(held.every(([, kind]) => kind === 'stopped'));
  });

  test('a pod that is released while its hold is recorded is looked at again', async () => {
    const bench = await withPods(1);
    let asked = 0;
    const again = await evictNode(ref, { ...bench, rules: async () => (asked++ === 0 ? observed : rules) });
    assert.deepEqual(again, { againInSeconds: 0.25 });
    await evictNode(ref, bench);
    assert.deepEqual(deletedFrom(bench), ['u1']);
  });

  test('pods of one hold share a timer for its end, for any number of passes', async () => {
    const later = pod('u2', { tolerations: [tolerating('a', 70)] });
    const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1'), later] })], podsNamed(2));
    const hold = { id: 'h1', target: { kind: 'node', node: ref.node }, until: at(900) } as const;
    bench.ruling = { ...rules, holds: [{ ...hold, who: 'anna', at: at(0), why: 'an incident' }] };
    await evictNode(ref, bench);
    await bench.clock.advanceTo(at(70));
    await evictNode(ref, bench);
    assert.deepEqual(await heldIn(bench), [
      ['u1', 'hold'],
      ['u2', 'hold'],
    ]);
    assert.deepEqual(bench.armed, [at(900)]);
  });

  test('a pod is retried soon when its cluster fails at the end of its hold', async () => {
    const bench = await withPods(1);
    const hold = { id: 'h1', target: { kind: 'node', node: ref.node }, until: at(900) } as const;
    bench.ruling = { ...rules, holds: [{ ...hold, who: 'anna', at: at(0), why: 'an incident' }] };
    await evictNode(ref, bench);
    await bench.clock.advanceTo(at(900));
    let outages = 1;
    bench.cluster.beforeRequest = () => {
      if (outages-- > 0) throw serverError(503);
    };
    await evictNode(ref, bench);
    const [, nextTryAt = Infinity] = bench.armed;
    assert.ok(nextTryAt <= at(905), 'no next try is armed');
    await bench.clock.advanceTo(nextTryAt);
    await evictNode(ref, bench);
    assert.deepEqual(deletedFrom(bench), ['u1']);
  });

  test('an unreachable cluster is no failure, and due pods are held by their records', async () => {
    const bench = await withPods(2);
    bench.ruling = stopped;
    bench.cluster.beforeRequest = () => {
      throw serverError(503);
    };
    await evictNode(ref, bench);
    assert.deepEqual(await heldIn(bench), [
      ['u1', 'stopped'],
      ['u2', 'stopped'],
    ]);
    assert.equal((await bench.store.load(ref, bench.clock.now())).node?.retry, undefined);
  });

  test('a pass without an observation holds no pod whose deadline another pass moved meanwhile', async () => {
    const patient = livePod('u1', { tolerations: [tolerating('a', 90)] });
    const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1')] })], [patient]);
    bench.ruling = stopped;
    let outages = 1;
    bench.cluster.beforeRequest = () => {
      if (outages-- > 0) throw serverError(503);
    };
    let others = 1;
    const again = await evictNode(ref, {
      ...bench,
      rules: async () => {
        if (others-- > 0) await evictNode(ref, bench);
        return stopped;
      },
    });
    assert.deepEqual(again, { againInSeconds: 0.25 });
    const { scheduled } = await bench.store.load(ref, bench.clock.now());
    assert.deepEqual(
      [...scheduled.values()].map(({ fireAt, held }) => [fireAt, held]),
      [[at(90), undefined]],
    );
  });
});

describe('in observe mode', () => {
  const trip = { scope: 'people', trippedAt: at(0), nodes: 20, outOf: 60 } as const;
  const act = { who: 'anna', at: at(0), why: 'an incident' };
  const by = (policy: Partial<Rules['policy']>, more: Partial<Rules> = {}): Rules => ({
    ...observed,
    ...more,
    policy: { ...observed.policy, ...policy },
  });
  const gates: Readonly<Record<string, Rules>> = {
    guard: by({}, { trips: [trip], guardRevision: 1 }),
    hold: by({}, { holds: [{ ...act, id: 'h1', target: { kind: 'node', node: ref.node } }] }),
    stopped: by({}, { stops: [{ ...act, scope: 'fleet' }] }),
    excluded: by({ exclude: [{ namespaces: ['default'] }] }),
  };
  const eventsOf = (bench: EvictBench) =>
    bench.log.lines
      .filter(({ event }) => ['eviction.held', 'eviction.would-evict'].includes(event))
      .map(({ event, fields }) => [event, fields['by']]);

  for (const [kind, ruling] of Object.entries(gates)) {
    test(`a pod is reported as held (${kind}), and once as would-evict when nothing else holds it`, async () => {
      const bench = await withPods(1);
      bench.ruling = ruling;
      assert.equal(await evictNode(ref, bench), undefined, 'nothing is left to do');
      assert.deepEqual(await heldIn(bench), [['u1', kind]]);
      assert.deepEqual(eventsOf(bench), [['eviction.held', kind]]);
      bench.ruling = { ...observed, policyRevision: 9, guardRevision: 9 };
      const deltas = { ...bench, announce: async () => undefined, leaseEpoch: async () => undefined };
      for (const sequence of [2, 3]) {
        await applyDeltas([nodeDelta(sequence)], deltas);
        await bench.clock.advanceTo(at(60 + sequence));
        await evictNode(ref, bench);
      }
      assert.deepEqual(eventsOf(bench).slice(1), [['eviction.would-evict', undefined]]);
      assert.deepEqual(
        bench.cluster.events.map(({ reason }) => reason),
        ['TaintwardEvictionHeld', 'TaintwardWouldEvict'],
      );
      assert.deepEqual(deletedFrom(bench), []);
    });

    test(`a pod that the built-in controller evicts is recorded with the gate that would have held it (${kind})`, async () => {
      const bench = await withPods(1);
      bench.ruling = ruling;
      const deleted = { at: at(60), by: 'taint-manager' } as const;
      bench.cluster.putPod(livePod('u1', { terminating: true, disrupted: true, deleted }));
      await evictNode(ref, bench);
      const [end] = (await bench.store.load(ref, at(60))).ended.values();
      assert.deepEqual([end?.outcome, end?.by?.kind], ['gone', kind]);
    });
  }

  test('a pod of an unreachable cluster is held by what is stored of it', async () => {
    const bench = await withPods(1);
    bench.ruling = gates['guard'] ?? rules;
    bench.cluster.beforeRequest = () => {
      throw serverError(503);
    };
    await evictNode(ref, bench);
    assert.deepEqual(await heldIn(bench), [['u1', 'guard']]);
  });

  test('a pod of an unreachable cluster that nothing is known to hold is not reported, and is evaluated again', async () => {
    const bench = await withPods(1);
    bench.ruling = by({ exclude: [{ labels: { matchLabels: { app: 'web' } } }] });
    let outages = 1;
    bench.cluster.beforeRequest = () => {
      if (outages-- > 0) throw serverError(503);
    };
    await evictNode(ref, bench);
    assert.deepEqual(eventsOf(bench), []);
    await bench.clock.advanceTo(bench.armed[0] ?? 0);
    await evictNode(ref, bench);
    assert.deepEqual(eventsOf(bench), [['eviction.would-evict', undefined]]);
  });

  test('a pass does not hold a pod for another gate after another pass reported it as would-evict', async () => {
    const bench = await withPods(1);
    bench.ruling = observed;
    let others = 1;
    const rulesOfAnotherPass = async () => {
      if (others-- > 0) await evictNode(ref, bench);
      return gates['hold'] ?? rules;
    };
    await evictNode(ref, { ...bench, rules: rulesOfAnotherPass });
    assert.deepEqual(await heldIn(bench), [['u1', 'observe']]);
    assert.equal(eventsOf(bench).length, 1);
  });

  test('the Eviction API is not called, and the Event says that a budget may block the eviction', async () => {
    const bench = await withPods(1);
    bench.ruling = by({ method: { kind: 'evict', deadlineMs: 60_000, afterDeadline: 'delete' } });
    bench.cluster.beforeRequest = (verb) => assert.notEqual(verb, 'evict');
    await evictNode(ref, bench);
    assert.match(bench.cluster.events[0]?.message ?? '', /, unless a disruption budget had blocked it$/);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Delta, NodeDelta, PodFacts } from '#shared/eviction/facts.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { type EvictionRecord, ending, isAnnounced } from '#shared/eviction/records.ts';
import {
  after,
  at,
  changesNothing,
  committed,
  emptyPartition,
  forecast,
  happened,
  nodeDelta,
  planned,
  pod,
  podDelta,
  podGone,
  recordIn,
  ref,
  rules,
  taint,
  tolerating,
} from './builders.ts';

const reasons = (decided: ReturnType<typeof planned>) => decided.cancel.map(({ cancelled }) => cancelled);
const untaint = (sequence: number, fields: Partial<NodeDelta> = {}) =>
  nodeDelta(sequence, { taints: [], ...fields });
const absent = (sequence: number) => nodeDelta(sequence, { pods: [] });
const deleted = (sequence: number, fields: Partial<NodeDelta> = {}) =>
  nodeDelta(sequence, { deletedAt: at(20), ...fields });
/** Pod `u1`, which tolerates the taint `a` for these seconds, or indefinitely. */
const patient = (seconds?: number) => pod('u1', { tolerations: [tolerating('a', seconds)] });
const bound = (second: number, uid?: string) => pod(uid, { podSince: at(second) });
const scheduled = after(nodeDelta(1));
const record = recordIn(scheduled) as EvictionRecord;
const withRecord = (fields: Partial<EvictionRecord>) => ({
  ...scheduled,
  scheduled: new Map([[record.uid, { ...record, ...fields }]]),
});

/** Deltas in the order of their delivery, and the deadline or the end of a pod, `u1` unless named. */
const FORECASTS: Readonly<Record<string, readonly [readonly Delta[], forecast: string, uid?: string]>> = {
  'a pod newer than the taint counts from its binding': [[podDelta(41, { pod: bound(40) })], 'due at 100'],
  'a pod keeps its stored binding time when a later relay reports another': [
    [nodeDelta(1), podDelta(20, { version: { epoch: 2, sequence: 1 }, pod: bound(1) })],
    'due at 60',
  ],
  'a deleted pod does not affect other pods of its node': [
    [nodeDelta(1, { pods: [pod('u1'), pod('u2')] }), podGone(2)],
    'due at 60',
    'u2',
  ],
  'a deleted pod leaves a tombstone when it was scheduled': [[nodeDelta(1), podGone(20)], 'gone'],
  'a deleted pod ends for any delta, because UIDs are never reused': [[podDelta(5), podGone(3)], 'gone'],
  'a taint that returns to a node whose deltas list no pods schedules them again': [
    [nodeDelta(1), untaint(20, { pods: [] }), nodeDelta(30)],
    'due at 80',
  ],
  'a late delta does not restore a removed taint': [[nodeDelta(1), untaint(20), podDelta(10)], 'cancelled'],
  'a late delta does not remove a taint': [[nodeDelta(20), untaint(10)], 'due at 60'],
  'a late pod delta does not undo the confirmation of a newer node delta': [
    [nodeDelta(1), nodeDelta(20), podDelta(10, { pod: patient() })],
    'due at 60',
  ],
  'a late node delta does not undo the confirmation of a newer pod delta': [
    [nodeDelta(1), podDelta(20), nodeDelta(10, { pods: [patient()] })],
    'due at 60',
  ],
  'a late delta does not schedule a pod that a newer one did not list': [[absent(20), podDelta(10)], 'none'],
  'a late delta still decides other pods, by the newer facts of the node': [
    [podDelta(20, { taints: [taint('a', 15)], pod: pod('u2') }), podDelta(10)],
    'due at 75',
  ],
  'a late delta does not end a pod that appeared later': [[podDelta(20), absent(10)], 'due at 60'],
  'a delta of a relay that lost its lease is older than all deltas of the next relay': [
    [nodeDelta(2, { version: { epoch: 2, sequence: 1 } }), untaint(99)],
    'due at 60',
  ],
  'a passed deadline is set to the time of the observation': [[nodeDelta(100)], 'due at 100'],
  'a passed deadline is not moved by later deltas': [
    [nodeDelta(100), nodeDelta(200), podDelta(300)],
    'due at 100',
  ],
  'a passed deadline replaces a later one': [[nodeDelta(1), podDelta(50, { pod: patient(10) })], 'due at 50'],
  'a deadline is never earlier than the rule, even when it replaces an earlier deadline': [
    [nodeDelta(1), podDelta(100, { pod: patient(90) })],
    'due at 90',
  ],
  'a deleted node still affects a pod that was bound before the deletion and reported later': [
    [nodeDelta(1), deleted(20), podDelta(30, { deletedAt: at(20), pod: bound(10, 'u2') })],
    'due at 70',
    'u2',
  ],
  'a deleted node does not affect pods that were bound after the deletion': [
    [nodeDelta(1), deleted(20), podDelta(30, { deletedAt: at(20), pod: bound(25, 'u2') })],
    'none',
    'u2',
  ],
  'a deleted node keeps stored, unseen taints': [[nodeDelta(1), deleted(21, { taints: [] })], 'due at 60'],
  'a deleted node keeps no taints of older deltas': [[deleted(20, { taints: [] }), nodeDelta(19)], 'none'],
  'a returning node continues its countdowns': [[nodeDelta(1), deleted(20), nodeDelta(40)], 'due at 60'],
  'a returning node cancels when it is untainted': [[nodeDelta(1), deleted(20), untaint(40)], 'cancelled'],
};
for (const [name, [deltas, expected, uid]] of Object.entries(FORECASTS))
  test(name, () => assert.equal(forecast(after(...deltas), uid), expected));

describe('a node delta', () => {
  test('schedules the pods that do not tolerate its taints indefinitely, at their deadlines', () => {
    const pods = [
      pod('u1'),
      pod('u2', { tolerations: [tolerating('a', 30)] }),
      pod('u3', { tolerations: [tolerating('a')] }),
      pod('u4', { tolerations: [] }),
    ];
    const decided = planned(emptyPartition, nodeDelta(1, { pods }));
    assert.deepEqual(
      decided.schedule.map(({ uid, fireAt }) => [uid, fireAt]),
      [
        ['u1', at(60)],
        ['u2', at(30)],
        ['u4', at(1)],
      ],
    );
    assert.deepEqual(decided.arm, [at(1), at(30), at(60)]);
    assert.equal(decided.live, true);
  });

  test('counts a binding in the future from the present, and moves a deadline that was stored so', () => {
    const inYear2999 = Date.UTC(2999, 0);
    const pods = [pod('u1', { podSince: inYear2999 }), pod('u2', { tolerations: [], podSince: inYear2999 })];
    const told = planned(emptyPartition, nodeDelta(5, { pods }));
    assert.deepEqual(
      told.schedule.map(({ uid, fireAt, podSince }) => [uid, fireAt, podSince]),
      [
        ['u1', at(65), at(5)],
        ['u2', at(5), at(5)],
      ],
    );
    const stored = withRecord({ podSince: inYear2999, fireAt: inYear2999 + 60_000 });
    const { reschedule } = planned(stored, nodeDelta(20));
    assert.deepEqual(
      reschedule.map(({ fireAt, podSince }) => [fireAt, podSince]),
      [[at(80), at(20)]],
    );
  });

  test('cancels the evictions of an untainted node, also without its pods, which is live no longer', () => {
    for (const delta of [untaint(20), untaint(20, { pods: [] })]) {
      const decided = planned(scheduled, delta);
      assert.deepEqual([reasons(decided), decided.live, decided.arm], [['taint-removed'], false, []]);
    }
  });

  test('cancels for a deleted pod where it does not list the pod, or the deleted node has no taints', () => {
    for (const delta of [absent(20), deleted(20, { taints: [], pods: [] })])
      assert.deepEqual(reasons(planned(scheduled, delta)), ['pod-gone']);
  });

  test('does not end a pod that another relay reported after the listing', () => {
    const byOldRelay = podDelta(50, { pod: bound(50) });
    const listedBefore = nodeDelta(49, { version: { epoch: 2, sequence: 1 }, pods: [] });
    const byNewRelay = podDelta(51, { version: { epoch: 2, sequence: 2 }, pod: bound(50) });
    assert.equal(forecast(after(byOldRelay, listedBefore)), 'cancelled');
    assert.equal(forecast(after(byOldRelay, listedBefore, byNewRelay)), 'due at 110');
  });

  test('without news is stored on the node only, so that older deltas are recognized', () => {
    const decided = planned(scheduled, nodeDelta(20));
    assert.equal(decided.nodeChanged, false);
    assert.deepEqual(decided.node?.podsVersion, { epoch: 1, sequence: 20 });
    assert.deepEqual([decided.decisions, decided.arm], [[], []]);
  });
});

describe('a delta of a relay that lost its lease', () => {
  const moment = { leaseEpoch: 2 };

  test('rearms the timers of its pods, and decides nothing', () => {
    const two = after(nodeDelta(1, { pods: [pod('u1'), pod('u2')] }));
    const decided = (delta: Delta) =>
      planned(two, delta, moment).decisions.map((each) => [each.kind, 'record' in each && each.record.uid]);
    assert.deepEqual(decided(podDelta(20)), [['rearm', 'u1']]);
    assert.deepEqual(decided(nodeDelta(20)), [
      ['rearm', 'u1'],
      ['rearm', 'u2'],
    ]);
    assert.deepEqual(decided(podDelta(20, { pod: pod('u3') })), []);
    assert.equal(planned(emptyPartition, nodeDelta(1), moment).nodeChanged, false);
  });
});

describe('a pod delta', () => {
  test('records the owner of its pod', () => {
    const owner = { kind: 'ReplicaSet', name: 'web-1' };
    assert.deepEqual(recordIn(after(podDelta(1, { pod: pod('u1', { owner }) })))?.owner, owner);
  });

  test('confirms the record, and keeps the progress of a due pod', () => {
    const trials = { failure: { since: at(60), error: 'refused' }, turnAt: at(65), notBefore: at(62) };
    for (const fields of [{}, trials]) {
      const confirmed = { ...record, ...fields, version: { epoch: 1, sequence: 70 } };
      assert.deepEqual(planned(withRecord(fields), podDelta(70)).confirm, [confirmed]);
    }
  });

  test('moves the deadline in both directions, and keeps the start of the eviction', () => {
    for (const seconds of [90, 30]) {
      const { reschedule } = planned(scheduled, podDelta(20, { pod: patient(seconds) }));
      assert.deepEqual(
        reschedule.map(({ fireAt, startedAt }) => [fireAt, startedAt]),
        [[at(seconds), at(1)]],
      );
    }
  });

  test('cancels when the pod tolerates the taint indefinitely', () => {
    assert.deepEqual(reasons(planned(scheduled, podDelta(20, { pod: patient() }))), ['tolerated-forever']);
  });
});

describe('a deleted pod', () => {
  test('changes nothing on a node that never scheduled it', () => {
    assert.equal(changesNothing(planned(after(absent(1)), podGone(2))), true);
  });

  test('is announced only before its deadline, because a later deletion looks like an eviction', () => {
    const announcedAt = (second: number) =>
      planned(scheduled, podGone(second)).cancel.map((end) => isAnnounced(end, at(second)));
    assert.deepEqual([announcedAt(20), announcedAt(60)], [[true], [false]]);
  });
});

describe('an end that is delivered again', () => {
  const before = (delta: Delta, ...deltas: readonly Delta[]) =>
    planned(after(nodeDelta(1), ...deltas), delta).cancelledBefore.map(({ cancelled }) => cancelled);
  const podless = (sequence: number) => untaint(sequence, { pods: [] });

  test('is announced again by its own delta, and by no other', () => {
    for (const delta of [absent, podless, podGone]) {
      assert.equal(before(delta(20), delta(20)).length, 1);
      assert.deepEqual(before(delta(30), delta(20)), []);
    }
    assert.deepEqual(before(podless(30), absent(20)), []);
  });

  test('is announced for an overdue pod whose taint was removed, and not for a missing pod', () => {
    assert.deepEqual(before(podless(100), podless(100)), ['taint-removed']);
    assert.deepEqual(before(absent(100), absent(100)), []);
    assert.deepEqual(before(podGone(100), podGone(100)), []);
    const [end] = planned(scheduled, podless(100)).cancel;
    assert.ok(end && isAnnounced(end, at(100)));
  });
});

describe('a repeated delta', () => {
  test('does not schedule a pod again whose eviction ended as would-have', () => {
    const partition = after(nodeDelta(1), nodeDelta(20));
    const would = { ...ending(record, { outcome: 'would-have' }), endedAt: at(60) };
    const observed = { ...partition, scheduled: new Map(), ended: new Map([[record.uid, would]]) };
    assert.deepEqual(planned(observed, nodeDelta(20)).decisions, []);
  });

  test('completes an interrupted commit, which writes the node last', () => {
    const pods = [pod('u1'), pod('u2')];
    const first = planned(emptyPartition, nodeDelta(1, { pods }));
    const [half] = first.schedule;
    assert.ok(half);
    const partition = { ...emptyPartition, revision: 1, scheduled: new Map([[half.uid, half]]) };
    const again = planned(partition, nodeDelta(1, { pods }));
    assert.deepEqual(
      again.schedule.map(({ uid }) => uid),
      ['u2'],
    );
    assert.deepEqual(again.arm, [at(60)]);
  });
});

test('a late delta still ends the wait of its node for an answer', () => {
  const partition = after(nodeDelta(20));
  const retry = { attempts: 1, nextTryAt: at(100), since: at(60), error: 'no', everything: true };
  assert.ok(partition.node);
  const failing = { ...partition, node: { ...partition.node, outage: { ...retry, triedAt: at(59) } } };
  const decided = planned(failing, nodeDelta(10, { wake: true, answeredAt: at(65) }), { now: at(70) });
  assert.equal(decided.node?.outage?.nextTryAt, at(70));
});

test('a canceled eviction leaves no tombstone, so that a returning taint schedules the pod again', () => {
  const partition = after(nodeDelta(1), untaint(20), nodeDelta(40, { taints: [taint('a', 40)] }));
  assert.equal(forecast(partition), 'due at 100');
  assert.equal(recordIn(partition)?.startedAt, at(40));
});

test('an overdue pod gets a new timer from every resync after a minute, and immediately after a gap', () => {
  const armedAt = (seconds: number, wake: boolean) =>
    planned(scheduled, nodeDelta(60 + seconds, { wake })).arm;
  assert.deepEqual(armedAt(60, false), []);
  for (const seconds of [61, 86_400]) assert.deepEqual(armedAt(seconds, false), [at(60)]);
  for (const seconds of [0, 86_400]) assert.deepEqual(armedAt(seconds, true), [at(60)]);
});

describe('a deleted node', () => {
  test('keeps its taints and the deadlines of its pods, also when the relay never saw a taint', () => {
    for (const delta of [deleted(20), deleted(21, { taints: [] })]) {
      const decided = planned(scheduled, delta);
      assert.deepEqual([decided.decisions, decided.live], [[], true]);
    }
  });

  test('loses its taints with its last pod', () => {
    const partition = after(nodeDelta(1), deleted(20), podGone(30, { deletedAt: at(20) }));
    const decided = planned(partition, deleted(31, { pods: [] }));
    assert.deepEqual([decided.node?.taints, decided.live], [[], false]);
  });
});

describe('a held pod', () => {
  const observed: Rules = { ...rules, policy: { ...rules.policy, mode: 'observe' } };
  const held = { by: { kind: 'observe' }, since: at(60) } as const;
  const partition = withRecord({ held });
  const heard = (delta: Delta, governing: Rules) => planned(partition, delta, {}, governing);
  const ranked = nodeDelta(120, { pods: [pod('u1', { rank: 100 })], wake: true });

  test('stays held while its gate may hold, with and without a wake', () => {
    const decided = heard(ranked, observed);
    assert.deepEqual([decided.free, decided.arm], [[], []]);
    assert.equal(recordIn(committed(partition, heard(podDelta(121), observed)))?.held?.since, at(60));
  });

  test('is released in its slot, by its rank and the release rate, when no gate remains', () => {
    const decided = heard(ranked, { ...rules, policy: { ...rules.policy, drain: 10 } });
    assert.deepEqual(decided.free, [{ ...record, notBefore: at(120 + 100 / 10), drains: true }]);
    assert.deepEqual(decided.arm, [at(130)]);
  });

  test('is released immediately when it has no rank, by a delta of its node, and not by its own delta', () => {
    assert.deepEqual(heard(nodeDelta(120), rules).arm, [at(120)]);
    const { free, confirm } = heard(podDelta(121), rules);
    assert.deepEqual([free, confirm.map((each) => each.held)], [[], [held]]);
  });

  test('stays a released pod until its record ends, also with another deadline', () => {
    const freed = committed(partition, heard(ranked, rules));
    const moved = committed(freed, planned(freed, podDelta(121, { pod: patient(300) })));
    const found = recordIn(moved);
    assert.deepEqual([found?.drains, found?.notBefore], [true, undefined]);
    assert.notEqual(found?.fireAt, record.fireAt);
  });

  test('keeps its slot when it is delivered again', () => {
    const freed = committed(partition, heard(ranked, rules));
    const again = planned(freed, ranked, {}, rules);
    assert.deepEqual([again.free, again.arm], [[], [at(122)]]);
    assert.equal(recordIn(committed(freed, planned(freed, podDelta(121))))?.notBefore, at(122));
  });

  test('does not fail for the time in which it was not tried', () => {
    const failure = { since: at(30), error: 'refused' };
    const [freed] = planned(withRecord({ held, failure }), ranked).free;
    assert.equal(freed?.failure?.since, at(30 + (120 - 60)));
  });

  test('with a gate for its taint is evaluated again when its node has another taint or its tolerations change', () => {
    const by = { kind: 'excluded', revision: 1, guardRevision: 0 } as const;
    const excluding = withRecord({ held: { by, since: at(60), until: at(500) } });
    const another = nodeDelta(120, { taints: [taint('a'), taint('b', 120)] });
    for (const [delta, until, armed] of [
      [another, at(120), [at(120)]],
      [podDelta(120), at(120), [at(120)]],
      [nodeDelta(120), at(500), []],
    ] as const) {
      const decided = planned(excluding, delta);
      assert.deepEqual([recordIn(committed(excluding, decided))?.held?.until, decided.arm], [until, armed]);
    }
  });

  test('with a hold is evaluated again when the pod changes, because the hold may be on its owner', () => {
    const keeping = withRecord({ held: { by: { kind: 'hold', id: 'h1' }, since: at(60) } });
    const holding: Rules = {
      ...rules,
      holds: [{ id: 'h1', who: 'anna', at: 0, why: 'x', target: { kind: 'node', node: ref.node } }],
    };
    const untilIn = (delta: Delta) =>
      recordIn(committed(keeping, planned(keeping, delta, {}, holding)))?.held?.until;
    assert.equal(untilIn(podDelta(120)), at(120));
    assert.equal(untilIn(nodeDelta(120)), undefined);
  });

  test('gets another deadline as any pod does, and is held no longer', () => {
    const [moved] = heard(nodeDelta(120, { pods: [patient(600)] }), observed).reschedule;
    assert.deepEqual([moved?.fireAt, moved?.held], [at(600), undefined]);
  });
});

describe('a pod that another actor deleted', () => {
  type Actor = 'taint-manager' | 'other';
  const gone = (uid: string, second: number, by: Actor, fields?: Partial<PodFacts>) => ({
    ...{ ...pod(uid, fields), deleted: { at: at(second), by } },
  });
  const podGoneBy = (sequence: number, by: Actor, fields?: Partial<PodFacts>) =>
    podGone(sequence, { deleted: gone('u1', sequence, by, fields) });

  for (const by of ['taint-manager', 'other'] as const) {
    test(`ends as gone, with actor and time: ${by}`, () => {
      const told = [podGoneBy(40, by), nodeDelta(40, { pods: [], deleted: [gone('u1', 40, by)] })];
      for (const delta of told) {
        const [end] = planned(scheduled, delta).cancel;
        assert.deepEqual([end?.outcome, end?.deleted], ['gone', { at: at(40), by }]);
        assert.deepEqual([end?.fireAt, end?.startedAt], [at(60), at(1)]);
      }
    });
  }

  test('is no canceled eviction to announce when another taint manager evicted it', () => {
    const announced = (by: Actor) =>
      planned(scheduled, podGoneBy(40, by)).cancel.map((end) => isAnnounced(end, at(40)));
    assert.deepEqual([announced('taint-manager'), announced('other')], [[false], [true]]);
  });

  test('is recorded also for a relay that lost its lease', () => {
    const [end] = planned(scheduled, podGoneBy(40, 'other'), { leaseEpoch: 2 }).cancel;
    assert.equal(end?.deleted?.by, 'other');
  });

  test('gets an end with our deadline when another taint manager evicted it before it was scheduled', () => {
    const told = [
      podGoneBy(3, 'taint-manager', { tolerations: [] }),
      nodeDelta(3, { pods: [], deleted: [gone('u1', 2, 'taint-manager', { tolerations: [] })] }),
    ];
    for (const delta of told) {
      const { elsewhere, decisions } = planned(emptyPartition, delta);
      const ends = elsewhere.map(({ outcome, fireAt, startedAt }) => [outcome, fireAt, startedAt]);
      assert.deepEqual([ends, decisions.length], [[['gone', at(0), undefined]], 1]);
      assert.equal(elsewhere[0]?.reasons.map(({ taint }) => taint.key).join(), 'a');
    }
  });

  test('gets an end without deadline when another taint manager evicted it and we would not', () => {
    const delta = podGoneBy(3, 'taint-manager', { tolerations: [tolerating('a')] });
    const [end] = planned(emptyPartition, delta).elsewhere;
    assert.deepEqual([end?.reasons, end?.fireAt], [[], 8.64e15]);
  });

  test('gets no end if it was never scheduled and another actor deleted it, or its node had no taints', () => {
    assert.deepEqual(planned(emptyPartition, podGoneBy(3, 'other')).decisions, []);
    const untainted = podGone(3, { taints: [], deleted: gone('u1', 3, 'taint-manager') });
    assert.deepEqual(planned(emptyPartition, untainted).elsewhere, []);
  });

  test('stays evicted by us after our eviction', () => {
    const done = happened(scheduled, 'u1', 'done');
    assert.deepEqual(planned(done, podGoneBy(61, 'taint-manager')).decisions, []);
  });

  test('is recorded once, for repeated and late deltas', () => {
    const delta = nodeDelta(3, { pods: [], deleted: [gone('u1', 2, 'taint-manager')] });
    const partition = after(delta);
    const later = { ...delta, version: { epoch: 1, sequence: 9 } };
    for (const again of [delta, podGoneBy(4, 'taint-manager'), later]) {
      const { elsewhere, cancelledBefore } = planned(partition, again);
      assert.deepEqual([elsewhere, cancelledBefore], [[], []]);
    }
    assert.equal(forecast(committed(partition, planned(partition, nodeDelta(2)))), 'gone');
  });

  test('names the gate that held the pod, or would have held it in observe mode', () => {
    const trip = { scope: 'people', trippedAt: at(0), nodes: 9, outOf: 30 } as const;
    const guarded = (mode: 'enforce' | 'observe'): Rules => ({
      ...rules,
      policy: { ...rules.policy, mode },
      trips: [trip],
    });
    const delta = podGoneBy(2, 'taint-manager');
    const unscheduled = { ...scheduled, scheduled: new Map() };
    for (const mode of ['enforce', 'observe'] as const) {
      assert.equal(planned(scheduled, delta, {}, guarded(mode)).cancel[0]?.by?.kind, 'guard');
      assert.equal(planned(unscheduled, delta, {}, guarded(mode)).elsewhere[0]?.by?.kind, 'guard');
    }
    const observing = { ...guarded('observe'), trips: [] };
    assert.equal(planned(scheduled, delta, {}, observing).cancel[0]?.by, undefined);
  });

  test('keeps the deadline and causes of an eviction that ended as would-have', () => {
    const would = { ...ending(record, { outcome: 'would-have' }), endedAt: at(60) };
    const observed = { ...scheduled, scheduled: new Map(), ended: new Map([[record.uid, would]]) };
    const [end] = planned(observed, podGoneBy(61, 'taint-manager', { tolerations: [] })).elsewhere;
    assert.deepEqual([end?.fireAt, end?.deleted?.at], [at(60), at(61)]);
  });
});

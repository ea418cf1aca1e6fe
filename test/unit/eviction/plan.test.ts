import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Delta, PodFacts } from '#shared/eviction/facts.ts';
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

const causes = (decided: ReturnType<typeof planned>) =>
  decided.cancel.map(({ cancelReason }) => cancelReason);

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
      decided.schedule.map(({ uid, dueAt }) => [uid, dueAt]),
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
    const plan = planned(emptyPartition, nodeDelta(5, { pods }));
    assert.deepEqual(
      plan.schedule.map(({ uid, dueAt, podSince }) => [uid, dueAt, podSince]),
      [
        ['u1', at(65), at(5)],
        ['u2', at(5), at(5)],
      ],
    );
    const partition = after(nodeDelta(1));
    const record = recordIn(partition) as EvictionRecord;
    const stored = { ...record, podSince: inYear2999, dueAt: inYear2999 + 60_000 };
    const scheduled = new Map([[record.uid, stored]]);
    const { reschedule } = planned({ ...partition, scheduled }, nodeDelta(20));
    assert.deepEqual(
      reschedule.map(({ dueAt, podSince }) => [dueAt, podSince]),
      [[at(80), at(20)]],
    );
  });

  test('cancels the evictions of an untainted node, which is live no longer', () => {
    const decided = planned(after(nodeDelta(1)), nodeDelta(20, { taints: [] }));
    assert.deepEqual(causes(decided), ['taint-removed']);
    assert.equal(decided.live, false);
    assert.deepEqual(decided.arm, []);
  });

  test('cancels for a removed taint, although a delta of an untainted node lists no pods', () => {
    const untaint = nodeDelta(20, { taints: [], pods: [] });
    assert.deepEqual(causes(planned(after(nodeDelta(1)), untaint)), ['taint-removed']);
    const again = planned(after(nodeDelta(1), untaint), untaint);
    assert.deepEqual(
      again.canceledBefore.map(({ cancelReason }) => cancelReason),
      ['taint-removed'],
    );
    assert.equal(forecast(after(nodeDelta(1), untaint, nodeDelta(30))), 'due at 80');
  });

  test('cancels the evictions of pods that it does not list, also of a deleted node without taints', () => {
    for (const gone of [{}, { taints: [], deletedAt: at(20) }])
      assert.deepEqual(causes(planned(after(nodeDelta(1)), nodeDelta(20, { pods: [], ...gone }))), [
        'pod-gone',
      ]);
  });

  test('does not end a pod that another relay reported after the listing', () => {
    const byOldRelay = podDelta(50, { pod: pod('u1', { podSince: at(50) }) });
    const listedBefore = nodeDelta(49, { version: { epoch: 2, sequence: 1 }, pods: [] });
    const byNewRelay = podDelta(51, {
      version: { epoch: 2, sequence: 2 },
      pod: pod('u1', { podSince: at(50) }),
    });
    assert.equal(forecast(after(byOldRelay, listedBefore)), 'canceled');
    assert.equal(forecast(after(byOldRelay, listedBefore, byNewRelay)), 'due at 110');
  });

  test('without news is stored on the node only, so that older deltas are recognized', () => {
    const decided = planned(after(nodeDelta(1)), nodeDelta(20));
    assert.equal(decided.nodeChanged, false);
    assert.deepEqual(decided.node?.podsVersion, { epoch: 1, sequence: 20 });
    assert.deepEqual(
      [decided.schedule, decided.reschedule, decided.confirm, decided.cancel],
      [[], [], [], []],
    );
    assert.deepEqual(decided.arm, []);
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
  });
});

describe('a pod delta', () => {
  test('records the owner of its pod', () => {
    const owner = { kind: 'ReplicaSet', name: 'web-1' };
    assert.deepEqual(recordIn(after(podDelta(1, { pod: pod('u1', { owner }) })))?.owner, owner);
  });

  test('keeps the progress of a due pod', () => {
    const partition = after(nodeDelta(1));
    const trials = { failure: { since: at(60), error: 'refused' }, turnAt: at(65), notBefore: at(62) };
    const record = { ...(recordIn(partition) as EvictionRecord), ...trials };
    const [confirmed] = planned(
      { ...partition, scheduled: new Map([[record.uid, record]]) },
      podDelta(70),
    ).confirm;
    assert.deepEqual(confirmed, { ...record, version: { epoch: 1, sequence: 70 } });
  });

  test('counts from the binding when the pod is newer than the taint', () => {
    assert.equal(forecast(after(podDelta(41, { pod: pod('u1', { podSince: at(40) }) }))), 'due at 100');
  });

  test('keeps the stored binding time when a later relay reports another', () => {
    const other = podDelta(20, { version: { epoch: 2, sequence: 1 }, pod: pod('u1', { podSince: at(1) }) });
    assert.equal(forecast(after(nodeDelta(1), other)), 'due at 60');
  });

  test('moves the deadline in both directions, and keeps the start of the eviction', () => {
    const scheduled = after(nodeDelta(1));
    for (const [seconds, due] of [
      [90, 90],
      [30, 30],
    ] as const) {
      const decided = planned(
        scheduled,
        podDelta(20, { pod: pod('u1', { tolerations: [tolerating('a', seconds)] }) }),
      );
      assert.deepEqual(
        decided.reschedule.map(({ dueAt, startedAt }) => [dueAt, startedAt]),
        [[at(due), at(1)]],
      );
    }
  });

  test('cancels when the pod tolerates the taint indefinitely', () => {
    const forever = podDelta(20, { pod: pod('u1', { tolerations: [tolerating('a')] }) });
    assert.deepEqual(causes(planned(after(nodeDelta(1)), forever)), ['tolerated-forever']);
  });

  test('confirms the record when nothing changes for its pod', () => {
    const decided = planned(after(nodeDelta(1)), podDelta(20));
    assert.deepEqual(decided.confirm, [
      { ...recordIn(after(nodeDelta(1))), version: { epoch: 1, sequence: 20 } },
    ]);
  });

  test('does not affect other pods of the node', () => {
    const two = nodeDelta(1, { pods: [pod('u1'), pod('u2')] });
    assert.equal(forecast(after(two, podGone(2)), 'u2'), 'due at 60');
  });
});

describe('a deleted pod', () => {
  test('leaves a tombstone when it was scheduled', () => {
    const decided = planned(after(nodeDelta(1)), podGone(20));
    assert.deepEqual(causes(decided), ['pod-gone']);
    assert.equal(forecast(committed(after(nodeDelta(1)), decided)), 'already-gone');
  });

  test('ends for any later deltas, because UIDs are never reused', () => {
    assert.equal(forecast(after(podDelta(5), podGone(3))), 'already-gone');
  });

  test('changes nothing on a node that never scheduled it', () => {
    assert.equal(changesNothing(planned(after(nodeDelta(1, { pods: [] })), podGone(2))), true);
  });

  test('is announced only before its deadline, because a later deletion looks like an eviction', () => {
    const [early] = planned(after(nodeDelta(1)), podGone(20)).cancel;
    const [late] = planned(after(nodeDelta(1)), podGone(60)).cancel;
    assert.ok(early && late);
    assert.equal(isAnnounced(early, at(20)), true);
    assert.equal(isAnnounced(late, at(60)), false);
  });
});

describe('an end that is delivered again', () => {
  const before = (delta: Delta, ...deltas: readonly Delta[]) =>
    planned(after(nodeDelta(1), ...deltas), delta).canceledBefore.map(({ cancelReason }) => cancelReason);
  const absent = (sequence: number) => nodeDelta(sequence, { pods: [] });
  const untaint = (sequence: number) => nodeDelta(sequence, { taints: [], pods: [] });

  test('is announced again by its own delta, and by no other', () => {
    for (const delta of [absent, untaint, podGone]) {
      assert.equal(before(delta(20), delta(20)).length, 1);
      assert.deepEqual(before(delta(30), delta(20)), []);
    }
    assert.deepEqual(before(untaint(30), absent(20)), []);
  });

  test('is announced for an overdue pod whose taint was removed, and not for a missing pod', () => {
    assert.deepEqual(before(untaint(100), untaint(100)), ['taint-removed']);
    assert.deepEqual(before(absent(100), absent(100)), []);
    assert.deepEqual(before(podGone(100), podGone(100)), []);
    const [end] = planned(after(nodeDelta(1)), untaint(100)).cancel;
    assert.ok(end && isAnnounced(end, at(100)));
  });
});

describe('a repeated delta', () => {
  test('does not schedule a pod again whose eviction ended as would-have', () => {
    const partition = after(nodeDelta(1), nodeDelta(20));
    const record = recordIn(partition) as EvictionRecord;
    const would = { ...ending(record, { outcome: 'would-evict' }), endedAt: at(60) };
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

describe('a late delta', () => {
  const forever = pod('u1', { tolerations: [tolerating('a')] });

  test('does not restore a removed taint', () => {
    assert.equal(forecast(after(nodeDelta(1), nodeDelta(20, { taints: [] }), podDelta(10))), 'canceled');
  });

  test('does not remove a taint', () => {
    assert.equal(forecast(after(nodeDelta(20), nodeDelta(10, { taints: [] }))), 'due at 60');
  });

  test('still ends the wait of its node for an answer', () => {
    const partition = after(nodeDelta(20));
    const outage = {
      attempts: 1,
      nextTryAt: at(100),
      since: at(60),
      error: 'no',
      everything: true,
      triedAt: at(59),
    };
    assert.ok(partition.node);
    const failing = { ...partition, node: { ...partition.node, outage } };
    const decided = planned(failing, nodeDelta(10, { wake: true, answeredAt: at(65) }), { now: at(70) });
    assert.equal(decided.node?.outage?.nextTryAt, at(70));
  });

  test('does not undo a confirmation of a newer delta', () => {
    const patient = podDelta(10, { pod: forever });
    assert.equal(forecast(after(nodeDelta(1), nodeDelta(20), patient)), 'due at 60');
    const listed = nodeDelta(10, { pods: [forever] });
    assert.equal(forecast(after(nodeDelta(1), podDelta(20), listed)), 'due at 60');
  });

  test('does not schedule a pod that a newer delta did not list', () => {
    assert.equal(forecast(after(nodeDelta(20, { pods: [] }), podDelta(10))), 'none');
  });

  test('still decides pods that newer deltas did not cover, by the newer facts of the node', () => {
    const newer = podDelta(20, { taints: [taint('a', 15)], pod: pod('u2') });
    assert.equal(forecast(after(newer, podDelta(10))), 'due at 75');
  });

  test('does not end a pod that appeared later', () => {
    assert.equal(forecast(after(podDelta(20), nodeDelta(10, { pods: [] }))), 'due at 60');
  });

  test('is older than all deltas of the next relay if its relay lost the lease', () => {
    const successor = nodeDelta(2, { version: { epoch: 2, sequence: 1 } });
    const stale = nodeDelta(99, { version: { epoch: 1, sequence: 99 }, taints: [] });
    assert.equal(forecast(after(successor, stale)), 'due at 60');
  });
});

describe('a tombstone', () => {
  for (const outcome of ['evicted', 'already-gone'] as const) {
    test(`for outcome ${outcome} is not revived or armed by newer deltas`, () => {
      const tomb = happened(after(nodeDelta(1)), 'u1', outcome);
      for (const delta of [nodeDelta(20), podDelta(20), nodeDelta(20, { taints: [] }), podGone(20)]) {
        const decided = planned(tomb, delta);
        assert.equal(forecast(committed(tomb, decided)), outcome);
        assert.deepEqual(decided.arm, []);
      }
    });
  }

  test('does not exist for a canceled eviction, so that a returning taint schedules the pod again', () => {
    const back = nodeDelta(40, { taints: [taint('a', 40)] });
    const partition = after(nodeDelta(1), nodeDelta(20, { taints: [] }), back);
    assert.equal(forecast(partition), 'due at 100');
    assert.equal(recordIn(partition)?.startedAt, at(40));
  });
});

describe('a deadline that has passed when it is processed', () => {
  const late = nodeDelta(100, { observedAt: at(100) });

  test('is set to the time of the observation, and is not moved later, however long the eviction takes', () => {
    assert.equal(forecast(after(late, nodeDelta(200), podDelta(300))), 'due at 100');
  });

  test('replaces a later deadline immediately', () => {
    const shortened = podDelta(50, { pod: pod('u1', { tolerations: [tolerating('a', 10)] }) });
    assert.equal(forecast(after(nodeDelta(1), shortened)), 'due at 50');
  });

  test('is never earlier than the rule, even when it replaces an earlier deadline', () => {
    const lengthened = podDelta(100, { pod: pod('u1', { tolerations: [tolerating('a', 90)] }) });
    assert.equal(forecast(after(nodeDelta(1), lengthened)), 'due at 90');
  });
});

describe('an overdue pod', () => {
  const overdue = after(nodeDelta(1));
  const armedAt = (seconds: number, wake: boolean) => planned(overdue, nodeDelta(60 + seconds, { wake })).arm;

  test('gets a new timer from every resync after a minute, because its timer was lost', () => {
    assert.deepEqual(armedAt(60, false), []);
    assert.deepEqual(armedAt(61, false), [at(60)]);
    assert.deepEqual(armedAt(86_400, false), [at(60)]);
  });

  test('gets a new timer immediately from a resync after a gap', () => {
    assert.deepEqual(armedAt(0, true), [at(60)]);
    assert.deepEqual(armedAt(86_400, true), [at(60)]);
  });
});

describe('a deleted node', () => {
  const deleted = nodeDelta(20, { deletedAt: at(20) });

  test('keeps its taints and the deadlines of its pods', () => {
    assert.equal(forecast(after(nodeDelta(1), deleted)), 'due at 60');
    assert.equal(planned(after(nodeDelta(1)), deleted).live, true);
  });

  test('still affects a pod that was bound before the deletion and reported later, and no pod bound later', () => {
    const bound = (second: number) =>
      podDelta(30, { deletedAt: at(20), pod: pod('u2', { podSince: at(second) }) });
    assert.equal(forecast(after(nodeDelta(1), deleted, bound(10)), 'u2'), 'due at 70');
    assert.equal(forecast(after(nodeDelta(1), deleted, bound(25)), 'u2'), 'none');
  });

  test('keeps the stored taints when the relay never saw any, also taints stored after its observation', () => {
    const unseen = (sequence: number) => nodeDelta(sequence, { deletedAt: at(20), taints: [] });
    assert.equal(forecast(after(nodeDelta(1), unseen(21))), 'due at 60');
    assert.deepEqual(causes(planned(after(nodeDelta(1)), unseen(21))), []);
    assert.equal(forecast(after(unseen(20), nodeDelta(19))), 'none');
  });

  test('loses its taints with its last pod', () => {
    const partition = after(nodeDelta(1), deleted, podGone(30, { deletedAt: at(20) }));
    const decided = planned(partition, nodeDelta(31, { deletedAt: at(20), pods: [] }));
    assert.deepEqual(decided.node?.taints, []);
    assert.equal(decided.live, false);
  });

  test('continues its countdowns when it returns with its taint, and cancels when it returns untainted', () => {
    assert.equal(forecast(after(nodeDelta(1), deleted, nodeDelta(40))), 'due at 60');
    assert.equal(forecast(after(nodeDelta(1), deleted, nodeDelta(40, { taints: [] }))), 'canceled');
  });
});

describe('a held pod', () => {
  const observed: Rules = { ...rules, policy: { ...rules.policy, mode: 'observe' } };
  const scheduled = after(nodeDelta(1));
  const record = recordIn(scheduled);
  assert.ok(record);
  const held: EvictionRecord = { ...record, held: { by: { kind: 'observe' }, since: at(60) } };
  const partition = { ...scheduled, scheduled: new Map([[record.uid, held]]) };
  const plannedUnder = (delta: Delta, governing: Rules) => planned(partition, delta, {}, governing);
  const ranked = nodeDelta(120, { pods: [pod('u1', { rank: 100 })], wake: true });

  test('stays held while its gate may hold, with and without a wake', () => {
    const decided = plannedUnder(ranked, observed);
    assert.deepEqual([decided.free, decided.arm], [[], []]);
    assert.equal(recordIn(committed(partition, plannedUnder(podDelta(121), observed)))?.held?.since, at(60));
  });

  test('is released in its slot, by its rank and the release rate, when no gate remains', () => {
    const decided = plannedUnder(ranked, { ...rules, policy: { ...rules.policy, releaseRate: 10 } });
    assert.deepEqual(decided.free, [{ ...record, notBefore: at(120 + 100 / 10), drains: true }]);
    assert.deepEqual(decided.arm, [at(130)]);
  });

  test('is released by a delta of its node, and not by its own delta', () => {
    const { free, confirm } = plannedUnder(podDelta(121), rules);
    assert.deepEqual([free, confirm.map((each) => each.held)], [[], [held.held]]);
  });

  test('is released immediately when it has no rank', () => {
    assert.deepEqual(plannedUnder(nodeDelta(120), rules).arm, [at(120)]);
  });

  test('stays a released pod until its record ends, and is held no longer, also with another deadline', () => {
    const moves = (delta: Delta) => podDelta(delta.version.sequence + 1, { pod: later });
    const later = pod('u1', { tolerations: [tolerating('a', 600)] });
    const freed = committed(partition, plannedUnder(ranked, rules));
    const found = recordIn(committed(freed, planned(freed, moves(ranked))));
    assert.deepEqual([found?.drains, found?.notBefore, found?.dueAt], [true, undefined, at(600)]);
    const [moved] = plannedUnder(moves(ranked), observed).reschedule;
    assert.deepEqual([moved?.dueAt, moved?.held], [at(600), undefined]);
  });

  test('keeps its slot when it is delivered again', () => {
    const freed = committed(partition, plannedUnder(ranked, rules));
    const again = planned(freed, ranked, {}, rules);
    assert.deepEqual([again.free, again.arm], [[], [at(122)]]);
    assert.equal(recordIn(committed(freed, planned(freed, podDelta(121))))?.notBefore, at(122));
  });

  test('does not fail for the time in which it was not tried', () => {
    const failing = { ...held, failure: { since: at(30), error: 'refused' } };
    const given = { ...scheduled, scheduled: new Map([[record.uid, failing]]) };
    const [freed] = planned(given, ranked).free;
    assert.equal(freed?.failure?.since, at(30 + (120 - 60)));
  });

  describe('with a gate for its taint', () => {
    const gate = { kind: 'excluded', revision: 1, guardRevision: 0 } as const;
    const excluded: EvictionRecord = { ...record, held: { by: gate, since: at(60), until: at(500) } };
    const excluding = { ...scheduled, scheduled: new Map([[record.uid, excluded]]) };
    const untilIn = (delta: Delta) => recordIn(committed(excluding, planned(excluding, delta)))?.held?.until;

    test('is evaluated again immediately when its node has another taint or its tolerations change', () => {
      const another = nodeDelta(120, { taints: [taint('a'), taint('b', 120)] });
      for (const delta of [another, podDelta(120)]) {
        assert.equal(untilIn(delta), at(120));
        assert.deepEqual(planned(excluding, delta).arm, [at(120)]);
      }
    });

    test('stays held as long as nothing changes', () => {
      assert.equal(untilIn(nodeDelta(120)), at(500));
      assert.deepEqual(planned(excluding, nodeDelta(120)).arm, []);
    });
  });

  test('with a hold is evaluated again when the pod changes, because the hold may be on its owner', () => {
    const gate = { kind: 'hold', id: 'h1' } as const;
    const kept: EvictionRecord = { ...record, held: { by: gate, since: at(60) } };
    const keeping = { ...scheduled, scheduled: new Map([[record.uid, kept]]) };
    const holding: Rules = {
      ...rules,
      holds: [{ id: 'h1', actor: 'anna', at: 0, reason: 'x', target: { kind: 'node', node: ref.node } }],
    };
    const untilIn = (delta: Delta) =>
      recordIn(committed(keeping, planned(keeping, delta, {}, holding)))?.held?.until;
    assert.equal(untilIn(podDelta(120)), at(120));
    assert.equal(untilIn(nodeDelta(120)), undefined);
  });
});

describe('a pod that another actor deleted', () => {
  const gone = (
    uid: string,
    second: number,
    deleter: 'taint-manager' | 'other',
    fields: Partial<PodFacts> = {},
  ) => ({
    ...pod(uid, fields),
    deleted: { at: at(second), by: deleter },
  });
  const podGoneBy = (sequence: number, deleter: 'taint-manager' | 'other', fields: Partial<PodFacts> = {}) =>
    podGone(sequence, { deleted: gone('u1', sequence, deleter, fields) });

  for (const deleter of ['taint-manager', 'other'] as const) {
    test(`ends as gone, with actor and time: ${deleter}`, () => {
      const deltas = [
        podGoneBy(40, deleter),
        nodeDelta(40, { pods: [], deleted: [gone('u1', 40, deleter)] }),
      ];
      for (const delta of deltas) {
        const [end] = planned(after(nodeDelta(1)), delta).cancel;
        assert.deepEqual([end?.outcome, end?.deleted], ['already-gone', { at: at(40), by: deleter }]);
        assert.deepEqual([end?.dueAt, end?.startedAt], [at(60), at(1)]);
      }
    });
  }

  test('is no canceled eviction to announce when another taint manager evicted it', () => {
    const announced = (deleter: 'taint-manager' | 'other') =>
      planned(after(nodeDelta(1)), podGoneBy(40, deleter)).cancel.map((end) => isAnnounced(end, at(40)));
    assert.deepEqual([announced('taint-manager'), announced('other')], [[false], [true]]);
  });

  test('is recorded also for a relay that lost its lease', () => {
    const [end] = planned(after(nodeDelta(1)), podGoneBy(40, 'other'), { leaseEpoch: 2 }).cancel;
    assert.equal(end?.deleted?.by, 'other');
  });

  test('gets an end with our deadline when another taint manager evicted it before it was scheduled', () => {
    const deltas = [
      podGoneBy(3, 'taint-manager', { tolerations: [] }),
      nodeDelta(3, { pods: [], deleted: [gone('u1', 2, 'taint-manager', { tolerations: [] })] }),
    ];
    for (const delta of deltas) {
      const { elsewhere, cancel, schedule } = planned(emptyPartition, delta);
      assert.deepEqual([cancel, schedule, elsewhere.length], [[], [], 1]);
      const [end] = elsewhere;
      assert.deepEqual([end?.outcome, end?.dueAt, end?.startedAt], ['already-gone', at(0), undefined]);
      assert.deepEqual(
        end?.causes.map(({ taint: { key } }) => key),
        ['a'],
      );
    }
  });

  test('gets an end without deadline when another taint manager evicted it and we would not', () => {
    const delta = podGoneBy(3, 'taint-manager', { tolerations: [tolerating('a')] });
    const [end] = planned(emptyPartition, delta).elsewhere;
    assert.deepEqual([end?.causes, end?.dueAt], [[], 8.64e15]);
  });

  test('gets no end if it was never scheduled and another actor deleted it, or its node had no taints', () => {
    assert.deepEqual(planned(emptyPartition, podGoneBy(3, 'other')).decisions, []);
    const untainted = podGone(3, { taints: [], deleted: gone('u1', 3, 'taint-manager') });
    assert.deepEqual(planned(emptyPartition, untainted).elsewhere, []);
  });

  test('stays evicted by us after our eviction', () => {
    const done = happened(after(nodeDelta(1)), 'u1', 'evicted');
    assert.deepEqual(planned(done, podGoneBy(61, 'taint-manager')).decisions, []);
  });

  test('is recorded once, for repeated and late deltas', () => {
    const delta = nodeDelta(3, { pods: [], deleted: [gone('u1', 2, 'taint-manager')] });
    const partition = after(delta);
    for (const again of [
      delta,
      podGoneBy(4, 'taint-manager'),
      { ...delta, version: { epoch: 1, sequence: 9 } },
    ]) {
      assert.deepEqual(
        [planned(partition, again).elsewhere, planned(partition, again).canceledBefore],
        [[], []],
      );
    }
    assert.equal(forecast(committed(partition, planned(partition, nodeDelta(2)))), 'already-gone');
  });

  test('names the gate that held the pod, or would have held it in observe mode', () => {
    const trip = { scope: 'customTaints', trippedAt: at(0), nodes: 9, outOf: 30 } as const;
    const guarded = (mode: 'enforce' | 'observe'): Rules => ({
      ...rules,
      policy: { ...rules.policy, mode },
      trips: [trip],
    });
    const partition = after(nodeDelta(1));
    const delta = podGoneBy(2, 'taint-manager', {});
    for (const mode of ['enforce', 'observe'] as const) {
      assert.equal(planned(partition, delta, {}, guarded(mode)).cancel[0]?.by?.kind, 'guard');
      const [unscheduled] = planned(
        { ...partition, scheduled: new Map() },
        delta,
        {},
        guarded(mode),
      ).elsewhere;
      assert.equal(unscheduled?.by?.kind, 'guard');
    }
    const observing = { ...guarded('observe'), trips: [] };
    assert.equal(planned(partition, delta, {}, observing).cancel[0]?.by, undefined);
  });

  test('keeps the deadline and causes of an eviction that ended as would-have', () => {
    const partition = after(nodeDelta(1));
    const record = recordIn(partition);
    assert.ok(record);
    const would = { ...ending(record, { outcome: 'would-evict' }), endedAt: at(60) };
    const observed = { ...partition, scheduled: new Map(), ended: new Map([[record.uid, would]]) };
    const [end] = planned(observed, podGoneBy(61, 'taint-manager', { tolerations: [] })).elsewhere;
    assert.deepEqual([end?.dueAt, end?.deleted?.at], [at(60), at(61)]);
  });
});

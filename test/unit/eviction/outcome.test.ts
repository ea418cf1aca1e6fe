import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import {
  type DonePass,
  endsOf,
  momentsOf,
  mustCommit,
  type PodOutcome,
  recordOf,
} from '#shared/eviction/outcome.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { EvictionRecord, NodeRetry, NodeState, Partition } from '#shared/eviction/records.ts';
import { after, at, nodeDelta, pod, rules } from './builders.ts';

const NOW = at(60);
const moment = { now: NOW, random: 1 };
const stopped: EvictionGate = { kind: 'stopped', scope: 'fleet' };
const whileStopped: Rules = {
  ...rules,
  stops: [{ scope: 'fleet', actor: 'anna', at: at(0), reason: 'an incident' }],
};
const byEvictionApi: Rules = {
  ...rules,
  policy: { ...rules.policy, method: { kind: 'evict', timeoutMs: 60_000, onTimeout: 'fail' } },
};

/** Three pods that are due at second 60. */
const before: Partition = after(nodeDelta(1, { pods: [pod('u1'), pod('u2'), pod('u3')] }));

const recordNamed = (uid: string, { scheduled }: Partition = before): EvictionRecord => {
  const record = scheduled.get(pod(uid).uid);
  assert.ok(record);
  return record;
};

/** Returns a pass with these outcomes of the first pods. */
const passOf = (...outcomes: readonly PodOutcome[]): DonePass => ({
  before,
  begunAt: NOW - 1,
  outOfReach: false,
  settled: outcomes.map((outcome, index) => ({ record: recordNamed(`u${index + 1}`), outcome })),
});

const rescheduled = (uid = 'u1'): PodOutcome => ({
  kind: 'reschedule',
  record: { ...recordNamed(uid), dueAt: at(90) },
});
const held = (uid = 'u1', until?: number): PodOutcome => ({
  kind: 'hold',
  record: {
    ...recordNamed(uid),
    held: { by: stopped, since: NOW, ...(until === undefined ? {} : { until }) },
  },
});
const failed: PodOutcome = { kind: 'failed', error: 'refused', retryAfterSeconds: 0 };
const refused: PodOutcome = { kind: 'refused', error: 'no answer', retryAfterSeconds: 0 };
const blocked: PodOutcome = { kind: 'blocked', block: { reason: 'its budget' } };
const deleted: PodOutcome = { kind: 'deleted', delayMs: 5 };
const gone: PodOutcome = { kind: 'end', outcome: 'already-gone' };
const canceled: PodOutcome = { kind: 'cancel', because: 'taint-removed' };
const waiting: PodOutcome = { kind: 'waiting', turn: { turnAt: at(70) } };

const withNode = (more: Partial<NodeState>, partition: Partition = before): Partition => {
  assert.ok(partition.node);
  return { ...partition, node: { ...partition.node, ...more } };
};

/** Returns the changes of a pass: the written records by pod, and the reported changes. */
function written(pass: DonePass, found: Partition = before, governing: Rules = rules) {
  const { result, change } = { change: undefined, ...recordOf(pass, found, governing, moment) };
  return {
    result,
    change,
    schedule: change?.schedule.map(({ uid }) => uid) ?? [],
    events: result.changed.map(({ record, note }) => [record.uid, note.event]),
  };
}

describe('ends of records', () => {
  test('include evicted and deleted pods, and no others', () => {
    const pass = passOf(deleted, { ...gone, deleted: { by: 'other', at: at(30) } } as PodOutcome, canceled);
    assert.deepEqual(
      endsOf(pass.settled).map(({ uid, outcome, delayMs, deleted }) => ({ uid, outcome, delayMs, deleted })),
      [
        { uid: 'u1', outcome: 'evicted', delayMs: 5, deleted: undefined },
        { uid: 'u2', outcome: 'already-gone', delayMs: undefined, deleted: { by: 'other', at: at(30) } },
      ],
    );
  });

  test('need no lock where nothing else is written', () => {
    const unlocked = [
      deleted,
      gone,
      { kind: 'behind' },
      { kind: 'fault', error: new Error('ours') },
    ] as const;
    for (const outcome of unlocked) assert.equal(mustCommit(passOf(outcome), NOW), false);
    for (const outcome of [canceled, rescheduled(), held(), waiting, blocked, failed, refused])
      assert.equal(mustCommit(passOf(deleted, outcome), NOW), true);
  });

  test('need the lock where the next retry is due', () => {
    const retry = { attempts: 1, since: at(1), error: 'refused', everything: false };
    const pass = passOf(deleted);
    const due = withNode({ retry: { ...retry, nextTryAt: NOW } });
    const later = withNode({ retry: { ...retry, nextTryAt: NOW + 1 } });
    assert.equal(mustCommit({ ...pass, before: due }, NOW), true);
    assert.equal(mustCommit({ ...pass, before: later }, NOW), false);
    assert.equal(mustCommit({ ...pass, before: { ...before, node: undefined } }, NOW), false);
    assert.equal(recordOf({ ...pass, before: due }, due, rules, moment).change?.node?.retry, undefined);
  });
});

describe('times to arm', () => {
  test('include each new deadline, slot and end of a hold once', () => {
    const pass = passOf(rescheduled('u1'), waiting, held('u3', at(95)));
    assert.deepEqual(momentsOf(pass), [at(90), at(70), at(95)]);
    assert.deepEqual(momentsOf(passOf(rescheduled('u1'), held('u2', at(90)))), [at(90)]);
    assert.deepEqual(momentsOf(passOf(held(), deleted, failed)), []);
  });

  test('exclude an end at which another pod is held already', () => {
    const other = { ...recordNamed('u2'), held: { by: stopped, since: at(0), until: at(90) } };
    const scheduled = new Map(before.scheduled).set(other.uid, other);
    const pass = { ...passOf(held('u1', at(90))), before: { ...before, scheduled } };
    assert.deepEqual(momentsOf(pass), []);
    const alone = { ...before, scheduled: new Map([[other.uid, other]]) };
    assert.deepEqual(momentsOf({ ...passOf(deleted, held()), before: alone }), []);
  });
});

describe('an outcome is written and reported', () => {
  test('for canceled, rescheduled, held and waiting pods', () => {
    const { change, schedule, events, result } = written(
      passOf(canceled, rescheduled('u2'), held('u3')),
      before,
      whileStopped,
    );
    assert.deepEqual(schedule, ['u2', 'u3']);
    assert.deepEqual(events, [
      ['u2', 'rescheduled'],
      ['u3', 'held'],
    ]);
    assert.deepEqual(
      change?.end.map(({ uid, outcome, cancelReason }) => [uid, outcome, cancelReason]),
      [['u1', 'canceled', 'taint-removed']],
    );
    assert.equal(result.canceled, change?.end);
    assert.deepEqual([change?.live, change?.node, result.moved], [true, undefined, false]);
  });

  test('for equal numbers of canceled and rescheduled pods', () => {
    const { change } = written(passOf(canceled, rescheduled('u2')), structuredClone(before));
    assert.deepEqual([change?.end.length, change?.schedule.length], [1, 1]);
  });

  test('where nothing is stored for the node, before and after the pass', () => {
    const unknown = { ...before, node: undefined };
    const { change, result } = written({ ...passOf(canceled), before: unknown }, unknown);
    assert.deepEqual([change?.end.length, change?.live, result.moved, result.gaveUp], [1, false, false, []]);
  });

  test('for a waiting pod, with its slot, which is not reported', () => {
    const { change, events } = written(passOf(waiting));
    assert.deepEqual([change?.schedule, events], [[{ ...recordNamed('u1'), turnAt: at(70) }], []]);
  });

  test('for a waiting pod only without a turn that a concurrent pass gave it', () => {
    const found = (turnAt: number) => {
      const record = { ...recordNamed('u1'), turnAt };
      return { ...before, scheduled: new Map([[record.uid, record]]) };
    };
    assert.equal(written(passOf(waiting), found(NOW + 1)).change, undefined);
    assert.deepEqual(written(passOf(waiting), found(NOW)).schedule, ['u1']);
  });

  test('for a pod with an unchanged gate, which is not reported again', () => {
    const record = { ...recordNamed('u1'), held: { by: stopped, since: at(0) } };
    const found = { ...before, scheduled: new Map(before.scheduled).set(record.uid, record) };
    const { schedule, events } = written(passOf(held()), found, whileStopped);
    assert.deepEqual([schedule, events], [['u1'], []]);
  });

  test('for a pod that is held in observe mode', () => {
    const record: PodOutcome = {
      kind: 'hold',
      record: { ...recordNamed('u1'), held: { by: { kind: 'observe' }, since: NOW } },
    };
    const observing: Rules = { ...rules, policy: { ...rules.policy, mode: 'observe' } };
    const { events, result } = written(passOf(record), before, observing);
    assert.deepEqual([events, result.policy.mode], [[['u1', 'would-evict']], 'observe']);
  });

  test('but not for a deletion, a pending delta or a fault alone', () => {
    const { change, result } = written(passOf(deleted, { kind: 'behind' }, { kind: 'fault', error: 'ours' }));
    assert.deepEqual([change, result.moved, result.retries[0]], [undefined, false, undefined]);
  });
});

describe('an outcome is discarded, and the node is evaluated again, when', () => {
  const record = recordNamed('u1');
  const changed: readonly [string, Partition, Rules?][] = [
    ['its record ended', { ...before, scheduled: new Map() }],
    [
      'something newer was told of it',
      after(nodeDelta(1, { pods: [pod('u1')] }), nodeDelta(2, { pods: [pod('u1', { tolerations: [] })] })),
    ],
    [
      'another pass moved its deadline',
      { ...before, scheduled: new Map([[record.uid, { ...record, dueAt: at(80) }]]) },
    ],
    ['something newer was told of its node', withNode({ version: { epoch: 1, sequence: 9 } })],
    ['its node was told of for the first time', { ...before, node: undefined }],
    ['all pods of its node were told of anew', withNode({ podsVersion: { epoch: 1, sequence: 9 } })],
  ];
  for (const [name, found] of changed) {
    test(name, () => {
      for (const outcome of [canceled, rescheduled(), held()]) {
        const { change, result } = written(passOf(outcome), found, whileStopped);
        assert.deepEqual([change, result.moved, result.changed], [undefined, true, []]);
      }
    });
  }

  test('the gate is gone', () => {
    const { change, result } = written(passOf(held()));
    assert.deepEqual([change, result.moved], [undefined, true]);
  });

  test('but not when another pass set the same deadline', () => {
    const found = { ...before, scheduled: new Map([[record.uid, { ...record, dueAt: at(90) }]]) };
    const { schedule, events, result } = written(passOf(rescheduled()), found);
    assert.deepEqual([schedule, events, result.moved], [['u1'], [], false]);
  });
});

describe('a failure is retried', () => {
  test('for a single pod, with the next retry of its node', () => {
    const { change, schedule, result } = written(passOf(deleted, failed, gone));
    assert.deepEqual(schedule, ['u2']);
    assert.deepEqual(change?.schedule[0]?.failure, { since: NOW, error: 'refused' });
    assert.deepEqual(change?.node?.retry, result.retries[0]);
    assert.deepEqual(
      [result.retries[0]?.attempts, change?.node?.retry?.everything, result.unnoted],
      [1, false, undefined],
    );
  });

  test('for all pods, where the cluster allows nothing, with the first error and the longest requested wait', () => {
    const patient = { kind: 'refused', error: 'too many requests', retryAfterSeconds: 100 } as const;
    const { schedule, change, result } = written(
      passOf(refused, patient, { ...failed, retryAfterSeconds: 20 } as PodOutcome),
    );
    assert.deepEqual(schedule, ['u3']);
    assert.deepEqual([result.retries[0]?.error, change?.node?.retry?.everything], ['no answer', true]);
    assert.equal(result.retries[0]?.nextTryAt, NOW + 100_000);
  });

  test('more rarely, where the cluster is unreachable', () => {
    const silent = passOf({ ...refused, unanswered: true });
    const wait = (outOfReach: boolean) =>
      (written({ ...silent, outOfReach }).result.retries[0]?.nextTryAt ?? 0) - NOW;
    assert.ok(wait(true) > wait(false));
  });

  test('without a longer wait, where single pods fail while the cluster is unreachable', () => {
    const [near, far] = [false, true].map(
      (outOfReach) => written({ ...passOf(failed), outOfReach }).result.retries[0],
    );
    assert.deepEqual(near, far);
  });

  test('with the next retry of another pass, which arms it', () => {
    const retry = { attempts: 1, nextTryAt: at(61), since: at(60), error: 'refused', everything: true };
    const { change, result } = written(passOf(refused), withNode({ retry }));
    assert.deepEqual([change?.node?.retry?.nextTryAt, result.retries[0]], [at(61), undefined]);
  });

  test('for all pods, apart from their failures, where the cluster does not answer', () => {
    const retry = { attempts: 3, nextTryAt: NOW - 5, since: at(10), error: 'denied', everything: false };
    const { change, result } = written(passOf({ ...refused, unanswered: true }), withNode({ retry }));
    assert.deepEqual(change?.node?.retry, retry);
    assert.deepEqual(result.retries, [change?.node?.outage]);
    assert.deepEqual([change?.node?.outage?.triedAt, change?.node?.outage?.since], [NOW - 1, NOW]);
  });

  test('again immediately, where the cluster answered while the pass got no answer', () => {
    const outage = {
      attempts: 4,
      nextTryAt: NOW - 1,
      since: at(10),
      error: 'no answer',
      everything: true,
      triedAt: at(10),
    };
    const woken = { ...outage, attempts: 0, nextTryAt: NOW };
    const silent = passOf({ ...refused, unanswered: true });
    const { change, result } = written(silent, withNode({ outage: woken }));
    assert.deepEqual([change, result.moved, result.retries], [undefined, true, []]);
    const since = written({ ...silent, begunAt: NOW }, withNode({ outage: woken }));
    assert.deepEqual([since.change?.node?.outage?.attempts, since.result.moved], [1, false]);
  });

  test('by its message, where nothing is stored for the node', () => {
    const found = { ...before, node: undefined };
    for (const [outcome, error] of [
      [failed, 'refused'],
      [refused, 'no answer'],
    ] as const)
      assert.equal(written(passOf(outcome), found).result.unnoted, error);
    assert.equal(written(passOf(failed), { ...found, scheduled: new Map() }).result.unnoted, undefined);
  });

  test('until the limit of policy; then the pod fails, counted from its slot', () => {
    const late = { now: at(60) + rules.policy.giveUpAfterMs, random: 1 };
    const retry = { attempts: 9, nextTryAt: late.now, since: at(60), error: 'no answer', everything: true };
    const found = withNode({ retry });
    const given = recordOf(passOf(refused), found, rules, late);
    assert.deepEqual(
      given.result.gaveUp.map(({ uid }) => uid),
      ['u1', 'u2', 'u3'],
    );
    assert.deepEqual(
      given.result.changed.map(({ note }) => note.event),
      ['failed', 'failed', 'failed'],
    );
    // A reserved slot counts as progress.
    const inTurn = { ...recordNamed('u1'), turnAt: late.now };
    const others = { ...found, scheduled: new Map(found.scheduled).set(inTurn.uid, inTurn) };
    assert.deepEqual(
      recordOf(passOf(refused), others, rules, late).result.gaveUp.map(({ uid }) => uid),
      ['u2', 'u3'],
    );
  });

  test('and keeps its back-off while it waits for its turn, until a pod is evicted', () => {
    const retry = { attempts: 4, nextTryAt: NOW, since: at(60), error: 'denied', everything: false };
    const failedBefore = { ...recordNamed('u1'), failure: { since: at(60), error: 'denied' } };
    const found = (more: Partial<NodeRetry>, ...records: readonly EvictionRecord[]): Partition => ({
      ...withNode({ retry: { ...retry, ...more } }),
      scheduled: new Map(before.scheduled).set(failedBefore.uid, records[0] ?? failedBefore),
    });
    const afterwards = (partition: Partition, ...others: readonly PodOutcome[]) => {
      const { result, change } = written(passOf(waiting, ...others), partition);
      return [change?.node?.retry?.attempts, change?.node?.retry?.nextTryAt, result.retries.length];
    };
    assert.deepEqual(afterwards(found({})), [4, at(70), 0]);
    assert.deepEqual(afterwards(found({}), deleted), [4, at(70), 0]);
    const hadTurn: PodOutcome = {
      kind: 'reschedule',
      record: { ...failedBefore, turnAt: NOW, dueAt: at(90) },
    };
    assert.equal(written(passOf(hadTurn), found({})).change?.node?.retry, undefined);
    const later: PodOutcome = { kind: 'waiting', turn: { turnAt: at(80) } };
    const both = { ...found({ everything: true }), scheduled: before.scheduled };
    assert.deepEqual(afterwards(both, later), [4, at(70), 0]);
    const { node: { retry: _retry, ...node } = assert.fail(), ...partition } = found({});
    assert.deepEqual(afterwards({ ...partition, node }), [undefined, undefined, 0]);
    assert.deepEqual(afterwards(found({}), failed).slice(2), [1]);
    const unharmed = found({ everything: true }, recordNamed('u1'));
    assert.deepEqual(afterwards(unharmed), [4, at(70), 0]);
    assert.deepEqual(afterwards(unharmed, deleted), [undefined, undefined, 0]);
    assert.deepEqual(afterwards(found({}, recordNamed('u1'))), [undefined, undefined, 0]);
  });

  test('and fails only for its own pod, for any outcomes of other pods', () => {
    const late = { now: at(60) + rules.policy.giveUpAfterMs, random: 1 };
    const retry = { attempts: 9, nextTryAt: late.now, since: at(60), error: 'no answer', everything: true };
    const found = withNode({ retry });
    const governing: Rules = { ...byEvictionApi, stops: whileStopped.stops };
    const gaveUpBeside = (outcome: PodOutcome, at: Partition = found) =>
      recordOf(passOf(outcome, refused), at, governing, late).result.gaveUp.map(({ uid }) => uid);
    for (const outcome of [deleted, gone, canceled, rescheduled(), held(), waiting, blocked])
      assert.deepEqual(gaveUpBeside(outcome), ['u2', 'u3']);
    // A record that was scheduled again since the pass is not the pod that ended.
    const moved = { ...recordNamed('u1'), version: { epoch: 1, sequence: 9 } };
    const scheduled = new Map(found.scheduled).set(moved.uid, moved);
    assert.deepEqual(gaveUpBeside(gone, { ...found, scheduled }), ['u1', 'u2', 'u3']);
  });

  test('without a slot on a record whose deadline moved', () => {
    const record = { ...recordNamed('u1'), dueAt: NOW + 1 };
    const found = { ...before, scheduled: new Map([[record.uid, record]]) };
    assert.equal(written(passOf(waiting), found).change, undefined);
    assert.equal(written(passOf(waiting), { ...found, scheduled: new Map() }).change, undefined);
  });
});

describe('an eviction that the API denies', () => {
  test('is retried, and does not count as failed', () => {
    const { change, schedule, events, result } = written(passOf(blocked, deleted), before, byEvictionApi);
    assert.deepEqual([schedule, events], [['u1'], [['u1', 'blocked']]]);
    assert.equal(change?.schedule[0]?.blocked?.reason, 'its budget');
    assert.equal(result.askAgainAt, NOW + 5_000);
    assert.deepEqual([change?.node?.blocked?.nextTryAt, change?.node?.retry], [NOW + 5_000, undefined]);
  });

  test('is retried sooner where another pod of the node was evicted', () => {
    const blockedSince = { since: at(50), nextTryAt: at(55), reason: 'its budget' };
    const scheduled = new Map(
      [...before.scheduled].map(([uid, each]) => [uid, { ...each, blocked: blockedSince }]),
    );
    const found = { ...withNode({ blocked: { attempts: 3, nextTryAt: NOW } }), scheduled };
    const retriedAfter = (pass: DonePass) =>
      (written(pass, found, byEvictionApi).result.askAgainAt ?? 0) - NOW;
    assert.deepEqual(
      [retriedAfter(passOf(blocked, deleted)), retriedAfter(passOf(blocked))],
      [5_000, 40_000],
    );
  });

  test('fails after the timeout of policy', () => {
    const record = {
      ...recordNamed('u1'),
      blocked: { since: at(0), nextTryAt: at(60), reason: 'its budget' },
    };
    const found = { ...before, scheduled: new Map(before.scheduled).set(record.uid, record) };
    const { change, result } = written(passOf(blocked), found, byEvictionApi);
    assert.equal(change?.schedule[0]?.failure?.error, 'its budget');
    assert.deepEqual([result.askAgainAt, result.retries[0]?.error], [undefined, 'its budget']);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  BEHIND_PATIENCE_MS,
  type EvictionDecision,
  evaluate,
  type NodeObservation,
  type SeenPod,
} from '#shared/eviction/evaluate.ts';
import type { Hold, Policy, Rules, Trip } from '#shared/eviction/policy.ts';
import type { EvictionRecord, Partition } from '#shared/eviction/records.ts';
import { type LiveTaint, NODE_NOT_READY, type Taint, type Toleration } from '#shared/taints/taint.ts';
import { after, at, found, nodeDelta, pod, recordIn, ref, rules, taint, tolerating } from './builders.ts';

const A: Taint = { key: 'a', effect: 'NoExecute' };
const B: Taint = { key: 'b', effect: 'NoExecute' };

const seen = (fields: Partial<SeenPod> = {}): SeenPod => ({
  uid: pod().uid,
  tolerations: [tolerating('a', 60)],
  terminating: false,
  disrupted: false,
  ...fields,
});

/** An observation of the node that began at a given second, with the observed pods. */
interface Sight extends NodeObservation {
  readonly pods: ReadonlyMap<string, SeenPod>;
}

const look = (
  second: number,
  taints: readonly LiveTaint[] | undefined,
  ...pods: readonly SeenPod[]
): Sight => ({
  node: ref.node,
  at: at(second),
  taints,
  pods: new Map(pods.map((each) => [each.uid, each])),
});

/** Returns the decision on a record of the partition, by default on pod `u1`. */
function verdict(partition: Partition, given: Sight, record = recordIn(partition)): EvictionDecision {
  assert.ok(record);
  return evaluate(partition.node, given, rules)(record, given.pods.get(record.uid));
}

/** The rules of the other tests, with these policy fields. */
const byPolicy = (policy: Partial<Policy>): Rules => ({ ...rules, policy: { ...rules.policy, ...policy } });

const due = after(nodeDelta(1));
const record = recordIn(due) as EvictionRecord;
const tolerationsOf = (...tolerations: readonly Toleration[]) => seen({ tolerations });
/** An observation of pod `u1` at second 60, with these tolerations if any are given. */
const live = (taints: readonly LiveTaint[] | undefined, ...tolerations: readonly Toleration[]) =>
  look(60, taints, tolerations.length > 0 ? tolerationsOf(...tolerations) : seen());

/** Returns a decision as its kind, with the reason, the outcome, or the second of the new deadline. */
function textOf(decided: EvictionDecision): string {
  if (decided.kind === 'cancel') return `cancel: ${decided.because}`;
  if (decided.kind === 'end') return `end: ${decided.outcome}`;
  if (decided.kind === 'reschedule') return `reschedule: ${(decided.record.fireAt - at(0)) / 1000}`;
  return decided.kind;
}

type Cases = Readonly<Record<string, readonly [Sight, decision: string, partition?: Partition]>>;

function decides(cases: Cases): void {
  for (const [name, [sight, decision, partition = due]] of Object.entries(cases))
    test(name, () => assert.equal(textOf(verdict(partition, sight)), decision));
}

const told = after(nodeDelta(1, { taintsStamp: 'kubectl@1' }));
const withoutNode = { ...due, node: undefined };

describe('a due pod', () => {
  const both = after(
    nodeDelta(1, { taints: [taint('a'), taint('b')], pods: [pod('u1', { tolerations: [] })] }),
  );
  decides({
    'is evicted when the live state agrees': [live([A]), 'evict'],
    'is evicted for its taint with another value': [live([{ ...A, value: 'new' }]), 'evict'],
    'is evicted early for an unreported taint that it does not tolerate': [look(10, [B], seen()), 'evict'],
    'is canceled when the taint was removed': [live([]), 'cancel: taint-removed'],
    'does not wait for a report to be canceled': [live([]), 'cancel: taint-removed', told],
    'is canceled with other effects only': [live([{ ...A, effect: 'NoSchedule' }]), 'cancel: taint-removed'],
    'is canceled when it tolerates the taint': [live([A], tolerating('a')), 'cancel: tolerated-forever'],
    'is canceled when it tolerates the new taint': [live([B], tolerating('b')), 'cancel: taint-removed'],
    'is canceled when it tolerates the rest': [live([A], tolerating('a')), 'cancel: tolerated-forever', both],
    'is rescheduled when it tolerates the taint longer': [live([A], tolerating('a', 90)), 'reschedule: 90'],
    'is rescheduled when another taint replaced it': [live([B], tolerating('b', 10)), 'reschedule: 70'],
    'is rescheduled by live state where no node is stored': [live([A]), 'reschedule: 120', withoutNode],
    'is not evicted a millisecond early': [{ ...live([A]), at: at(60) - 1 }, 'reschedule: 60'],
    'is gone when it is missing': [look(60, [A]), 'end: gone'],
    'is gone when another pod has its name': [look(60, [A], seen({ uid: pod('u2').uid })), 'end: gone'],
  });
});

describe('a due pod of a missing node', () => {
  const deleted = after(nodeDelta(1), nodeDelta(20, { deletedAt: at(20) }));
  const boundLater = { ...deleted, scheduled: new Map([[record.uid, { ...record, podSince: at(21) }]]) };
  assert.ok(due.node);
  const [known] = due.node.taints;
  assert.ok(known);
  const removed = { ...due.node, taints: [{ ...known, known: 'found', since: at(30) } as const] };
  decides({
    'is evicted by the last known taints': [live(undefined), 'evict'],
    'does not wait for reports': [live(undefined), 'evict', told],
    'is evicted if it was bound before the deletion': [live(undefined), 'evict', deleted],
    'is canceled if it was bound later': [live(undefined), 'cancel: tolerated-forever', boundLater],
    'is canceled when nothing is stored': [live(undefined), 'cancel: taint-removed', withoutNode],
    'is canceled when the last report had the taint removed': [
      look(99, undefined, seen()),
      'cancel: taint-removed',
      { ...due, node: removed },
    ],
    'is rescheduled when it tolerates longer': [live(undefined, tolerating('a', 600)), 'reschedule: 600'],
  });
});

test('a pod is looked at once a minute for an unreported taint, because each observation restarts the countdown', () => {
  const put = (second: number, from = record, seconds = 10, known = due) => {
    const moved = verdict(known, look(second, [B], tolerationsOf(tolerating('b', seconds))), from);
    return moved.kind === 'reschedule' ? moved.record : assert.fail(moved.kind);
  };
  const first = put(60);
  assert.equal(put(70, first).fireAt, at(130));
  assert.equal(put(130, put(70, first)).fireAt, at(190));
  assert.equal(put(70, first, 90).fireAt, at(160), 'no look is needed before it may be due');
  const [[reason], [elsewhere]] = [first.reasons, record.reasons];
  assert.ok(reason && elsewhere);
  assert.equal(
    put(70, { ...first, reasons: [elsewhere, reason] }).fireAt,
    at(130),
    'whatever else it waited for',
  );
  const virtual = { ...reason, taint: { key: 'b', effect: 'NoSchedule' } };
  assert.equal(put(70, { ...first, reasons: [virtual] }).fireAt, at(80), 'not yet by this one');
  const both = tolerationsOf(tolerating('a', 80), tolerating('b', 10));
  const sight = look(70, [A, B], both);
  const beside = verdict(due, sight, { ...first, reasons: [elsewhere, reason] });
  assert.equal(
    beside.kind === 'reschedule' && beside.record.fireAt,
    at(80),
    'it goes by one that was told of, too',
  );
  const told = after(nodeDelta(1), nodeDelta(65, { taints: [found('b', 65)], observedAt: at(65) }));
  assert.equal(put(70, first, 10, told).fireAt, at(75), 'as soon as somebody tells');
});

for (const [disrupted, outcome] of [
  [true, 'done'],
  [false, 'gone'],
] as const) {
  test(`a pod is ${outcome} when it terminates ${disrupted ? 'after' : 'without'} an eviction, with any taints`, () => {
    for (const taints of [[A], [], undefined]) {
      const leaving = look(60, taints, seen({ terminating: true, disrupted }));
      assert.equal(textOf(verdict(due, leaving)), `end: ${outcome}`);
    }
  });
}

describe('with the Eviction API as method', () => {
  const method = { kind: 'evict', deadlineMs: 60_000, afterDeadline: 'delete' } as const;
  const judged = (sight: Sight, policy: Partial<Policy> = { method }, fields: Partial<EvictionRecord> = {}) =>
    evaluate(due.node, sight, byPolicy(policy))({ ...record, ...fields }, sight.pods.get(record.uid));
  const means = (sight: Sight, fields?: Partial<EvictionRecord>) => {
    const found = judged(sight, { method }, fields);
    return found.kind === 'evict' && found.by;
  };

  test('a due pod is evicted through the API, and deleted if its node is down or deleted', () => {
    assert.equal(means(live([A])), 'evict');
    assert.equal(means(live(undefined)), 'delete');
    const notReady = { key: NODE_NOT_READY, effect: 'NoExecute' };
    assert.equal(means(look(60, [A, notReady], seen())), 'delete');
  });

  test('a pod is deleted when its budget blocked it until the timeout', () => {
    const blocked = { since: at(60), nextTryAt: at(65), reason: 'needed' };
    assert.equal(means(look(119, [A], seen()), { blocked }), 'evict');
    assert.equal(means(look(120, [A], seen()), { blocked }), 'delete');
  });

  test('a pod that terminates through the Eviction API counts as evicted only where policy uses this API', () => {
    const leaving = look(60, [A], seen({ terminating: true, evicted: true }));
    assert.equal(textOf(judged(leaving)), 'end: done');
    assert.equal(textOf(judged(leaving, { method: { kind: 'delete' } })), 'end: gone');
    assert.equal(textOf(judged(leaving, { method, mode: 'observe' })), 'end: would-have');
    assert.equal(textOf(judged(look(60, [A], seen({ terminating: true })))), 'end: gone');
  });
});

describe('while the guard holds evictions of nodes that are down', () => {
  const TRIPPED = at(2000);
  const trip: Trip = { scope: 'cluster', trippedAt: TRIPPED, nodes: 3, outOf: 10 };
  const down = after(
    nodeDelta(1, { taints: [taint(NODE_NOT_READY)], pods: [pod('u1', { tolerations: [] })] }),
  );
  const judged = (
    taints: readonly LiveTaint[] | undefined,
    more: Partial<Rules> = {},
    fields: Partial<SeenPod> = {},
  ) =>
    evaluate(down.node, look(2000, taints, seen(fields)), { ...rules, trips: [trip], ...more })(
      recordIn(down) as EvictionRecord,
      seen({ tolerations: [], ...fields }),
    );
  const downSince = (second?: number): LiveTaint => ({
    key: NODE_NOT_READY,
    effect: 'NoExecute',
    ...(second === undefined ? {} : { timeAdded: at(second) }),
  });

  test('evicts a pod whose taint shows that the node was down long before the trip', () => {
    assert.equal(judged([downSince(2000 - 15 * 60)]).kind, 'evict');
    assert.equal(judged([downSince(2000 - 15 * 60 + 1)]).kind, 'hold');
  });

  test('holds a pod whose node is deleted, or whose taint has no time', () => {
    assert.equal(judged([downSince()]).kind, 'hold');
    assert.equal(judged(undefined).kind, 'hold');
  });

  test('ignores the time of other taints', () => {
    const schedulable = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule', timeAdded: at(0) };
    assert.equal(judged([schedulable, downSince(2000)]).kind, 'hold');
  });

  test('looks at a pod again when an exclusion of another taint that evicts it ends', () => {
    const exclude = [{ taints: ['b'], until: at(2100) }];
    const found = judged([downSince(), B], { policy: { ...rules.policy, exclude } });
    assert.ok(found.kind === 'hold');
    assert.deepEqual([found.record.held?.by.kind, found.record.held?.until], ['guard', at(2100)]);
  });

  test('looks at a pod again at the next deadline that no gate covers', () => {
    const tolerations = [tolerating('c', 300), tolerating('b', 200), tolerating('d', 400)];
    const others = ['c', 'b', 'd'].map((key) => ({ key, effect: 'NoExecute' }));
    const found = judged([downSince(), ...others], {}, { tolerations });
    assert.equal(found.kind === 'hold' && found.record.held?.until, at(2000 + 200));
  });
});

describe('where policy treats a NoSchedule taint as NoExecute', () => {
  const twin = { key: 'a', effect: 'NoSchedule' };
  const virtual = { ...taint('a'), ...twin, virtual: true as const };
  const { node, scheduled } = after(nodeDelta(1, { taints: [virtual] }));
  const [record] = scheduled.values();
  assert.ok(record);
  const judged = (virtualKeys: readonly string[], sight: Sight) =>
    textOf(evaluate(node, sight, byPolicy({ virtualKeys }))(record, sight.pods.get(record.uid)));

  test('evicts a due pod while the taint is present', () => {
    assert.equal(judged(['a'], live([twin])), 'evict');
  });

  test('cancels when the taint is removed, or when policy no longer lists its key, also on a deleted node', () => {
    const spared = [judged(['a'], live([])), judged([], live([twin])), judged([], live(undefined))];
    for (const each of spared) assert.equal(each, 'cancel: taint-removed');
    assert.equal(judged(['a'], live(undefined)), 'evict');
  });

  test('keeps the countdown of the taint when the NoExecute taint appears', () => {
    assert.equal(judged(['a'], live([twin, A])), 'evict');
    assert.equal(judged(['a'], look(59, [twin, A], seen())), 'reschedule: 60');
    const anew = { ...twin, timeAdded: at(50) };
    assert.match(judged(['a'], live([anew, A])), /^reschedule: /);
  });
});

test('reschedules a due pod by the tolerationSeconds of policy, and names the policy as cause', () => {
  const policy = byPolicy({ tolerationSeconds: { a: 90 } });
  const found = evaluate(due.node, live([A]), policy)(record, seen());
  assert.ok(found.kind === 'reschedule');
  const { fireAt, reasons, version } = found.record;
  assert.deepEqual([fireAt, reasons[0]?.policy, version], [at(90), 'tolerationSeconds', record.version]);
});

test('records the actor of a pod that another taint manager evicted as gone', () => {
  const deleted = { at: at(59), by: 'taint-manager' } as const;
  const found = verdict(due, look(60, [A], seen({ terminating: true, disrupted: true, deleted })));
  assert.deepEqual(found, { kind: 'end', outcome: 'gone', deleted });
});

test('decides on each due pod separately', () => {
  const partition = after(nodeDelta(1, { pods: [pod('u1'), pod('u2'), pod('u3')], taints: [taint('a')] }));
  const given = look(60, [A], seen(), seen({ uid: pod('u3').uid, tolerations: [tolerating('a')] }));
  const verdicts = [...partition.scheduled.values()].map(
    (record) => `${record.uid} ${verdict(partition, given, record).kind}`,
  );
  assert.deepEqual(verdicts, ['u1 evict', 'u2 end', 'u3 cancel']);
});

describe('when the taints were written after the last report of the relay', () => {
  const seenBy = (second: number, taintsStamp?: string) =>
    verdict(told, { ...look(second, [A], seen()), taintsStamp });

  test('waits with a due pod for the next delta', () => {
    assert.equal(seenBy(60, 'kubectl@1').kind, 'evict');
    assert.equal(seenBy(60, 'kubectl@40').kind, 'behind');
    assert.equal(seenBy(60).kind, 'behind');
  });

  test('waits at most a minute, because the relay may be gone', () => {
    assert.equal(seenBy(60 + BEHIND_PATIENCE_MS / 1000 - 1, 'kubectl@40').kind, 'behind');
    assert.equal(seenBy(60 + BEHIND_PATIENCE_MS / 1000, 'kubectl@40').kind, 'evict');
  });

  test('counts the minute from the deadline of a taint that was set again', () => {
    const anew = { ...A, timeAdded: at(40) };
    const seenAgain = (second: number) =>
      verdict(told, { ...look(second, [anew], seen()), taintsStamp: 'kubectl@40' });
    assert.equal(seenAgain(60).kind, 'reschedule');
    assert.equal(seenAgain(100 + BEHIND_PATIENCE_MS / 1000).kind, 'behind');
    assert.equal(seenAgain(101 + BEHIND_PATIENCE_MS / 1000).kind, 'evict');
  });

  describe('with two taints, which have a minute each', () => {
    const both = seen({ tolerations: [tolerating('a', 60), tolerating(NODE_NOT_READY, 200)] });
    const pods = [pod('u1', { tolerations: both.tolerations })];
    const down = after(
      nodeDelta(1, { pods, taints: [taint('a'), taint(NODE_NOT_READY)], taintsStamp: 'kubectl@1' }),
    );
    const notReady = { key: NODE_NOT_READY, effect: 'NoExecute' };
    const judged = (second: number, policy: Partial<Policy>, taintsStamp = 'kubectl@40') => {
      const record = recordIn(down);
      assert.ok(record);
      const sight = { ...look(second, [A, notReady]), taintsStamp };
      const found = evaluate(down.node, sight, byPolicy(policy))(record, both);
      return found.kind === 'evict' ? found.by : found.kind;
    };
    const sure = 200 + BEHIND_PATIENCE_MS / 1000;

    test('respects budgets until the minute of the taint for the failed node ends', () => {
      const method = { kind: 'evict', deadlineMs: 600_000, afterDeadline: 'delete' } as const;
      assert.equal(judged(200, { method }, 'kubectl@1'), 'delete');
      assert.equal(judged(200, { method }), 'evict');
      assert.equal(judged(sure - 1, { method }), 'evict');
      assert.equal(judged(sure, { method }), 'delete');
    });

    test('evicts no pod with an excluded taint before the minute of the other taint ends', () => {
      const exclude = [{ taints: ['a'] }];
      assert.equal(judged(199, { exclude }), 'hold');
      assert.equal(judged(200, { exclude }, 'kubectl@1'), 'delete');
      assert.equal(judged(200, { exclude }), 'behind');
      assert.equal(judged(sure - 1, { exclude }), 'behind');
      assert.equal(judged(sure, { exclude }), 'delete');
    });
  });
});

describe('by the rules of its cluster', () => {
  const judged = (given: Rules, record: EvictionRecord, second = 60, taints: readonly LiveTaint[] = [A]) => {
    const sight = look(second, taints, seen());
    return evaluate(due.node, sight, given)(record, sight.pods.get(record.uid));
  };
  const observed = byPolicy({ mode: 'observe' });

  test('holds a due pod, and keeps its deadline', () => {
    const found = judged(observed, record);
    assert.ok(found.kind === 'hold');
    const held = { by: { kind: 'observe' }, since: at(60) };
    assert.deepEqual(found.record, { ...record, held, drains: true });
  });

  test('keeps the original hold time of a held pod', () => {
    const held: EvictionRecord = { ...record, held: { by: { kind: 'observe' }, since: at(30) } };
    const found = judged(observed, held);
    assert.equal(found.kind === 'hold' && found.record.held?.since, at(30));
  });

  test('does not hold a pod whose taints no longer evict it, or that is deleted', () => {
    assert.equal(judged(observed, record, 60, []).kind, 'cancel');
    assert.equal(judged(observed, record, 59).kind, 'reschedule');
    const found = evaluate(due.node, look(60, [A]), observed)(record, undefined);
    assert.deepEqual(found, { kind: 'end', outcome: 'would-have' });
  });

  describe('the next observation of a held pod', () => {
    const both = seen({ tolerations: [tolerating('a', 60), tolerating('b', 90)] });
    const untilOf = (given: Rules, sight = look(60, [A, B], both)) => {
      const found = evaluate(due.node, sight, given)(record, both);
      assert.ok(found.kind === 'hold');
      return found.record.held?.until;
    };
    const act = { who: 'anna', at: at(0), why: 'because' };
    const BEHIND_BY_10_S = { leastMs: -10_000, mostMs: -10_000 };
    const onNode: Hold = { ...act, id: 'h1', target: { kind: 'node', node: ref.node } };

    test('is the end of its hold, and no deadline of another taint, which is held as well', () => {
      assert.equal(untilOf({ ...rules, holds: [{ ...onNode, until: at(300) }] }), at(300));
      assert.equal(untilOf({ ...rules, holds: [onNode] }), undefined);
    });

    test('is the end of its exclusion, or an earlier deadline of another taint', () => {
      const until = (second: number) => byPolicy({ exclude: [{ taints: ['a'], until: at(second) }] });
      assert.equal(untilOf(until(100)), at(100));
      // The observation sees the taint b for the first time, so the countdown of b starts with it.
      assert.equal(untilOf(until(300)), at(60 + 90));
      assert.equal(untilOf(byPolicy({ exclude: [{ taints: ['a'] }] })), at(60 + 90));
    });

    test('is the deadline of another taint by our clock, which is ahead of the API server by ten seconds', () => {
      const sight = { ...look(70, [A, B], both), skews: [BEHIND_BY_10_S] };
      assert.equal(untilOf(byPolicy({ exclude: [{ taints: ['a'] }] }), sight), at(150 + 10));
    });

    test('does not exist for a gate of the whole cluster, because all pods would be evicted together', () => {
      assert.equal(untilOf({ ...rules, stops: [{ ...act, scope: 'fleet', until: at(300) }] }), undefined);
      assert.equal(untilOf(byPolicy({ mode: 'paused', pausedUntil: at(300) })), undefined);
      assert.equal(untilOf(observed), undefined);
    });
  });
});

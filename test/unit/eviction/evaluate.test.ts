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
import {
  after,
  at,
  found,
  nodeDelta,
  pod,
  podDelta,
  recordIn,
  ref,
  rules,
  taint,
  tolerating,
} from './builders.ts';

const A: Taint = { key: 'a', effect: 'NoExecute' };

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

const observation = (
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
const tolerationsOf = (...tolerations: readonly Toleration[]) => seen({ tolerations });

/** Returns a decision in short form. */
const brief = (found: EvictionDecision): string => {
  if (found.kind === 'cancel') return `cancel: ${found.because}`;
  if (found.kind === 'reschedule') return `reschedule: ${(found.record.dueAt - at(0)) / 1000}`;
  return found.kind === 'end' ? `end: ${found.outcome}` : found.kind;
};
/** Declares a test for each case: the decision about a pod of `due`. */
function decides(cases: Readonly<Record<string, readonly [sight: Sight, decision: string]>>): void {
  for (const [title, [sight, decision]] of Object.entries(cases))
    test(title, () => assert.equal(brief(verdict(due, sight)), decision));
}
const B: Taint = { key: 'b', effect: 'NoExecute' };
const tolerating60 = (taints: readonly LiveTaint[], ...tolerations: readonly Toleration[]) =>
  observation(60, taints, tolerationsOf(...tolerations));

describe('a due pod', () => {
  decides({
    'is evicted when the live state agrees': [observation(60, [A], seen()), 'evict'],
    'is evicted although the live taint has another value': [
      observation(60, [{ ...A, value: 'new' }], seen()),
      'evict',
    ],
    'is canceled when the taint was removed': [observation(60, [], seen()), 'cancel: taint-removed'],
    'is canceled when only taints with other effects remain': [
      observation(60, [{ ...A, effect: 'NoSchedule' }], seen()),
      'cancel: taint-removed',
    ],
    'is canceled when it tolerates the taint now': [
      tolerating60([A], tolerating('a')),
      'cancel: tolerated-forever',
    ],
    'is canceled when its taint was replaced by a taint that it tolerates': [
      tolerating60([B], tolerating('b')),
      'cancel: taint-removed',
    ],
    'is rescheduled when it tolerates the taint for longer now': [
      tolerating60([A], tolerating('a', 90)),
      'reschedule: 90',
    ],
    'is rescheduled when another taint replaced it': [
      tolerating60([B], tolerating('b', 10)),
      'reschedule: 70',
    ],
    'is not evicted a millisecond early': [
      { ...observation(60, [A], seen()), at: at(60) - 1 },
      'reschedule: 60',
    ],
  });

  test('keeps its version when it is rescheduled', () => {
    const found = verdict(due, tolerating60([A], tolerating('a', 90)));
    assert.deepEqual(found.kind === 'reschedule' && found.record.version, recordIn(due)?.version);
  });

  test('is looked at once a minute for an unreported taint, because each observation restarts the countdown', () => {
    const put = (second: number, record = recordIn(due), seconds = 10, known = due) => {
      const moved = verdict(
        known,
        observation(second, [{ key: 'b', effect: 'NoExecute' }], tolerationsOf(tolerating('b', seconds))),
        record,
      );
      return moved.kind === 'reschedule' ? moved.record : assert.fail(moved.kind);
    };
    const first = put(60);
    assert.equal(put(70, first).dueAt, at(130));
    assert.equal(put(130, put(70, first)).dueAt, at(190));
    assert.equal(put(70, first, 90).dueAt, at(160), 'no look is needed before it may be due');
    const [reason] = first.causes;
    assert.ok(reason);
    const [elsewhere] = recordIn(due)?.causes ?? [];
    assert.ok(elsewhere);
    assert.equal(
      put(70, { ...first, causes: [elsewhere, reason] }).dueAt,
      at(130),
      'whatever else it waited for',
    );
    const virtual = { ...reason, taint: { key: 'b', effect: 'NoSchedule' } };
    assert.equal(put(70, { ...first, causes: [virtual] }).dueAt, at(80), 'not yet by this one');
    const both = tolerationsOf(tolerating('a', 80), tolerating('b', 10));
    const sight = observation(70, [A, { key: 'b', effect: 'NoExecute' }], both);
    const beside = verdict(due, sight, { ...first, causes: [elsewhere, reason] });
    assert.equal(
      beside.kind === 'reschedule' && beside.record.dueAt,
      at(80),
      'it goes by one that was told of, too',
    );
    const partition = after(nodeDelta(1), nodeDelta(65, { taints: [found('b', 65)], observedAt: at(65) }));
    assert.equal(put(70, first, 10, partition).dueAt, at(75), 'as soon as somebody tells');
  });

  test('is evicted immediately for an unreported taint that it does not tolerate', () => {
    const partition = after(podDelta(1));
    assert.equal(
      verdict(partition, observation(10, [{ key: 'b', effect: 'NoExecute' }], seen())).kind,
      'evict',
    );
  });

  test('is evaluated by live state where nothing is stored for its node', () => {
    const record = recordIn(due) as EvictionRecord;
    const found = evaluate(undefined, observation(60, [A], seen()), rules)(record, seen());
    assert.equal(found.kind === 'reschedule' && found.record.dueAt, at(120));
  });

  test('is canceled by its tolerations when only a tolerated taint of its causes remains', () => {
    const both = after(
      nodeDelta(1, { taints: [taint('a'), taint('b')], pods: [pod('u1', { tolerations: [] })] }),
    );
    const found = verdict(both, observation(60, [A], tolerationsOf(tolerating('a'))));
    assert.equal(found.kind === 'cancel' && found.because, 'tolerated-forever');
  });
});

describe('a missing pod', () => {
  decides({
    'is gone': [observation(60, [A]), 'end: already-gone'],
    'is gone when another pod has its name': [
      observation(60, [A], seen({ uid: pod('u2').uid })),
      'end: already-gone',
    ],
  });

  for (const [disrupted, outcome] of [
    [true, 'evicted'],
    [false, 'already-gone'],
  ] as const) {
    test(`is ${outcome} when it terminates ${disrupted ? 'after' : 'without'} an eviction, with any taints`, () => {
      for (const taints of [[A], [], undefined]) {
        const found = verdict(due, observation(60, taints, seen({ terminating: true, disrupted })));
        assert.equal(found.kind === 'end' && found.outcome, outcome);
      }
    });
  }
});

describe('with the Eviction API as method', () => {
  const method = { kind: 'evict', timeoutMs: 60_000, onTimeout: 'delete' } as const;
  const judged = (
    sight: Sight,
    record = recordIn(due) as EvictionRecord,
    policy: Partial<Policy> = { method },
  ) => evaluate(due.node, sight, byPolicy(policy))(record, sight.pods.get(record.uid));
  const means = (sight: Sight, record?: EvictionRecord) => {
    const found = judged(sight, record);
    return found.kind === 'evict' && found.by;
  };

  test('a due pod is evicted through the API, and deleted if its node is down or deleted', () => {
    assert.equal(means(observation(60, [A], seen())), 'evict');
    assert.equal(means(observation(60, undefined, seen())), 'delete');
    const notReady = { key: NODE_NOT_READY, effect: 'NoExecute' };
    assert.equal(means(observation(60, [A, notReady], seen())), 'delete');
  });

  test('a pod is deleted when its budget blocked it until the timeout', () => {
    const blocked = { since: at(60), nextTryAt: at(65), reason: 'needed' };
    const record = { ...(recordIn(due) as EvictionRecord), blocked };
    assert.equal(means(observation(119, [A], seen()), record), 'evict');
    assert.equal(means(observation(120, [A], seen()), record), 'delete');
  });

  test('a pod that terminates through the Eviction API counts as evicted only where policy uses this API', () => {
    const leaving = observation(60, [A], seen({ terminating: true, evicted: true }));
    const outcome = (policy?: Partial<Policy>) => {
      const found = judged(leaving, undefined, policy);
      return found.kind === 'end' && found.outcome;
    };
    assert.equal(outcome(), 'evicted');
    assert.equal(outcome({ method: { kind: 'delete' } }), 'already-gone');
    assert.equal(outcome({ method, mode: 'observe' }), 'would-evict');
    const byHand = judged(observation(60, [A], seen({ terminating: true })));
    assert.equal(byHand.kind === 'end' && byHand.outcome, 'already-gone');
  });
});

describe('while the guard holds evictions of nodes that are down', () => {
  const TRIPPED = at(2000);
  const trip: Trip = { scope: 'cluster', trippedAt: TRIPPED, nodes: 3, outOf: 10 };
  const partition = after(
    nodeDelta(1, { taints: [taint(NODE_NOT_READY)], pods: [pod('u1', { tolerations: [] })] }),
  );
  const judged = (
    taints: readonly LiveTaint[] | undefined,
    more: Partial<Rules> = {},
    fields: Partial<SeenPod> = {},
  ) =>
    evaluate(partition.node, observation(2000, taints, seen(fields)), { ...rules, trips: [trip], ...more })(
      recordIn(partition) as EvictionRecord,
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
    const other = { key: 'b', effect: 'NoExecute' };
    const exclude = [{ taints: ['b'], until: at(2100) }];
    const found = judged([downSince(), other], { policy: { ...rules.policy, exclude } });
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
  const partition = after(nodeDelta(1, { taints: [virtual] }));
  const record = recordIn(partition);
  assert.ok(record);
  const judged = (treatAsNoExecute: readonly string[], sight: Sight) =>
    evaluate(partition.node, sight, byPolicy({ treatAsNoExecute }))(record, sight.pods.get(record.uid));

  test('cancels when the taint is removed, or when policy no longer lists its key, also on a deleted node', () => {
    const spared = [
      judged(['a'], observation(60, [], seen())),
      judged([], observation(60, [twin], seen())),
      judged([], observation(60, undefined, seen())),
    ];
    for (const each of spared) assert.equal(each.kind === 'cancel' && each.because, 'taint-removed');
    assert.equal(judged(['a'], observation(60, undefined, seen())).kind, 'evict');
  });

  test('keeps the countdown of the taint when the NoExecute taint appears', () => {
    assert.equal(judged(['a'], observation(60, [twin], seen())).kind, 'evict');
    assert.equal(judged(['a'], observation(60, [twin, A], seen())).kind, 'evict');
    assert.equal(judged(['a'], observation(59, [twin, A], seen())).kind, 'reschedule');
    const retainted = { ...twin, timeAdded: at(50) };
    assert.equal(judged(['a'], observation(60, [retainted, A], seen())).kind, 'reschedule');
  });
});

test('reschedules a due pod by the tolerationSeconds of policy, and names the policy as cause', () => {
  const given = observation(60, [A], seen());
  const policy = byPolicy({ tolerationSecondsOverrides: { a: 90 } });
  const found = evaluate(due.node, given, policy)(recordIn(due) as EvictionRecord, seen());
  assert.ok(found.kind === 'reschedule');
  assert.deepEqual(
    [found.record.dueAt, found.record.causes[0]?.policy],
    [at(90), 'tolerationSecondsOverrides'],
  );
});

test('records the actor of a pod that another taint manager evicted as gone', () => {
  const deleted = { at: at(59), by: 'taint-manager' } as const;
  const found = verdict(due, observation(60, [A], seen({ terminating: true, disrupted: true, deleted })));
  assert.deepEqual(found, { kind: 'end', outcome: 'already-gone', deleted });
});

describe('on a missing node', () => {
  decides({
    'evicts by the last known taints': [observation(60, undefined, seen()), 'evict'],
    'reschedules a pod that now tolerates the taint for longer': [
      observation(60, undefined, tolerationsOf(tolerating('a', 600))),
      'reschedule: 600',
    ],
  });

  test('evicts a pod that was bound before the deletion of the node, and cancels a pod that was bound later', () => {
    const partition = after(nodeDelta(1), nodeDelta(20, { deletedAt: at(20) }));
    assert.equal(verdict(partition, observation(60, undefined, seen())).kind, 'evict');
    const record: EvictionRecord = { ...(recordIn(partition) as EvictionRecord), podSince: at(21) };
    assert.equal(verdict(partition, observation(99, undefined, seen()), record).kind, 'cancel');
  });

  test('cancels a pod when nothing is stored for the node', () => {
    const record = recordIn(due) as EvictionRecord;
    assert.equal(
      verdict({ ...due, node: undefined }, observation(60, undefined, seen()), record).kind,
      'cancel',
    );
  });

  test('cancels a pod when the last report had the taint removed', () => {
    const { node } = due;
    assert.ok(node);
    const taints = node.taints.map((each) => ({ ...each, known: 'preexisting', since: at(30) }) as const);
    const doubted: Partition = { ...due, node: { ...node, taints } };
    assert.equal(verdict(doubted, observation(99, undefined, seen())).kind, 'cancel');
  });
});

test('decides on each due pod separately', () => {
  const partition = after(nodeDelta(1, { pods: [pod('u1'), pod('u2'), pod('u3')], taints: [taint('a')] }));
  const given = observation(60, [A], seen(), seen({ uid: pod('u3').uid, tolerations: [tolerating('a')] }));
  const verdicts = [...partition.scheduled.values()].map(
    (record) => `${record.uid} ${verdict(partition, given, record).kind}`,
  );
  assert.deepEqual(verdicts, ['u1 evict', 'u2 end', 'u3 cancel']);
});

describe('when the taints were written after the last report of the relay', () => {
  const partition = after(nodeDelta(1, { taintsStamp: 'kubectl@1' }));
  const seenBy = (second: number, taintsStamp?: string) =>
    verdict(partition, { ...observation(second, [A], seen()), taintsStamp });

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
    const retainted = { ...A, timeAdded: at(40) };
    const seenAgain = (second: number) =>
      verdict(partition, { ...observation(second, [retainted], seen()), taintsStamp: 'kubectl@40' });
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
      const sight = { ...observation(second, [A, notReady]), taintsStamp };
      const found = evaluate(down.node, sight, byPolicy(policy))(record, both);
      return found.kind === 'evict' ? found.by : found.kind;
    };
    const sure = 200 + BEHIND_PATIENCE_MS / 1000;

    test('respects budgets until the minute of the taint for the failed node ends', () => {
      const method = { kind: 'evict', timeoutMs: 600_000, onTimeout: 'delete' } as const;
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

  test('cancels immediately when the live state cancels', () => {
    assert.equal(
      verdict(partition, { ...observation(60, [], seen()), taintsStamp: 'kubectl@40' }).kind,
      'cancel',
    );
  });

  test('does not wait for reports on a missing node', () => {
    assert.equal(verdict(partition, observation(60, undefined, seen())).kind, 'evict');
  });
});

describe('by the rules of its cluster', () => {
  const judged = (given: Rules, record: EvictionRecord, second = 60, taints: readonly LiveTaint[] = [A]) => {
    const sight = observation(second, taints, seen());
    return evaluate(due.node, sight, given)(record, sight.pods.get(record.uid));
  };
  const record = recordIn(due);
  assert.ok(record);
  const observed: Rules = { ...rules, policy: { ...rules.policy, mode: 'observe' } };

  test('holds a due pod, and keeps its deadline and the time since which it was held', () => {
    for (const since of [60, 30]) {
      const held = { by: { kind: 'observe' }, since: at(since) } as const;
      const found = judged(observed, since === 60 ? record : { ...record, held });
      assert.deepEqual(found.kind === 'hold' && found.record, { ...record, held, drains: true });
    }
  });

  test('does not hold a pod whose taints no longer evict it', () => {
    assert.equal(judged(observed, record, 60, []).kind, 'cancel');
    assert.equal(judged(observed, record, 59).kind, 'reschedule');
  });

  test('ends a deleted due pod as would-have where the cluster is in observe mode', () => {
    const found = evaluate(due.node, observation(60, [A]), observed)(record, undefined);
    assert.deepEqual(found, { kind: 'end', outcome: 'would-evict' });
  });

  describe('the next observation of a held pod', () => {
    const both = seen({ tolerations: [tolerating('a', 60), tolerating('b', 90)] });
    const untilOf = (given: Rules) => {
      const sight = observation(60, [A, { key: 'b', effect: 'NoExecute' }], both);
      const found = evaluate(due.node, sight, given)(record, both);
      assert.ok(found.kind === 'hold');
      return found.record.held?.until;
    };
    const act = { actor: 'anna', at: at(0), reason: 'because' };
    const BEHIND_BY_10_S = { leastMs: -10_000, mostMs: -10_000 };
    const onNode: Hold = { ...act, id: 'h1', target: { kind: 'node', node: ref.node } };

    test('is the end of its hold, and no deadline of another taint, which is held as well', () => {
      assert.equal(untilOf({ ...rules, holds: [{ ...onNode, until: at(300) }] }), at(300));
      assert.equal(untilOf({ ...rules, holds: [onNode] }), undefined);
    });

    test('is the end of its exclusion, or an earlier deadline of another taint', () => {
      const until = (second: number) => byPolicy({ exclude: [{ taints: ['a'], until: at(second) }] });
      assert.equal(untilOf(until(100)), at(100));
      assert.equal(untilOf(until(300)), at(150));
    });

    test('is the deadline of another taint by our clock, which is ahead of the API server by ten seconds', () => {
      const sight = {
        ...observation(70, [A, { key: 'b', effect: 'NoExecute' }], both),
        skews: [BEHIND_BY_10_S],
      };
      const found = evaluate(due.node, sight, byPolicy({ exclude: [{ taints: ['a'] }] }))(record, both);
      assert.equal(found.kind === 'hold' && found.record.held?.until, at(150 + 10));
    });

    test('does not exist for a gate of the whole cluster, because all pods would be evicted together', () => {
      assert.equal(untilOf({ ...rules, stops: [{ ...act, scope: 'fleet', until: at(300) }] }), undefined);
      assert.equal(untilOf(observed), undefined);
    });
  });
});

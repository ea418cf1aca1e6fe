import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { NodeState, Partition } from '#shared/eviction/records.ts';
import {
  afterFailures,
  dueOf,
  type Failures,
  MAX_RETRY_MS,
  momentOf,
  nextMomentOf,
  retryWaitMs,
} from '#shared/eviction/retry.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { after, at, nodeDelta, planned, pod, podDelta, rules, tolerating } from './builders.ts';

const { giveUpAfterMs } = rules.policy;

/** Returns a node with pods that are all due at second 60. */
const withPods = (count: number): Partition & { readonly node: NodeState } => {
  const pods = Array.from({ length: count }, (_, index) => pod(`u${index + 1}`));
  const partition = after(nodeDelta(1, { pods }));
  assert.ok(partition.node);
  return { ...partition, node: partition.node };
};

const SILENT: Failures = { everything: 'no answer', pods: new Map() };
const failed = (...uids: readonly string[]): Failures => ({
  pods: new Map(uids.map((uid) => [pod(uid).uid, 'refused'])),
});

/** Returns the partition after a try with these failures at `now`. */
function tried(
  partition: Partition & { readonly node: NodeState },
  failures: Failures,
  now: EpochMs,
  random = 1,
) {
  const { node, changed, gaveUp } = afterFailures(partition.node, partition.scheduled, failures, {
    now,
    random,
    giveUpAfterMs,
  });
  const scheduled = new Map(partition.scheduled);
  for (const record of changed) scheduled.set(record.uid, record);
  return { ...partition, node, scheduled, gaveUp };
}

const uidsOf = (records: readonly { readonly uid: string }[]) => records.map(({ uid }) => uid);

describe('a node on which every action fails', () => {
  test('waits as a whole, with doubled waits: at most 30 s for ten tries, then at most five minutes', () => {
    let partition = withPods(2);
    let now = at(60);
    const waits: number[] = [];
    for (let tries = 0; tries < 15; tries++) {
      partition = tried(partition, SILENT, now);
      const next = partition.node.retry?.nextTryAt ?? 0;
      waits.push((next - now) / 1000);
      assert.deepEqual(dueOf(partition, next - 1), []);
      assert.deepEqual(uidsOf(dueOf(partition, next)), ['u1', 'u2']);
      now = next;
    }
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 60, 120, 240, 300, 300]);
    assert.equal(partition.node.retry?.attempts, 15);
    assert.equal(partition.node.retry?.since, at(60));
  });

  test('fails its pods after four days with the error of the cluster, each counted from its deadline', () => {
    const partition = withPods(2);
    const later = partition.scheduled.get(pod('u2').uid);
    assert.ok(later);
    const fellDueLater = new Map(partition.scheduled).set(later.uid, { ...later, dueAt: at(90) });
    const first = tried({ ...partition, scheduled: fellDueLater }, SILENT, at(60));
    const { gaveUp, node, scheduled } = tried(first, SILENT, at(60) + giveUpAfterMs);
    assert.deepEqual(uidsOf(gaveUp), ['u1']);
    assert.deepEqual(gaveUp[0]?.failure, { since: at(60), error: 'no answer' });
    const last = tried({ ...first, node, scheduled }, SILENT, at(90) + giveUpAfterMs);
    assert.deepEqual(uidsOf(last.gaveUp), ['u2']);
    assert.deepEqual(last.gaveUp[0]?.failure, { since: at(90), error: 'no answer' });
  });

  test('counts from its own first failure, not from the failure of a single other pod', () => {
    const failing = tried(withPods(2), failed('u1'), at(60));
    const silent = tried(failing, SILENT, at(60) + giveUpAfterMs);
    assert.deepEqual(uidsOf(silent.gaveUp), ['u1']);
    const later = tried(silent, SILENT, at(60) + 2 * giveUpAfterMs);
    assert.deepEqual(uidsOf(later.gaveUp), ['u2']);
    assert.equal(later.gaveUp[0]?.failure?.since, at(60) + giveUpAfterMs);
  });

  test('counts for a pod from its release or its slot', () => {
    for (const turn of ['notBefore', 'turnAt'] as const) {
      const partition = tried(withPods(2), SILENT, at(60));
      const freedAt = at(60) + giveUpAfterMs;
      const record = partition.scheduled.get(pod('u2').uid);
      assert.ok(record);
      const scheduled = new Map(partition.scheduled).set(record.uid, { ...record, [turn]: freedAt });
      const after = tried({ ...partition, scheduled }, SILENT, freedAt);
      assert.deepEqual(uidsOf(after.gaveUp), ['u1']);
      assert.deepEqual(tried(after, SILENT, freedAt + giveUpAfterMs - 1).gaveUp, []);
      assert.deepEqual(uidsOf(tried(after, SILENT, freedAt + giveUpAfterMs).gaveUp), ['u2']);
    }
  });

  test('is not retried for pods that are not due, are held, or failed', () => {
    const partition = withPods(1);
    const [record] = partition.scheduled.values();
    assert.ok(record);
    const held = { by: { kind: 'observe' }, since: at(60) } as const;
    const failure = { since: at(60), error: 'refused' };
    const later = at(60) + giveUpAfterMs;
    for (const retried of [
      { ...record, dueAt: later + 1, failure },
      { ...record, held, failure },
      { ...record, gaveUpAt: at(70), failure },
    ]) {
      const left = { ...partition, scheduled: new Map([[retried.uid, retried]]) };
      for (const now of [at(61), later]) {
        const { node, gaveUp } = tried(left, SILENT, now);
        assert.deepEqual([node.retry, gaveUp], [undefined, []]);
      }
    }
    assert.ok(tried({ ...partition, scheduled: new Map([[record.uid, record]]) }, SILENT, at(60)).node.retry);
  });

  test('is retried for pods that were held until then, and counts their failures from there', () => {
    const [record] = withPods(1).scheduled.values();
    assert.ok(record);
    const held = { by: { kind: 'hold', id: 'h1' }, since: at(60), until: at(900) } as const;
    const partition = { ...withPods(1), scheduled: new Map([[record.uid, { ...record, held }]]) };
    assert.equal(tried(partition, SILENT, at(899)).node.retry, undefined);
    const first = tried(partition, SILENT, at(900));
    assert.deepEqual(dueOf(first, at(901) - 1), []);
    assert.deepEqual(uidsOf(dueOf(first, at(901))), ['u1']);
    assert.deepEqual(tried(first, SILENT, at(60) + giveUpAfterMs).gaveUp, []);
    assert.deepEqual(uidsOf(tried(first, SILENT, at(900) + giveUpAfterMs).gaveUp), ['u1']);
    const failing = { ...record, held, failure: { since: at(60), error: 'refused' } };
    const failedBefore = { ...partition, scheduled: new Map([[record.uid, failing]]) };
    assert.deepEqual(tried(failedBefore, failed('u1'), at(60) + giveUpAfterMs).gaveUp, []);
    const refused = tried(partition, failed('u1'), at(900));
    assert.deepEqual(dueOf(refused, at(901) - 1), []);
    assert.deepEqual(uidsOf(dueOf(refused, at(901))), ['u1']);
  });

  test('reports the last error', () => {
    const errorOf = (partition: Partition) => partition.node?.retry?.error;
    const silent = tried(withPods(2), SILENT, at(60));
    assert.equal(errorOf(silent), 'no answer');
    const refused = tried(silent, failed('u2'), at(62));
    assert.equal(errorOf(refused), 'refused');
    assert.equal(errorOf(tried(refused, { pods: new Map() }, at(63))), 'refused');
    assert.equal(errorOf(tried(refused, { ...failed('u1'), everything: 'busy' }, at(63))), 'busy');
    const { retry: _retry, ...node } = refused.node;
    assert.equal(errorOf(tried({ ...refused, node }, { pods: new Map() }, at(64))), '');
  });

  test('waits as a whole also when single pods failed before or after', () => {
    const silentFirst = tried(tried(withPods(2), SILENT, at(60)), failed('u2'), at(60.5));
    const silentLast = tried(tried(withPods(2), failed('u2'), at(60)), SILENT, at(60.5));
    for (const { node } of [silentFirst, silentLast]) assert.equal(node.retry?.everything, true);
    const never = tried(tried(withPods(2), failed('u2'), at(60)), failed('u1'), at(60.5));
    assert.equal(never.node.retry?.everything, false);
  });

  test('writes no records until it fails them', () => {
    const partition = withPods(3);
    const { changed } = afterFailures(partition.node, partition.scheduled, SILENT, {
      now: at(60),
      random: 0,
      giveUpAfterMs,
    });
    assert.deepEqual(changed, []);
  });
});

describe('pods that fail alone', () => {
  test('wait for the next retry, without a delay of the others', () => {
    const partition = tried(withPods(3), failed('u2'), at(60));
    assert.deepEqual(uidsOf(dueOf(partition, at(61) - 1)), ['u1', 'u3']);
    assert.deepEqual(uidsOf(dueOf(partition, at(61))), ['u1', 'u2', 'u3']);
    assert.equal(nextMomentOf(partition, at(60)), at(61));
  });

  test('share a single retry, also when they fail one after the other', () => {
    const first = tried(withPods(3), failed('u2'), at(60));
    const second = tried(first, failed('u3'), at(60.5));
    assert.equal(second.node.retry?.nextTryAt, at(61));
    assert.equal(second.node.retry?.attempts, 1);
    assert.deepEqual(uidsOf(dueOf(second, at(60.9))), ['u1']);
  });

  test('advance the retry when a pod fails for the first time beside a pod that has failed for long', () => {
    let partition = withPods(2);
    let now = at(60);
    for (let tries = 0; tries < 14; tries++) {
      partition = tried(partition, failed('u1'), now);
      now = partition.node.retry?.nextTryAt ?? 0;
    }
    const before = now - 200_000;
    const joined = tried(partition, failed('u2'), before);
    assert.deepEqual([joined.node.retry?.attempts, joined.node.retry?.nextTryAt], [1, before + 1_000]);
    const again = tried(joined, failed('u1', 'u2'), before + 1_000);
    assert.deepEqual([again.node.retry?.attempts, again.node.retry?.nextTryAt], [2, before + 3_000]);
    const soon = tried(partition, failed('u2'), now - 500);
    assert.equal(soon.node.retry?.nextTryAt, now);
  });

  test('are written once, for any number of failures', () => {
    const first = tried(withPods(2), failed('u2'), at(60));
    const again = { now: at(65), random: 0, giveUpAfterMs };
    assert.deepEqual(afterFailures(first.node, first.scheduled, failed('u2'), again).changed, []);
    assert.deepEqual(uidsOf(afterFailures(first.node, first.scheduled, failed('u1'), again).changed), ['u1']);
  });

  test('need no retry once they are gone', () => {
    const partition = tried(withPods(2), failed('u2'), at(60));
    const left = new Map([...partition.scheduled].filter(([uid]) => uid !== 'u2'));
    const { node } = afterFailures(
      partition.node,
      left,
      { pods: new Map() },
      { now: at(65), random: 0, giveUpAfterMs },
    );
    assert.equal(node.retry, undefined);
  });
});

test('treats a pod as due at exactly its deadline, and not as upcoming', () => {
  const partition = withPods(1);
  assert.equal(nextMomentOf(partition, at(60) - 1), at(60));
  assert.equal(nextMomentOf(partition, at(60)), undefined);
  assert.deepEqual(uidsOf(dueOf({ ...partition, node: undefined }, at(60))), ['u1']);
});

test('looks at a pod at the end of its hold or in a later slot, and never at a pod with an open hold', () => {
  const [record] = withPods(1).scheduled.values();
  assert.ok(record);
  const held = { by: { kind: 'hold', id: 'h1' }, since: at(60), until: at(900) } as const;
  const moment = (more: object) => momentOf({ ...record, held, ...more }, undefined);
  assert.equal(moment({}), at(900));
  assert.equal(moment({ notBefore: at(70), turnAt: at(80) }), at(900));
  assert.equal(moment({ notBefore: at(960) }), at(960));
  assert.equal(moment({ turnAt: at(901) }), at(901));
  assert.equal(moment({ held: { by: held.by, since: at(60) }, turnAt: at(901) }), undefined);
});

test('tries a pod that was blocked for too long with the failures of its node, not with the blocked pods', () => {
  const [record] = withPods(1).scheduled.values();
  assert.ok(record);
  const blocked = { since: at(60), nextTryAt: at(65), reason: 'its budget' };
  const retry = { attempts: 9, nextTryAt: at(900), error: 'its budget', since: at(660), everything: false };
  const node = { ...withPods(1).node, blocked: { attempts: 5, nextTryAt: at(960) }, retry } as NodeState;
  assert.equal(momentOf({ ...record, blocked }, node), at(960));
  assert.equal(momentOf({ ...record, blocked, failure: { since: at(660), error: '' } }, node), at(900));
});

describe('an eviction that fails for too long', () => {
  test('fails four days after its first failure, and is never retried by itself', () => {
    const first = tried(withPods(2), failed('u2'), at(60));
    const almost = tried(first, failed('u2'), at(60) + giveUpAfterMs - 1);
    assert.deepEqual(almost.gaveUp, []);
    const late = tried(first, failed('u2'), at(60) + giveUpAfterMs);
    assert.deepEqual(uidsOf(late.gaveUp), ['u2']);
    const given = late.scheduled.get(pod('u2').uid);
    assert.ok(given);
    assert.equal(momentOf(given, late.node), undefined);
    assert.equal(late.node.retry, undefined);
  });

  test('is scheduled again when its deadline moves, and unchanged by any other delta', () => {
    const given = tried(tried(withPods(1), failed('u1'), at(60)), failed('u1'), at(60) + giveUpAfterMs);
    const later = 60 + giveUpAfterMs / 1000;
    for (const delta of [nodeDelta(later + 1, { wake: true }), podDelta(later + 1)])
      assert.deepEqual(planned(given, delta).decisions, []);
    const changed = podDelta(later + 2, { pod: pod('u1', { tolerations: [tolerating('a', 90)] }) });
    const [record] = planned(given, changed).reschedule;
    assert.equal(record?.dueAt, at(90));
    assert.equal(record?.gaveUpAt, undefined);
    assert.equal(record?.failure, undefined);
  });
});

describe('a node whose cluster does not answer', () => {
  const UNANSWERED: Failures = { ...SILENT, unanswered: true };
  const pods = [pod('u1'), pod('u2')];

  test('is tried again with the first answer, and not after any other wake', () => {
    const partition = tried(withPods(2), { ...UNANSWERED, retryAfterSeconds: 3600 }, at(60));
    assert.deepEqual(dueOf(partition, at(3_659)), []);
    const decided = planned(partition, nodeDelta(70, { pods, wake: true, answeredAt: at(69) }));
    assert.deepEqual(decided.node?.outage, {
      ...partition.node.outage,
      attempts: 0,
      nextTryAt: at(70),
    });
    assert.deepEqual(decided.arm, [at(60)]);
    assert.equal(
      planned(partition, nodeDelta(70, { pods, wake: true, answeredAt: at(60) })).node?.outage?.attempts,
      1,
    );
    assert.deepEqual(planned(partition, nodeDelta(70, { pods })).arm, []);
  });

  test('waits longer with each try, for half a minute at most', () => {
    let partition = withPods(1);
    let now = at(60);
    const waits: number[] = [];
    for (let tries = 0; tries < 7; tries++) {
      partition = tried(partition, { ...UNANSWERED, outOfReach: tries > 1 }, now);
      const next = partition.node.outage?.nextTryAt ?? 0;
      waits.push((next - now) / 1000);
      now = next;
    }
    assert.deepEqual(waits, [1, 2, 20, 30, 30, 30, 30]);
    assert.deepEqual([partition.node.outage?.attempts, partition.node.outage?.since], [7, at(60)]);
  });

  test('keeps the next try of its failed pods, which an answer does not hurry', () => {
    const denied = tried(withPods(2), { ...failed('u1'), retryAfterSeconds: 300 }, at(60));
    const silent = tried(denied, UNANSWERED, at(61));
    assert.deepEqual(silent.node.retry, denied.node.retry);
    assert.deepEqual(dueOf(silent, at(61)), []);
    const { node } = planned(silent, nodeDelta(62, { pods, wake: true, answeredAt: at(62) }));
    assert.deepEqual(uidsOf(dueOf({ ...silent, node }, at(62))), ['u2']);
    assert.deepEqual(uidsOf(dueOf({ ...silent, node }, at(360))), ['u1', 'u2']);
  });

  test('keeps an earlier failure of a pod in the same pass', () => {
    const { node } = tried(withPods(2), { ...UNANSWERED, ...failed('u1') }, at(60));
    assert.deepEqual(
      [node.retry?.everything, node.retry?.error, node.outage?.error],
      [false, 'refused', 'no answer'],
    );
  });

  test('fails its pods four days after its first try, whatever answers came in between', () => {
    const first = tried(withPods(1), UNANSWERED, at(60));
    const answered = planned(first, nodeDelta(70, { pods: [pod('u1')], wake: true, answeredAt: at(70) }));
    assert.ok(answered.node);
    const again = tried({ ...first, node: answered.node }, UNANSWERED, at(71));
    assert.deepEqual([again.node.outage?.since, again.node.outage?.attempts], [at(60), 1]);
    assert.deepEqual(tried(again, UNANSWERED, at(60) + giveUpAfterMs - 1).gaveUp, []);
    const throttled = tried(again, SILENT, at(80));
    assert.deepEqual([throttled.node.outage, throttled.node.retry?.since], [undefined, at(60)]);
    assert.equal(tried(throttled, UNANSWERED, at(90)).node.outage?.since, at(60));
    for (const failures of [SILENT, UNANSWERED])
      assert.deepEqual(uidsOf(tried(again, failures, at(60) + giveUpAfterMs).gaveUp), ['u1']);
  });

  test('has no next try once it answers', () => {
    const silent = tried(withPods(2), UNANSWERED, at(60));
    assert.equal(tried(silent, { pods: new Map() }, at(61)).node.outage, undefined);
    const denied = tried(silent, failed('u1'), at(61)).node;
    assert.deepEqual([denied.outage, denied.retry?.attempts, denied.retry?.since], [undefined, 1, at(61)]);
  });
});

describe('the waits between tries', () => {
  const wait = fc.record({
    attempts: fc.integer({ min: 1, max: 5_000 }),
    random: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const unanswered = (attempts: number, random: number) =>
    retryWaitMs(attempts, random, { unanswered: true });
  const outOfReach = (attempts: number, random: number) =>
    retryWaitMs(attempts, random, { unanswered: true, outOfReach: true });
  const waits = fc.constantFrom(retryWaitMs, unanswered, outOfReach);

  test('are shortened by jitter, by at most half, and never lengthened', () => {
    fc.assert(
      fc.property(wait, waits, ({ attempts, random }, waitOf) => {
        const longest = waitOf(attempts, 1);
        const waitMs = waitOf(attempts, random);
        assert.ok(waitMs <= longest && waitMs >= longest / 2, `${waitMs} of ${longest}`);
      }),
    );
  });

  test('never shrink, and stay within 30 s for ten tries and within five minutes', () => {
    fc.assert(
      fc.property(wait, waits, ({ attempts }, waitOf) => {
        const waitMs = waitOf(attempts, 1);
        assert.ok(waitMs <= waitOf(attempts + 1, 1));
        assert.ok(waitMs <= MAX_RETRY_MS);
        if (attempts <= (waitOf === retryWaitMs ? 10 : 60)) assert.ok(waitMs <= 30_000);
      }),
    );
  });

  test('allow seven failures within 120 s, with timers exact to the second and two seconds for each try', () => {
    const randoms = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 7, maxLength: 7 });
    fc.assert(
      fc.property(randoms, (seven) => {
        const waits = seven.map(
          (random, index) => Math.ceil(retryWaitMs(index + 1, random) / 1_000) * 1_000 + 2_000,
        );
        assert.ok(waits.reduce((sum, each) => sum + each, 0) <= 120_000);
      }),
    );
  });

  test('begin with five seconds and double where a server is unreachable', () => {
    const seconds = [1, 2, 3, 4, 60, 61, 64, 5_000].map((attempts) => outOfReach(attempts, 1) / 1_000);
    assert.deepEqual(seconds, [5, 10, 20, 30, 30, 60, 300, 300]);
  });
});

test('keeps the next retry of a node between half the least wait and the longest or requested wait', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          everything: fc.boolean(),
          retryAfter: fc.nat({ max: 7200 }),
          random: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        {
          minLength: 1,
          maxLength: 40,
        },
      ),
      (tries) => {
        let partition = withPods(2);
        let now = at(60);
        for (const { everything, retryAfter, random } of tries) {
          const failures = { ...(everything ? SILENT : failed('u1')), retryAfterSeconds: retryAfter };
          partition = tried(partition, failures, now, random);
          const waitMs = (partition.node.retry?.nextTryAt ?? 0) - now;
          assert.ok(waitMs >= 500 && waitMs >= Math.min(retryAfter, 3600) * 1000, `${waitMs}`);
          assert.ok(waitMs <= Math.max(MAX_RETRY_MS, Math.min(retryAfter, 3600) * 1000), `${waitMs}`);
          now += waitMs;
        }
      },
    ),
    { numRuns: 200 },
  );
});

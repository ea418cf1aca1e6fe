import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { afterBlocks, BUDGET_RETRY_MS, meansOf } from '#shared/eviction/budget.ts';
import type { Method } from '#shared/eviction/policy.ts';
import type { EvictionRecord, NodeState, Partition } from '#shared/eviction/records.ts';
import { dueOf, nextMomentOf } from '#shared/eviction/retry.ts';
import { NODE_NOT_READY, NODE_OUT_OF_SERVICE, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { after, at, nodeDelta, planned, pod, podDelta, recordIn, rules } from './builders.ts';

const MINUTE_MS = 60_000;
const evict: Method = { kind: 'evict', timeoutMs: 15 * MINUTE_MS, onTimeout: 'delete' };
const never: Method = { ...evict, onTimeout: 'fail' };

describe('the eviction method of a due pod', () => {
  const blockedSince = (since: EpochMs) => ({ since, nextTryAt: since + BUDGET_RETRY_MS, reason: 'needed' });
  const leaving = (dueBy: readonly string[] = ['a'], blockedAt?: EpochMs) => ({
    dueBy,
    nodeGone: false,
    namespaceTerminating: false,
    ...(blockedAt === undefined ? {} : { blocked: blockedSince(blockedAt) }),
  });

  test('is the method of the policy', () => {
    assert.equal(meansOf({ kind: 'delete' }, leaving(), at(60)), 'delete');
    assert.equal(meansOf(evict, leaving(), at(60)), 'evict');
  });

  test('is always delete on a node that is down, deleted or out of service, and in a namespace that is being deleted', () => {
    for (const key of [NODE_NOT_READY, NODE_UNREACHABLE, NODE_OUT_OF_SERVICE]) {
      assert.equal(meansOf(never, leaving(['a', key]), at(60)), 'delete');
    }
    for (const gone of ['nodeGone', 'namespaceTerminating'])
      assert.equal(meansOf(never, { ...leaving(), [gone]: true }, at(60)), 'delete');
  });

  test('becomes delete when its budget blocked it until evict.timeout, unless onTimeout is fail', () => {
    const means = (method: Method, minutes: number) =>
      meansOf(method, leaving(['a'], at(60)), at(60) + minutes * MINUTE_MS);
    assert.equal(means(evict, 15 - 1 / MINUTE_MS), 'evict');
    assert.equal(means(evict, 15), 'delete');
    assert.equal(means(never, 10_000), 'evict');
  });
});

describe('pods that their budgets block', () => {
  const pods = ['u1', 'u2', 'u3'].map((uid) => pod(uid));
  const partition = after(nodeDelta(1, { pods }));
  const blocks = (...uids: readonly string[]) =>
    new Map(uids.map((uid) => [pod(uid).uid, { reason: 'needed' }]));

  /** Returns the partition after these pods were found blocked. */
  function blocked(
    { node: known, scheduled }: Pick<Partition, 'node' | 'scheduled'>,
    uids: readonly string[],
    now: EpochMs,
    method: Method = evict,
    progressed = false,
  ) {
    const { changed, failed, node } = afterBlocks({ node: known, scheduled }, blocks(...uids), method, {
      now,
      progressed,
    });
    const next = new Map(scheduled);
    for (const record of changed) next.set(record.uid, record);
    const stored = { ...partition.node, ...known, ...(node ? { blocked: node } : {}) } as NodeState;
    return { ...partition, node: stored, scheduled: next, changed, failed, armAt: node?.nextTryAt };
  }

  test('are retried five seconds later, independently of other failures on their node', () => {
    const waiting = blocked(partition, ['u1', 'u2', 'u3'], at(60));
    assert.equal(waiting.armAt, at(65));
    assert.deepEqual(dueOf(waiting, at(65) - 1), []);
    assert.equal(dueOf(waiting, at(65)).length, 3);
  });

  test('join the pending retry of their node without another timer, also one that is due at the same time', () => {
    const first = blocked(partition, ['u1'], at(60));
    for (const second of [60, 62]) {
      const { armAt, node } = blocked(first, ['u2'], at(second));
      assert.deepEqual([armAt, node.blocked?.nextTryAt], [undefined, at(65)]);
    }
  });

  test('are retried after twice the time when they are blocked again, without a write of their records', () => {
    const first = blocked(partition, ['u1', 'u2'], at(60));
    const second = blocked(first, ['u1', 'u2'], at(65));
    assert.deepEqual([second.armAt, second.changed], [at(75), []]);
    assert.equal(dueOf(second, at(75) - 1).length, 1);
    assert.equal(dueOf(second, at(75)).length, 3);
    assert.equal(second.scheduled.get(pod().uid)?.blocked?.since, at(60), 'since they were first blocked');
  });

  test('are retried after five seconds when the pods that were blocked before are gone', () => {
    const { node, scheduled } = blocked(blocked(partition, ['u1'], at(60)), ['u1'], at(65));
    const rest = new Map([...scheduled].filter(([, record]) => !record.blocked));
    assert.equal(blocked({ node, scheduled: rest }, ['u2'], at(75)).armAt, at(80));
  });

  test('do not join a retry that is more than a minute ahead, as after a clock was set back', () => {
    const first = blocked(partition, ['u1'], at(200));
    assert.equal(blocked(first, ['u2'], at(60)).armAt, at(65));
  });

  test('do not count as failed', () => {
    const record = recordIn(partition);
    assert.ok(record);
    const failing = new Map([[record.uid, { ...record, failure: { since: at(50), error: 'no' } }]]);
    assert.equal(
      blocked({ ...partition, scheduled: failing }, ['u1'], at(60)).scheduled.get(record.uid)?.failure,
      undefined,
    );
  });

  test('fail from evict.timeout on, where onTimeout is fail', () => {
    const first = blocked(partition, ['u1'], at(60), never);
    const later = at(60) + 15 * MINUTE_MS;
    assert.deepEqual([...blocked(first, ['u1'], later - 1, never).failed], []);
    const { failed, armAt } = blocked(first, ['u1'], later, never);
    assert.deepEqual([[...failed], armAt], [[['u1', 'needed']], undefined]);
  });

  test('do not count where their deadline moved or their record ended', () => {
    assert.equal(blocked(partition, ['u1'], at(59)).armAt, undefined);
    assert.deepEqual(
      afterBlocks({ node: undefined, scheduled: new Map() }, blocks('u1'), evict, {
        now: at(60),
        progressed: false,
      }),
      { changed: [], failed: new Map() },
    );
  });

  test('keep waiting when a delta confirms them, and do not when their deadline changes', () => {
    const first = blocked(partition, ['u1'], at(60));
    const [confirmed] = planned(first, podDelta(61)).confirm;
    assert.deepEqual(confirmed?.blocked, first.scheduled.get(pod().uid)?.blocked);
    const longer = podDelta(61, { pod: pod('u1', { tolerations: [] }), taints: [] });
    assert.equal(planned(first, longer).cancel.length, 1);
  });

  test('do not count the time for which they are held', () => {
    const [first] = blocked(partition, ['u1'], at(60)).scheduled.values();
    assert.ok(first);
    const stop = { kind: 'stopped', scope: 'fleet' } as const;
    const held: EvictionRecord = { ...first, held: { by: stop, since: at(70) } };
    const stopped = { ...partition, scheduled: new Map([[held.uid, held]]) };
    const [freed] = planned(stopped, nodeDelta(100, { pods }), {}, rules).free;
    assert.equal(freed?.blocked?.since, at(60 + 30));
  });

  test('have at most one timer for their node, for any deadlines and any length of blocking', () => {
    const steps = fc.array(
      fc.record({ waitMs: fc.integer({ min: 0, max: 4_000 }), uid: fc.constantFrom('u1', 'u2', 'u3') }),
      { minLength: 1, maxLength: 60 },
    );
    fc.assert(
      fc.property(steps, (newlyDue) => {
        let state = { ...partition };
        let now = at(60);
        const timers: EpochMs[] = [];
        for (const { waitMs, uid } of newlyDue) {
          now += waitMs;
          while (timers[0] !== undefined && timers[0] <= now) {
            const moment = timers.shift() as EpochMs;
            const requested = dueOf(state, moment).filter((each) => each.blocked);
            const next = blocked(
              state,
              requested.map((each) => each.uid),
              moment,
            );
            if (next.armAt !== undefined) timers.push(next.armAt);
            state = next;
          }
          if (state.scheduled.get(pod(uid).uid)?.blocked) continue;
          const next = blocked(state, [uid], now);
          if (next.armAt !== undefined) timers.push(next.armAt);
          state = next;
          assert.equal(timers.length, 1);
          const waiting = {
            ...state,
            scheduled: new Map([...state.scheduled].filter(([, each]) => each.blocked)),
          };
          assert.equal(nextMomentOf(waiting, now), timers[0]);
        }
      }),
    );
  });
});

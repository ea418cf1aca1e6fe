import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { effectiveDeadline, podDeadlines } from '#shared/eviction/pod-deadline.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { INT64_MAX } from '#shared/taints/int64.ts';
import { after, at, podDelta, recordIn, rules, taint, tolerating } from './builders.ts';

const scheduledFor = (dueAt: number): EvictionRecord => ({
  ...(recordIn(after(podDelta(1))) as EvictionRecord),
  dueAt,
});
const timed = (key: string, value?: string) => ({ ...taint(key, 0, value), since: at(0) });

test('lists the causes of a deadline: taint, start, knowledge, and toleration', () => {
  const deadlineOf = podDeadlines([timed('a', 'x'), timed('b'), timed('c')], undefined, rules);
  const tolerations = [tolerating('c'), tolerating('a', 5), tolerating('b', 5)];
  const reason = { since: at(0), known: 'added', seconds: 5 };
  assert.deepEqual(deadlineOf(tolerations, at(0)), {
    at: at(5),
    causes: [
      { ...reason, taint: { key: 'a', value: 'x', effect: 'NoExecute' }, toleration: 1 },
      { ...reason, taint: { key: 'b', effect: 'NoExecute' }, toleration: 2 },
    ],
  });
});

test('lists no toleration in the cause of an untolerated taint', () => {
  const [reason] = podDeadlines([timed('a')], undefined, rules)([], at(0))?.causes ?? [];
  assert.ok(reason);
  assert.ok(!('toleration' in reason));
  assert.equal(reason.seconds, 0);
});

test('clamps a deadline beyond all dates to the last date, which is a safe integer', () => {
  const deadlineOf = podDeadlines([timed('a')], undefined, rules);
  const huge = deadlineOf([{ ...tolerating('a'), tolerationSeconds: INT64_MAX - 1n }], at(0));
  assert.equal(huge?.at, 8_640_000_000_000_000);
  assert.equal(huge.causes[0]?.seconds, Number.MAX_SAFE_INTEGER);
});

test('applies the taints of a deleted node to pods bound until exactly the deletion', () => {
  const deadlineOf = podDeadlines([timed('a')], at(20), rules);
  assert.equal(deadlineOf([], at(20))?.at, at(20));
  assert.equal(deadlineOf([], at(20) + 1), undefined);
});

describe('the stored deadline', () => {
  const moment = fc.integer({ min: 0, max: 50 });
  const known = fc.option(moment.map(scheduledFor), { nil: undefined });

  test('is never before the deadline, and equals the deadline unless that has passed', () => {
    fc.assert(
      fc.property(moment, moment, known, (deadline, observed, scheduled) => {
        const stored = effectiveDeadline(deadline, observed, scheduled);
        assert.ok(stored >= deadline);
        if (deadline >= observed) assert.equal(stored, deadline);
        else assert.ok(stored <= observed);
      }),
    );
  });

  test('does not move once it has passed, for repeated deltas', () => {
    fc.assert(
      fc.property(moment, moment, moment, known, (deadline, observed, laterMs, scheduled) => {
        const stored = effectiveDeadline(deadline, observed, scheduled);
        assert.equal(effectiveDeadline(deadline, observed + laterMs, scheduledFor(stored)), stored);
      }),
    );
  });
});

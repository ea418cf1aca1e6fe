import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Played, type TimelineCase, timelineCase } from '#test/conformance/timeline.ts';
import { compareTimeline } from '#test/conformance/timeline-comparison.ts';

function expecting(
  deletions: TimelineCase['expect']['deletions'],
  cancellations: TimelineCase['expect']['cancellations'] = [],
  cancellationsOptional = false,
): TimelineCase {
  const expect = { deletions, cancellations };
  return timelineCase.parse({ id: 'case', events: [], until: 100, expect, cancellationsOptional });
}

const played = (given: Partial<Played>): Played => ({
  deletions: [],
  cancellations: [],
  wrongUid: [],
  ...given,
});
const cancelled = (t: number, because = 'taint-removed', uid = 'u1') => ({
  pod: 'default/p',
  t,
  because,
  uid,
});
const removed = { pod: 'default/p', t: 30, because: 'taint-removed' } as const;

const agrees = (given: TimelineCase, what: Partial<Played>): boolean =>
  compareTimeline(given, played(what)) === undefined;

test('deletions are a set, each within a second', () => {
  const given = expecting([
    { uid: 'u1', t: 10 },
    { uid: 'u2', t: 20 },
  ]);
  assert.ok(
    agrees(given, {
      deletions: [
        { uid: 'u2', t: 21 },
        { uid: 'u1', t: 9 },
      ],
    }),
  );
  assert.ok(!agrees(given, { deletions: [{ uid: 'u1', t: 10 }] }));
  assert.ok(
    !agrees(given, {
      deletions: [
        { uid: 'u1', t: 11.1 },
        { uid: 'u2', t: 20 },
      ],
    }),
  );
});

test('a deletion that was not expected is a failure', () => {
  assert.ok(!agrees(expecting([]), { deletions: [{ uid: 'u1', t: 10 }] }));
});

test('a deletion may be late where the case says so, but not early', () => {
  const given = expecting([{ uid: 'u1', t: 10, within: 60 }]);
  assert.ok(agrees(given, { deletions: [{ uid: 'u1', t: 70 }] }));
  assert.ok(!agrees(given, { deletions: [{ uid: 'u1', t: 71 }] }));
  assert.ok(!agrees(given, { deletions: [{ uid: 'u1', t: 8 }] }));
});

test('of several deletions of one pod the first counts', () => {
  const given = expecting([{ uid: 'u1', t: 10 }]);
  assert.ok(
    agrees(given, {
      deletions: [
        { uid: 'u1', t: 10 },
        { uid: 'u1', t: 50 },
      ],
    }),
  );
  assert.ok(
    !agrees(given, {
      deletions: [
        { uid: 'u1', t: 5 },
        { uid: 'u1', t: 10 },
      ],
    }),
  );
});

test('a deletion that reached another pod is a failure, and is shown', () => {
  const mismatch = compareTimeline(expecting([]), played({ wrongUid: ['u2 instead of u1 at 5'] }));
  assert.deepEqual(mismatch?.got, { deletions: [], cancellations: [], wrongUid: ['u2 instead of u1 at 5'] });
});

test('cancellations must be exactly the expected ones', () => {
  const given = expecting([], [removed]);
  assert.ok(agrees(given, { cancellations: [cancelled(31)] }));
  assert.ok(!agrees(given, { cancellations: [] }));
  assert.ok(!agrees(given, { cancellations: [cancelled(30, 'pod-gone')] }));
  assert.ok(!agrees(given, { cancellations: [cancelled(32)] }));
  assert.ok(!agrees(given, { cancellations: [cancelled(30), cancelled(60)] }));
  assert.ok(!agrees(given, { cancellations: [cancelled(30), cancelled(30)] }));
});

test('the uid of a cancellation counts where the case names it', () => {
  const given = expecting([], [{ ...removed, uid: 'u1' }]);
  assert.ok(agrees(given, { cancellations: [cancelled(30)] }));
  assert.ok(!agrees(given, { cancellations: [cancelled(30, 'taint-removed', 'u2')] }));
});

test('a cancellation at the moment its pod is evicted anyway is ignored', () => {
  const given = expecting([{ uid: 'u1', t: 30 }]);
  const deletions = [{ uid: 'u1', t: 30 }];
  assert.ok(agrees(given, { deletions, cancellations: [cancelled(30)] }));
  assert.ok(!agrees(given, { deletions, cancellations: [cancelled(20)] }));
  assert.ok(!agrees(given, { deletions, cancellations: [cancelled(30, 'taint-removed', 'u2')] }));
});

test('optional cancellations may be left out or differ', () => {
  const given = expecting([], [removed], true);
  assert.ok(agrees(given, { cancellations: [] }));
  assert.ok(agrees(given, { cancellations: [cancelled(80, 'pod-gone')] }));
});

test('a delivery that points beyond the events is refused', () => {
  const expect = { deletions: [], cancellations: [] };
  assert.ok(!timelineCase.safeParse({ id: 'case', events: [], until: 1, expect, delivery: [0] }).success);
});

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
const canceled = (t: number, because = 'taint-removed', uid = 'u1') => ({
  pod: 'default/p',
  t,
  because,
  uid,
});
const removed = { pod: 'default/p', t: 30, because: 'taint-removed' } as const;

const agrees = (given: TimelineCase, what: Partial<Played>): boolean =>
  compareTimeline(given, played(what)) === undefined;

test('compares deletions as a set, each within one second', () => {
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

test('reports an unexpected deletion', () => {
  assert.ok(!agrees(expecting([]), { deletions: [{ uid: 'u1', t: 10 }] }));
});

test("accepts a late deletion within the case's tolerance, but not an early one", () => {
  const given = expecting([{ uid: 'u1', t: 10, within: 60 }]);
  assert.ok(agrees(given, { deletions: [{ uid: 'u1', t: 70 }] }));
  assert.ok(!agrees(given, { deletions: [{ uid: 'u1', t: 71 }] }));
  assert.ok(!agrees(given, { deletions: [{ uid: 'u1', t: 8 }] }));
});

test('compares the first of several deletions of a pod', () => {
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

test('reports and prints a deletion that reached another pod', () => {
  const mismatch = compareTimeline(expecting([]), played({ wrongUid: ['u2 instead of u1 at 5'] }));
  assert.deepEqual(mismatch?.got, { deletions: [], cancellations: [], wrongUid: ['u2 instead of u1 at 5'] });
});

test('requires exactly the expected cancellations', () => {
  const given = expecting([], [removed]);
  assert.ok(agrees(given, { cancellations: [canceled(31)] }));
  assert.ok(!agrees(given, { cancellations: [] }));
  assert.ok(!agrees(given, { cancellations: [canceled(30, 'pod-gone')] }));
  assert.ok(!agrees(given, { cancellations: [canceled(32)] }));
  assert.ok(!agrees(given, { cancellations: [canceled(30), canceled(60)] }));
  assert.ok(!agrees(given, { cancellations: [canceled(30), canceled(30)] }));
});

test('compares the UID of a cancellation if the case names it', () => {
  const given = expecting([], [{ ...removed, uid: 'u1' }]);
  assert.ok(agrees(given, { cancellations: [canceled(30)] }));
  assert.ok(!agrees(given, { cancellations: [canceled(30, 'taint-removed', 'u2')] }));
});

test("ignores a cancellation at the time of its pod's eviction", () => {
  const given = expecting([{ uid: 'u1', t: 30 }]);
  const deletions = [{ uid: 'u1', t: 30 }];
  assert.ok(agrees(given, { deletions, cancellations: [canceled(30)] }));
  assert.ok(!agrees(given, { deletions, cancellations: [canceled(20)] }));
  assert.ok(!agrees(given, { deletions, cancellations: [canceled(30, 'taint-removed', 'u2')] }));
});

test('accepts optional cancellations that are missing or different', () => {
  const given = expecting([], [removed], true);
  assert.ok(agrees(given, { cancellations: [] }));
  assert.ok(agrees(given, { cancellations: [canceled(80, 'pod-gone')] }));
});

test('rejects a delivery beyond the events', () => {
  const expect = { deletions: [], cancellations: [] };
  assert.ok(!timelineCase.safeParse({ id: 'case', events: [], until: 1, expect, delivery: [0] }).success);
});

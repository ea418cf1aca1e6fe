import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Breaker, PAUSE_MS } from '#shared/kubernetes/http/breaker.ts';

const NOW = 1_000_000;

/** Makes this number of calls fail, one after the other. */
function failing(breaker: Breaker, times: number, now = NOW): Breaker {
  for (let i = 0; i < times; i++) breaker.failed(breaker.begin(now), now);
  return breaker;
}

test('counts failures from zero after an answer', () => {
  const breaker = failing(new Breaker(), 4);
  breaker.answered();
  assert.equal(failing(breaker, 4).open, false);
});

test('permits one call after each pause, whether or not its result arrives', () => {
  const breaker = failing(new Breaker(), 5);
  assert.equal(breaker.refusesUntil(NOW + PAUSE_MS - 1), NOW + PAUSE_MS);
  assert.equal(breaker.refusesUntil(NOW + PAUSE_MS), undefined);
  breaker.begin(NOW + PAUSE_MS);
  assert.equal(breaker.refusesUntil(NOW + PAUSE_MS), NOW + 2 * PAUSE_MS);
  assert.equal(breaker.refusesUntil(NOW + 2 * PAUSE_MS), undefined);
});

test('is closed by an answer of another process, unless a later call failed', () => {
  const breaker = failing(new Breaker(), 5);
  assert.equal(breaker.open, true);
  breaker.answeredElsewhere(NOW - 1);
  assert.equal(breaker.open, true);
  const begun = breaker.begin(NOW);
  breaker.answeredElsewhere(NOW + 1);
  assert.equal(breaker.open, false);
  for (let calls = 0; calls < 5; calls++) breaker.failed(begun, NOW + 2);
  assert.equal(breaker.open, false);
});

test('does not lengthen the pause when the clock is set back', () => {
  const breaker = failing(new Breaker(), 5);
  assert.equal(breaker.refusesUntil(NOW - 3_600_000), undefined);
});

test('never blocks for longer than one pause', () => {
  const step = fc.record({
    kind: fc.constantFrom('begin', 'fail', 'answer'),
    afterMs: fc.integer({ min: -10_000, max: 10_000 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const breaker = new Breaker();
      const begun: number[] = [];
      let now = NOW;
      for (const { kind, afterMs } of steps) {
        now += afterMs;
        if (kind === 'begin' && breaker.refusesUntil(now) === undefined) begun.push(breaker.begin(now));
        else if (kind === 'fail') breaker.failed(begun.shift() ?? 0, now);
        else if (kind === 'answer') breaker.answered();
        const until = breaker.refusesUntil(now);
        assert.ok(until === undefined || (until > now && until <= now + PAUSE_MS));
        assert.ok(until === undefined || breaker.open);
      }
    }),
  );
});

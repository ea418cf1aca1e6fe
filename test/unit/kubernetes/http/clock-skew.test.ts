import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ClockSkew } from '#shared/kubernetes/http/clock-skew.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';

const NOW = Date.UTC(2026, 10, 21, 11, 13, 53, 789);

interface Exchange {
  /** Time since the previous exchange. */
  readonly afterMs: number;
  readonly thereMs: number;
  readonly backMs: number;
}

const exchange = fc.record({
  afterMs: fc.integer({ min: 0, max: 20_000 }),
  thereMs: fc.integer({ min: 0, max: 400 }),
  backMs: fc.integer({ min: 0, max: 400 }),
});
const exchanges = (minLength = 0) => fc.array(exchange, { minLength, maxLength: 60 });
const skew = fc.integer({ min: -3_600_000, max: 3_600_000 });

/** Passes `estimator` the answers of a server whose clock is `skewMs` ahead and runs `drift` faster. Returns the time afterwards. */
function talk(
  estimator: ClockSkew,
  skewMs: number,
  drift: number,
  answers: readonly Exchange[],
  startAt = NOW,
): number {
  let now = startAt;
  for (const { afterMs, thereMs, backMs } of answers) {
    const sentAt = now + afterMs;
    const servedAt = sentAt + thereMs;
    const served = servedAt + skewMs + drift * (servedAt - startAt);
    now = servedAt + backMs;
    estimator.receive({ sentAt, receivedAt: now, date: Math.floor(served / 1000) * 1000 });
  }
  return now;
}

/** Answers at different parts of a second. */
const SPREAD = Array.from({ length: 20 }, () => ({ afterMs: 137, thereMs: 2, backMs: 2 }));

/**
 * A clock that was set by at least this much contradicts the estimate within eight answers 141 ms apart. Twelve answers
 * then remain for a new estimate. A clock that was set by less may contradict the estimate only with the last answer.
 */
const SOON_CONTRADICTED_MS = 300;

describe('the skew of a clock', () => {
  test('is unknown at first', () => assert.equal(new ClockSkew().at(NOW), undefined));

  test('is accurate to 500 ms whenever it is known, for any exchanges and drift', () => {
    const drift = fc.double({ min: -1e-4, max: 1e-4, noNaN: true });
    fc.assert(
      fc.property(skew, drift, exchanges(), (skewMs, drifting, answers) => {
        const estimator = new ClockSkew();
        const now = talk(estimator, skewMs, drifting, answers);
        const estimate = estimator.at(now);
        assert.ok(estimate === undefined || Math.abs(estimate - (skewMs + drifting * (now - NOW))) <= 501);
      }),
      { numRuns: 1000 },
    );
  });

  test('is accurate to 150 ms after ten answers at different parts of a second', () => {
    fc.assert(
      fc.property(skew, fc.integer({ min: 0, max: 20 }), (skewMs, tripMs) => {
        const estimator = new ClockSkew();
        const answers = Array.from({ length: 10 }, () => ({ afterMs: 110, thereMs: tripMs, backMs: tripMs }));
        const estimate = estimator.at(talk(estimator, skewMs, 0, answers));
        assert.ok(estimate !== undefined && Math.abs(estimate - skewMs) <= 150, `${estimate} of ${skewMs}`);
      }),
    );
  });

  test('is estimated after a clock was set as after a start', () => {
    fc.assert(
      fc.property(skew, fc.oneof(skew, fc.integer({ min: -2000, max: 2000 })), (before, setBy) => {
        const after = before + setBy;
        const estimator = new ClockSkew();
        const setAt = talk(estimator, before, 0, SPREAD);
        const estimate = estimator.at(talk(estimator, after, 0, SPREAD, setAt));
        if (Math.abs(setBy) >= SOON_CONTRADICTED_MS)
          assert.ok(estimate !== undefined && Math.abs(estimate - after) <= 150, `${estimate} of ${after}`);
        else
          assert.ok(estimate === undefined || Math.abs(estimate - after) <= 501, `${estimate} of ${after}`);
      }),
    );
  });

  test('has a lower bound from the first answer on', () => {
    const estimator = new ClockSkew();
    assert.equal(estimator.leastAt(NOW), undefined);
    estimator.receive({ sentAt: NOW, receivedAt: NOW + 300, date: NOW + 60_000 });
    assert.equal(estimator.leastAt(NOW + 300), 59_700);
  });

  test('expires after minutes without an answer', () => {
    const estimator = new ClockSkew();
    const now = talk(estimator, 5_000, 0, SPREAD);
    assert.notEqual(estimator.at(now + 5 * 60_000), undefined);
    assert.equal(estimator.at(now + 10 * 60_000), undefined);
  });

  test('ignores an answer during which the local clock was set back', () => {
    const estimator = new ClockSkew();
    estimator.receive({ sentAt: NOW, receivedAt: NOW - 60_000, date: NOW });
    assert.equal(estimator.at(NOW), undefined);
  });

  /** Passes an estimator the answers of alternating servers, each with its own skew. */
  function servedBy(skews: readonly number[], answers: number, tripMs: number) {
    const estimator = new ClockSkew();
    let now = NOW;
    for (let index = 0; index < answers; index++) {
      const skewMs = skews[index % skews.length] ?? 0;
      now = talk(estimator, skewMs, 0, [{ afterMs: 137, thereMs: tripMs, backMs: tripMs }], now);
    }
    return { estimator, now };
  }

  test('covers each of several API servers, however their answers alternate', () => {
    fc.assert(
      fc.property(
        fc.array(skew, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 3_000 }),
        (skews, tripMs) => {
          const { estimator, now } = servedBy(skews, 40, tripMs);
          const ranges = estimator.rangesAt(now);
          for (const skew of skews) {
            const nearest = Math.min(
              ...ranges.map(({ leastMs, mostMs }) => Math.max(leastMs - skew, skew - mostMs, 0)),
            );
            // Clocks that differ by less than the uncertainty of an answer may count as one clock.
            assert.ok(
              nearest <= 2 * tripMs + 1_000,
              `${skew} is ${nearest} ms from ${JSON.stringify(ranges)}`,
            );
          }
        },
      ),
    );
  });

  test('covers both clocks for ten minutes after the last answer of one of two API servers', () => {
    const { estimator, now } = servedBy([0, 240_000], 20, 2);
    assert.equal(estimator.rangesAt(now).length, 2);
    const later = talk(estimator, 0, 0, [{ afterMs: 9 * 60_000, thereMs: 2, backMs: 2 }], now);
    assert.equal(estimator.rangesAt(later).length, 2);
    const last = talk(estimator, 0, 0, [{ afterMs: 2 * 60_000, thereMs: 2, backMs: 2 }], later);
    assert.equal(estimator.rangesAt(last).length, 1);
  });

  test('keeps its precision when slow answers are less precise', () => {
    const { estimator, now } = servedBy([5_000], 20, 2);
    const [before] = estimator.rangesAt(now);
    const later = talk(estimator, 5_000, 0, [{ afterMs: 10, thereMs: 4_000, backMs: 4_000 }], now);
    const [after, ...others] = estimator.rangesAt(later);
    assert.equal(others.length, 0);
    assert.ok(before && after && after.mostMs - after.leastMs <= before.mostMs - before.leastMs + 20);
  });

  test('uses bounded memory for a server with arbitrary times and omits none of its times', () => {
    const skews = Array.from({ length: 40 }, (_, index) => index * 100_000);
    const { estimator, now } = servedBy(skews, 40, 2);
    const ranges = estimator.rangesAt(now);
    assert.ok(ranges.length <= 8);
    assert.ok(Math.min(...ranges.map(({ leastMs }) => leastMs)) <= 0);
    assert.ok(Math.max(...ranges.map(({ mostMs }) => mostMs)) >= 3_900_000);
  });

  test('follows a change of the local clock immediately, in both directions', () => {
    const clock = new SteppedClock(NOW);
    const estimator = new ClockSkew(clock);
    const receive = () => estimator.receive({ sentAt: clock.now(), receivedAt: clock.now() + 20, date: NOW });
    receive();
    const [before] = estimator.rangesAt(clock.now());
    clock.set(120_000);
    assert.deepEqual(estimator.rangesAt(clock.now()), [
      { leastMs: (before?.leastMs ?? 0) - 120_000, mostMs: (before?.mostMs ?? 0) - 120_000 },
    ]);
    clock.set(-120_000);
    assert.deepEqual(estimator.rangesAt(clock.now()), [before]);
  });
});

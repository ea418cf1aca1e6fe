import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { durationMs, durationText } from '#shared/time/duration.ts';

test('parses days, hours, minutes, and seconds, in this order', () => {
  assert.equal(durationMs('90s'), 90_000);
  assert.equal(durationMs('1d2h3m4s'), 93_784_000);
  assert.equal(durationMs('0s'), 0);
  for (const text of ['', '5', '5 m', '1.5h', '-1m', '1m1h', '1w', 'm']) {
    assert.equal(durationMs(text), undefined, text);
  }
});

test('parses formatted durations back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e9 }), (seconds) => {
      assert.equal(durationMs(durationText(seconds * 1000)), seconds * 1000);
    }),
  );
});

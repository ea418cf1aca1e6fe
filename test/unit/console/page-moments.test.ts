import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countdownText, counted, roughText, spanText } from '#functions/console/page/moments.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

test('ends a countdown exactly when no time remains', () => {
  const cases: readonly [number, string][] = [
    [-5 * SECOND_MS, '0:00'],
    [0, '0:00'],
    [1, '0:01'],
    [59 * SECOND_MS + 1, '1:00'],
    [12 * MINUTE_MS + 30 * SECOND_MS, '12:30'],
    [3 * HOUR_MS, '3:00:00'],
    [98 * HOUR_MS, '4 d 2 h'],
  ];
  for (const [ms, text] of cases) assert.equal(countdownText(ms), text);
});

test('formats a duration in its two largest units, or roughly in its largest', () => {
  assert.equal(spanText(40), '40 ms');
  assert.equal(spanText(7 * SECOND_MS), '7 s');
  assert.equal(spanText(12 * MINUTE_MS + 30 * SECOND_MS), '12 min 30 s');
  assert.equal(spanText(2 * HOUR_MS + 59 * SECOND_MS), '2 h');
  assert.equal(roughText(12 * MINUTE_MS + 30 * SECOND_MS), '12 min');
});

test('formats a count with the singular or plural', () => {
  assert.equal(counted(1, 'pod'), '1 pod');
  assert.equal(counted(10_000, 'pod'), '10,000 pods');
  assert.equal(counted(2, 'entry', 'entries'), '2 entries');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted, momentText, zone } from '#functions/console/page/moments.ts';

test('formats a count with the singular or plural', () => {
  assert.equal(counted(1, 'pod'), '1 pod');
  assert.equal(counted(10_000, 'pod'), '10,000 pods');
  assert.equal(counted(2, 'entry', 'entries'), '2 entries');
});

test('formats times in UTC, or in local time with its offset, and those of other days with their date', (t) => {
  t.after(() => {
    zone.value = 'UTC';
  });
  const now = Date.parse('2026-07-01T10:00:00Z');
  const shown = () => [momentText(now, now), momentText(now + 86_400_000, now)];
  assert.deepEqual(shown(), ['10:00:00Z', '2026-07-02 10:00:00Z']);
  zone.value = 'local';
  for (const [offset, time] of [
    [0, '10:00:00Z'],
    [-120, '12:00:00+02'],
    [-330, '15:30:00+05:30'],
    [240, '06:00:00-04'],
  ] as const) {
    t.mock.method(Date.prototype, 'getTimezoneOffset', () => offset);
    assert.deepEqual(shown(), [time, `2026-07-02 ${time}`]);
  }
});

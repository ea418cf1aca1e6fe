import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOn, modeOf } from '#shared/eviction/gate.ts';

test('keeps a rule in force until its end, and indefinitely without an end', () => {
  assert.deepEqual([isOn(10, 9), isOn(10, 10), isOn(undefined, 10)], [true, false, true]);
});

test('treats an expired pause as enforce, and lets no other mode expire', () => {
  const paused = { mode: 'paused', pausedUntil: 10 } as const;
  assert.deepEqual([modeOf(paused, 9), modeOf(paused, 10)], ['paused', 'enforce']);
  assert.equal(modeOf({ mode: 'paused' }, 10), 'paused');
  assert.equal(modeOf({ mode: 'observe' }, 10), 'observe');
  assert.equal(modeOf({ mode: 'observe', pausedUntil: 10 }, 10), 'observe');
});

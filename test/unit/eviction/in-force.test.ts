import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOn, modeOf } from '#shared/eviction/in-force.ts';

test('what ends counts until its moment, and what does not for ever', () => {
  assert.deepEqual([isOn(10, 9), isOn(10, 10), isOn(undefined, 10)], [true, false, true]);
});

test('a pause that is over is no pause, and nothing else ends by itself', () => {
  const paused = { mode: 'paused', pausedUntil: 10 } as const;
  assert.deepEqual([modeOf(paused, 9), modeOf(paused, 10)], ['paused', 'enforce']);
  assert.equal(modeOf({ mode: 'paused' }, 10), 'paused');
  assert.equal(modeOf({ mode: 'observe' }, 10), 'observe');
  assert.equal(modeOf({ mode: 'observe', pausedUntil: 10 }, 10), 'observe');
});

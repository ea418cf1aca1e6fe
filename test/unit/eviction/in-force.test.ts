import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOn } from '#shared/eviction/gate.ts';

test('keeps a rule in force until its end, and indefinitely without an end', () => {
  assert.deepEqual([isOn(10, 9), isOn(10, 10), isOn(undefined, 10)], [true, false, true]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoffMs } from '#shared/time/backoff.ts';

const backoff = { firstMs: 100, longestMs: 1000 };

test('doubles delays up to the maximum', () => {
  const waits = [1, 2, 3, 4, 5, 2000].map((failures) => backoffMs(failures, backoff, 1));
  assert.deepEqual(waits, [100, 200, 400, 800, 1000, 1000]);
});

test('reduces a delay by at most half at random', () => {
  assert.equal(backoffMs(1, backoff, 0), 50);
  assert.equal(backoffMs(2000, backoff, 0), 500);
});

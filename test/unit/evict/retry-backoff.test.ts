import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_RETRY_SECONDS, retryDelaySeconds } from '#functions/evict/retry-backoff.ts';

const receives = fc.integer({ min: 1, max: 1000 });
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test('delays are whole seconds, at least one and at most five minutes', () => {
  fc.assert(
    fc.property(receives, fc.option(fc.nat(), { nil: undefined }), random, (count, asked, given) => {
      const seconds = retryDelaySeconds(count, asked, given);
      assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_RETRY_SECONDS);
    }),
  );
});

test('they double, jittered by up to a half', () => {
  assert.deepEqual(
    [1, 2, 3, 4, 9, 10, 1000].map((count) => retryDelaySeconds(count, undefined, 1)),
    [1, 2, 4, 8, 256, 300, 300],
  );
  assert.equal(retryDelaySeconds(10, undefined, 0), 150);
});

test('what the server asked for is the least', () => {
  assert.equal(retryDelaySeconds(1, 42, 0), 42);
  assert.equal(retryDelaySeconds(10, 42, 0), 150);
});

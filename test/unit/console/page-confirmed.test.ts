import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isConfirmed } from '#functions/console/page/confirmed.ts';

const evicting = (evictedNow: number) => ({ pods: { evictedNow } });

test('requires a new confirmation when no preview was shown or the number of evictions grew', () => {
  assert.equal(isConfirmed(undefined, evicting(0)), false);
  assert.equal(isConfirmed(evicting(2), evicting(3)), false);
  assert.equal(isConfirmed(evicting(2), evicting(2)), true);
  assert.equal(isConfirmed(evicting(2), evicting(1)), true);
});

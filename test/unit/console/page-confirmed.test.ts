import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isConfirmed } from '#functions/console/page/confirmed.ts';

const evicting = (evictedNow: number, confirm = '') => ({ pods: { evictedNow }, confirm });

test('requires a new confirmation when no preview was shown or the number of evictions grew', () => {
  assert.equal(isConfirmed('stop', undefined, evicting(0)), false);
  assert.equal(isConfirmed('stop', evicting(2), evicting(3)), false);
  assert.equal(isConfirmed('stop', evicting(2), evicting(2, 'other')), true);
  assert.equal(isConfirmed('stop', evicting(2), evicting(1)), true);
});

test('requires a new confirmation when the objects whose tolerations are changed are other ones', () => {
  assert.equal(isConfirmed('change-tolerations', evicting(0, 'a'), evicting(0, 'a')), true);
  assert.equal(isConfirmed('change-tolerations', evicting(0, 'a'), evicting(0, 'b')), false);
});

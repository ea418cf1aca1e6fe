import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted } from '#functions/console/page/moments.ts';

test('formats a count with the singular or plural', () => {
  assert.equal(counted(1, 'pod'), '1 pod');
  assert.equal(counted(10_000, 'pod'), '10,000 pods');
  assert.equal(counted(2, 'entry', 'entries'), '2 entries');
});

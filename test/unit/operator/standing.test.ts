import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STANDING } from '#functions/console/page/words.ts';
import { standingOf } from '#functions/operator/standing.ts';
import { after, at, nodeDelta, recordIn } from '#test/unit/eviction/builders.ts';

const by = { kind: 'node-alive', renewedAt: at(50), until: at(90), revision: 1, guardRevision: 0 } as const;

test('the console shows a pod that is held because its node is alive as such', () => {
  const record = recordIn(after(nodeDelta(1)));
  assert.ok(record);
  const { standing, note } = standingOf({ ...record, held: { by, since: at(61) } }, undefined, at(61));
  assert.deepEqual([standing, note], ['node-alive', 'its Lease was renewed 2026-01-01T00:00:50Z']);
  assert.equal(STANDING[standing].text, 'on a live node');
});

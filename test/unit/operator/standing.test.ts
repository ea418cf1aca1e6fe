import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STANDING } from '#functions/console/page/words.ts';
import { standingOf } from '#functions/operator/standing.ts';
import { after, at, nodeDelta, recordIn } from '#test/unit/eviction/builders.ts';

const by = { kind: 'node-alive', renewedAt: at(50), until: at(90), revision: 1, guardRevision: 0 } as const;

test('the console shows a pod that is held because its node is alive as such', () => {
  const record = recordIn(after(nodeDelta(1)));
  assert.ok(record);
  const { state, note } = standingOf({ record, brakes: [by] }, undefined, at(61));
  assert.equal(state, 'node-alive');
  assert.match(note, /^its node, which is alive: its Lease was renewed at 2026-01-01T00:00:50Z/);
  assert.equal(STANDING[state].text, 'on a live node');
});

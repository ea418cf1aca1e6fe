import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STANDING } from '#functions/console/page/words.ts';
import { heldText } from '#shared/eviction/skew.ts';
import { pendingStateOf } from '#shared/operations/look/pending-state.ts';
import { after, at, nodeDelta, recordIn } from '#test/unit/eviction/builders.ts';

const by = { kind: 'node-alive', renewedAt: at(50), until: at(90), revision: 1, guardRevision: 0 } as const;

test('shows a due pod under clock skew as such, and an earlier one as scheduled', () => {
  const partition = after(nodeDelta(1));
  const record = recordIn(partition);
  assert.ok(record && partition.node);
  const error = heldText([{ leastMs: 60_000, mostMs: 60_000 }]);
  const retry = { attempts: 1, nextTryAt: at(90), since: at(60), error, everything: true };
  const look = { record, gates: [], state: { ...partition.node, retry } };
  assert.deepEqual(pendingStateOf(look, undefined, at(61)), { state: 'retrying', note: error });
  assert.equal(pendingStateOf(look, undefined, at(59)).state, 'scheduled');
});

test("shows a pod of a live node as held by the node's Lease", () => {
  const record = recordIn(after(nodeDelta(1)));
  assert.ok(record);
  const { state, note } = pendingStateOf({ record, gates: [by] }, undefined, at(61));
  assert.equal(state, 'node-alive');
  assert.match(note, /^its node, which is alive: its Lease was renewed at 2026-01-01T00:00:50Z/);
  assert.equal(STANDING[state].text, 'on a live node');
});

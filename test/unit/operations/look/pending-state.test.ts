import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STATE_WORDS } from '#functions/console/page/words.ts';
import { heldText } from '#shared/eviction/skew.ts';
import { pendingStateOf } from '#shared/operations/look/pending-state.ts';
import { after, at, nodeDelta, recordIn } from '#test/unit/eviction/builders.ts';

const gate = { kind: 'node-alive', renewedAt: at(50), until: at(90), revision: 1, guardRevision: 0 } as const;

test('shows a due pod under clock skew as such, and an earlier one as scheduled', () => {
  const partition = after(nodeDelta(1));
  const record = recordIn(partition);
  assert.ok(record && partition.node);
  const error = heldText([{ leastMs: 60_000, mostMs: 60_000 }]);
  const retry = { attempts: 1, nextTryAt: at(90), since: at(60), error, everything: true };
  const pending = { record, gates: [], state: { ...partition.node, retry } };
  assert.deepEqual(pendingStateOf(pending, undefined, at(61)), { state: 'retrying', note: error });
  assert.equal(pendingStateOf(pending, undefined, at(59)).state, 'scheduled');
});

test('shows when and why a due pod is retried', () => {
  const partition = after(nodeDelta(1));
  const record = recordIn(partition);
  assert.ok(record && partition.node);
  const { node } = partition;
  const failure = { since: at(60), error: 'denied' };
  const retry = { attempts: 1, nextTryAt: at(90), since: at(60), error: 'others', everything: false };
  const outage = { ...retry, everything: true, error: 'refused', nextTryAt: at(80), triedAt: at(60) };
  const noteOf = (fields: object, tries: object) => {
    const pending = { record: { ...record, ...fields }, gates: [], state: { ...node, ...tries } };
    const { state, note } = pendingStateOf(pending, undefined, at(61));
    return state === 'due' ? state : `${state}: ${note}`;
  };
  const silent = 'retrying: retrying at 2026-01-01T00:01:20Z: the API server does not answer: refused';
  assert.equal(noteOf({}, { outage }), silent);
  assert.equal(noteOf({}, { outage, retry }), silent);
  assert.equal(noteOf({}, { retry }), 'due');
  for (const tries of [{ retry }, { retry, outage }])
    assert.equal(noteOf({ failure }, tries), 'retrying: retrying at 2026-01-01T00:01:30Z: denied');
  const everything = { ...retry, everything: true };
  assert.equal(noteOf({}, { retry: everything }), 'retrying: retrying at 2026-01-01T00:01:30Z: others');
  const earlier = { record, gates: [], state: { ...node, outage } };
  assert.equal(pendingStateOf(earlier, undefined, at(59)).state, 'scheduled');
});

test("shows a pod of a live node as held by the node's Lease", () => {
  const record = recordIn(after(nodeDelta(1)));
  assert.ok(record);
  const { state, note } = pendingStateOf({ record, gates: [gate] }, undefined, at(61));
  assert.equal(state, 'node-alive');
  assert.match(note, /^its node, which is alive: its Lease was renewed at 2026-01-01T00:00:50Z/);
  assert.equal(STATE_WORDS[state].text, 'on a live node');
});

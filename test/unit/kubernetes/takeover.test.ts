import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_LAPSE_SECONDS, renewalPatch } from '#shared/kubernetes/takeover.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

const LAPSE_MS = DEFAULT_LAPSE_SECONDS * 1000;

/** Returns the start of the active period of a takeover that was last renewed this long ago and is renewed now. */
function aliveSince(heartbeatAgeMs: number, before = NOW - 3_600_000): number {
  const takeover = { resourceVersion: '1', keys: [], lapseMs: LAPSE_MS, heartbeat: NOW - heartbeatAgeMs };
  const { spec } = renewalPatch({ ...takeover, aliveSince: before }, NOW) as { spec: { aliveSince: string } };
  return Date.parse(spec.aliveSince);
}

test('keeps the start of the active period in a timely renewal', () => {
  assert.equal(aliveSince(LAPSE_MS - 1), NOW - 3_600_000);
});

test('restarts the active period in a renewal after the heartbeat expired', () => {
  assert.equal(aliveSince(LAPSE_MS), NOW);
});

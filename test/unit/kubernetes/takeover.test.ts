import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_LAPSE_SECONDS, renewalPatch } from '#shared/kubernetes/takeover.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

const LAPSE_MS = DEFAULT_LAPSE_SECONDS * 1000;

/** Since when a takeover counts as alive that was last renewed so long ago, and renewed now. */
function aliveSince(heartbeatAgeMs: number, before = NOW - 3_600_000): number {
  const takeover = { resourceVersion: '1', keys: [], lapseMs: LAPSE_MS, heartbeat: NOW - heartbeatAgeMs };
  const { spec } = renewalPatch({ ...takeover, aliveSince: before }, NOW) as { spec: { aliveSince: string } };
  return Date.parse(spec.aliveSince);
}

test('a takeover that is renewed in time is alive since it was', () => {
  assert.equal(aliveSince(LAPSE_MS - 1), NOW - 3_600_000);
});

test('a takeover that is renewed after its heartbeat has lapsed is alive since now', () => {
  assert.equal(aliveSince(LAPSE_MS), NOW);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';

test('defaults to observe mode with a guard and the delete method', () => {
  assert.deepEqual(DEFAULT_POLICY, {
    mode: 'observe',
    guard: {
      dryRun: false,
      cluster: { percent: 20, nodes: 3 },
      zone: { percent: 55, nodes: 3 },
      customTaints: { percent: 30, nodes: 5, windowMs: 10 * 60_000 },
    },
    releaseRate: 50,
    exclude: [],
    include: [],
    method: { kind: 'delete' },
    tolerationSecondsOverrides: {},
    requireExpiredLease: true,
    treatAsNoExecute: [],
    giveUpAfterMs: 4 * 24 * 3_600_000,
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';

test('defaults to observe mode with a guard and the delete method', () => {
  assert.deepEqual(DEFAULT_POLICY, {
    mode: 'observe',
    guard: {
      shadow: false,
      cluster: { percent: 20, nodes: 3 },
      zone: { percent: 55, nodes: 3 },
      people: { percent: 30, nodes: 5, withinMs: 10 * 60_000 },
    },
    drain: 50,
    exclude: [],
    only: [],
    method: { kind: 'delete' },
    tolerationSeconds: {},
    virtualKeys: [],
    giveUpAfterMs: 4 * 24 * 3_600_000,
  });
});

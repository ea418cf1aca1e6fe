import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';

test('a cluster of which nobody has said anything is observed, under the guard, and would be drained by deletion', () => {
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

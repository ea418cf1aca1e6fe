import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { auditSchema } from '#shared/state/stored-rules.ts';

test("an audit entry of a newer release's kind is read as a policy entry with its text", () => {
  const entry = { cluster: clusterName('prod'), actor: 'anna', at: 1, message: 'cordoned node-1' } as const;
  assert.deepEqual(auditSchema.parse({ ...entry, kind: 'takeover-applied', node: 7 }), {
    ...entry,
    kind: 'takeover-applied',
  });
  for (const kind of ['node-cordoned', 7, null])
    assert.deepEqual(auditSchema.parse({ ...entry, kind }), { ...entry, kind: 'policy' });
});

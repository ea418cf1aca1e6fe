import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as z from 'zod';
import { clusterName } from '#shared/eviction/identity.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { auditSchema, storedAudit } from '#shared/state/stored-rules.ts';

const entry = { cluster: clusterName('prod'), who: 'anna', at: 1, what: 'registered the cluster' } as const;
const kinds: readonly AuditEntry['kind'][] = [
  ...(['policy', 'stop', 'resume', 'hold', 'release', 'release-guard', 'retry'] as const),
  ...(['guard-tripped', 'guard-calm'] as const),
  ...(['cluster-added', 'cluster-removed', 'takeover-applied', 'takeover-released'] as const),
];

/** The schema by which releases before `cluster-added` read an entry. */
const formerSchema = z.object({
  cluster: z.string(),
  who: z.string(),
  at: z.number(),
  kind: z.enum(kinds.slice(0, 9)),
  what: z.string(),
});

test('an entry of each kind is readable for this release and earlier ones', () => {
  for (const kind of kinds) {
    const stored = storedAudit({ ...entry, kind });
    assert.deepEqual(auditSchema.parse(stored), { ...entry, kind });
    assert.equal(formerSchema.parse(stored).what, entry.what);
  }
});

test("an entry of a newer release's kind is read as its fallback kind", () => {
  for (const does of ['node-cordoned', 7, null])
    assert.deepEqual(auditSchema.parse({ ...entry, kind: 'policy', does }), { ...entry, kind: 'policy' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { parseStored, recordSchema } from '#shared/state/stored.ts';
import { after, at, nodeDelta, recordIn, ref } from '#test/unit/eviction/builders.ts';

const by = { kind: 'node-alive', renewedAt: at(50), until: at(90), revision: 1, guardRevision: 0 } as const;

test('stores, reads, and counts a pod that is held by its live node as such', async () => {
  const record = recordIn(after(nodeDelta(1)));
  assert.ok(record);
  const held = { ...record, held: { by, since: at(61), until: at(90) } };
  assert.deepEqual(parseStored(recordSchema, JSON.parse(JSON.stringify(held)), 'a record'), held);
  const store = new SqliteStore({ path: ':memory:' });
  try {
    await store.commit(ref, 0, { schedule: [held], end: [], live: true }, at(61));
    assert.deepEqual(store.standings(), [{ cluster: ref.cluster, standing: 'node-alive', evictions: 1 }]);
  } finally {
    store.close();
  }
});

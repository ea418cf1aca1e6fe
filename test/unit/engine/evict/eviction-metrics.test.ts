import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { standingMetrics } from '#shared/engine/evict/eviction-metrics.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';

test('counts the evictions of each cluster by state, and keeps 0 for a cluster without evictions', async () => {
  const store = new SqliteStore({ path: ':memory:' });
  const registry = new Registry();
  standingMetrics(registry, store);
  const evictions = async () => {
    const [metric] = await registry.getMetricsAsJSON();
    return Object.fromEntries(metric?.values.map(({ labels, value }) => [labels['state'], value]) ?? []);
  };
  assert.deepEqual(await evictions(), {});

  const held = (kind: 'observe' | 'paused' | 'excluded'): Partial<EvictionRecord> => ({
    held: { by: kind === 'excluded' ? { kind, revision: 1, guardRevision: 0 } : { kind }, since: NOW },
  });
  const states = [{}, {}, held('observe'), held('paused'), held('excluded'), { gaveUpAt: NOW }];
  const records = states.map((state) => ({ ...aRecord(), ...state }));
  const ref = aRef();
  await store.commit(ref, 0, { node: aNode(), schedule: records, end: [], live: true }, NOW);
  assert.deepEqual(await evictions(), { pending: 2, held: 2, 'would-evict': 1, failed: 1 });

  await store.end(
    ref,
    records.map((record) => anEnding(record)),
    NOW,
  );
  assert.deepEqual(await evictions(), { pending: 0, held: 0, 'would-evict': 0, failed: 0 });
  store.close();
});

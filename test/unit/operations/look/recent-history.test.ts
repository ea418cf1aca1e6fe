import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { recentHistory } from '#shared/operations/look/history.ts';
import { aNode, anEnding, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const prod = clusterName('prod');

test('reports the end of a pod for the whole retention, whatever its length', async (t) => {
  const { fleet, store } = embeddedFleet(t, { clusters: ['prod'], clock: new DrivenClock(NOW) });
  const monthAgo = NOW - 30 * 86_400_000;
  const record = aRecord({ name: 'web-9', startedAt: monthAgo, dueAt: monthAgo });
  const ref = aRef(prod);
  await store.commit(ref, 0, { node: aNode(), schedule: [record], end: [], live: true }, monthAgo);
  await store.end(ref, [anEnding(record)], monthAgo);
  const { namespace, name: pod } = record;
  const found = await recentHistory(fleet.history, { cluster: prod, namespace, pod }, NOW);
  assert.deepEqual(
    found.map(({ event }) => event),
    ['scheduled', 'evicted'],
  );
});

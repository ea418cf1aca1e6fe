import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { merged, recentHistory } from '#shared/operations/look/history.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
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

test('merges the newest first into the oldest first: at the same time, acts precede events in their order', () => {
  const ofPod = (at: number, pod: string) => ({ at, pod }) as HistoryEntry;
  const ofCluster = (at: number, message: string) => ({ at, message }) as AuditEntry;
  const found = merged(
    [ofPod(3, 'c'), ofPod(2, 'b'), ofPod(2, 'a')],
    [ofCluster(3, 'third'), ofCluster(2, 'second'), ofCluster(2, 'first')],
  );
  assert.deepEqual(
    found.map(({ entry }) => ('pod' in entry ? entry.pod : entry.message)),
    ['first', 'second', 'a', 'b', 'third', 'c'],
  );
});

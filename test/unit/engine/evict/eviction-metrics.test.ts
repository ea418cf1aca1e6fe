import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { prometheusEvictionMetrics, stateMetrics } from '#shared/engine/evict/eviction-metrics.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import * as names from '#shared/telemetry/metrics.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';

test('counts the evictions of each cluster by state, and keeps 0 for a cluster without evictions', async () => {
  const store = new SqliteStore({ path: ':memory:' });
  const registry = new Registry();
  stateMetrics(registry, store);
  const evictions = async () => {
    const [metric] = await registry.getMetricsAsJSON();
    return Object.fromEntries(metric?.values.map(({ labels, value }) => [labels['state'], value]) ?? []);
  };
  assert.deepEqual(await evictions(), {});

  const held = (by: EvictionGate): Partial<EvictionRecord> => ({ held: { by, since: NOW } });
  const byRules = [
    held({ kind: 'stopped', scope: 'cluster' }),
    held({ kind: 'excluded', revision: 1, guardRevision: 0 }),
  ];
  const states = [{}, {}, held({ kind: 'observe' }), ...byRules, { gaveUpAt: NOW }];
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

test('counts evictions and their failures under the names of the built-in controller and of Taintward', async () => {
  const registry = new Registry();
  const metrics = prometheusEvictionMetrics(registry);
  for (const seconds of [0.01, 0.3, 200, 300]) metrics.put(names.POD_DELETION_DURATION, seconds);
  metrics.put(names.POD_DELETIONS, 4);
  metrics.put(names.API_REFUSALS, 1);
  metrics.put(names.GIVEN_UP, 7);
  metrics.put(names.OUT_OF_REACH, 2);
  metrics.put(names.EVICTION_RETRIES, 3);
  metrics.put(names.RIVALS, 4);
  metrics.put(names.MESSAGES_FAILING, 5);
  metrics.put(names.CLOCK_SKEW, 1.5);
  const text = await registry.metrics();
  assert.deepEqual(
    text.split('\n').filter((line) => line !== '' && !line.startsWith('#')),
    [
      'taint_eviction_controller_pod_deletions_total 4',
      ...[
        ...['0.005"} 0', '0.025"} 1', '0.1"} 1', '0.5"} 2', '1"} 2', '2.5"} 2', '10"} 2', '30"} 2'],
        ...['60"} 2', '120"} 2', '180"} 2', '240"} 3', '+Inf"} 4'],
      ].map((bucket) => `taint_eviction_controller_pod_deletion_duration_seconds_bucket{le="${bucket}`),
      'taint_eviction_controller_pod_deletion_duration_seconds_sum 500.31',
      'taint_eviction_controller_pod_deletion_duration_seconds_count 4',
      'taintward_api_request_errors_total 1',
      'taintward_api_server_unreachable_total 2',
      'taintward_eviction_retries_total 3',
      'taintward_eviction_failures_total 7',
      'taintward_conflicting_installations_total 4',
      'taintward_messages_failing_total 5',
      'taintward_clock_skew_seconds 1.5',
    ],
  );
});

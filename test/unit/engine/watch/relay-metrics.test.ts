import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { OVER_BUDGET, REFUSED_DELTAS, STUCK_PODS, UNSENT_DELTAS } from '#shared/telemetry/metrics.ts';

const [LIVE, DISCONNECTED, STANDBY, GONE] = ['live', 'lost', 'standby', 'gone'].map((name) =>
  clusterName(name),
);

test('exposes each metric with its name, type, help, labels, and value', async () => {
  assert.ok(LIVE && DISCONNECTED && STANDBY && GONE);
  const registry = new Registry();
  const metrics = relayMetrics(registry);
  metrics.observe(() => [
    {
      cluster: LIVE,
      state: { kind: 'live' },
      mode: 'enforce',
      counts: { nodes: 7, tainted: 3, pods: 5 },
      stuck: 2,
      trips: [
        { scope: 'zone', zone: 'a', trippedAt: 1, nodes: 3, outOf: 4 },
        { scope: 'zone', zone: 'b', trippedAt: 1, nodes: 3, outOf: 4 },
        { scope: 'customTaints', trippedAt: 1, nodes: 3, outOf: 4 },
      ],
      faults: [{ type: 'list-failing', since: 1, error: 'it fails' }],
    },
    {
      cluster: DISCONNECTED,
      state: { kind: 'disconnected', since: 1 },
      mode: undefined,
      counts: { nodes: 0, tainted: 0, pods: 0 },
      stuck: 0,
      trips: [],
      faults: [{ type: 'lease-unavailable', since: 1, error: 'it is away' }],
    },
    {
      cluster: STANDBY,
      state: { kind: 'standby' },
      mode: undefined,
      counts: { nodes: 0, tainted: 0, pods: 0 },
      stuck: 0,
      trips: [],
      faults: [],
    },
  ]);
  metrics.begin(LIVE);
  metrics.lists.inc({ cluster: LIVE, resource: 'pods' });
  metrics.watchFailures.inc({ cluster: LIVE, resource: 'nodes' });
  metrics.builtInEvictions.inc({ cluster: LIVE });
  metrics.begin(GONE);
  metrics.end(GONE);
  metrics.sent.inc({ queue: 'node-deltas' }, 4);
  metrics.pending.set({ queue: 'node-deltas' }, 2);
  metrics.load.set(107);
  metrics.refused('node-deltas');
  metrics.unsent('node-deltas', 3);
  metrics.overBudget(9);
  // The runner of mutants has no snapshots.
  assert.equal(
    await registry.metrics(),
    readFileSync(join(import.meta.dirname, 'relay-metrics.txt'), 'utf8'),
  );
});

test('puts what an alarm needs into CloudWatch, too, at once', () => {
  const put: (readonly [string, number] | 'flush')[] = [];
  const metrics = relayMetrics(new Registry(), {
    put: (name, value) => put.push([name, value]),
    flush: () => put.push('flush'),
  });
  metrics.refused('node-deltas');
  metrics.unsent('node-deltas', 3);
  metrics.overBudget(0);
  metrics.overBudget(9);
  metrics.put(STUCK_PODS, 2);
  assert.deepEqual(put, [
    [REFUSED_DELTAS, 1],
    'flush',
    [UNSENT_DELTAS, 3],
    'flush',
    [OVER_BUDGET, 9],
    'flush',
    [STUCK_PODS, 2],
    'flush',
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alarmingValues } from '#shared/engine/watch/relay.ts';
import { type ClusterGauges, NO_SESSION } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import type { Fault, FaultType } from '#shared/state/fault.ts';
import {
  CLOCK_SKEW,
  GUARD_TRIPS,
  NOBODY_EVICTS,
  STUCK_PODS,
  TAKEOVERS_WITHHELD,
} from '#shared/telemetry/metrics.ts';

const trip: Trip = { scope: 'customTaints', trippedAt: 1, nodes: 3, outOf: 4 };
const fault = (type: FaultType): Fault => ({ type, since: 1, error: 'it fails' });
const cluster = (skewMs: number | undefined, gauges: Partial<ClusterGauges> = {}) => ({
  skewMs,
  gauges: {
    ...NO_SESSION,
    cluster: clusterName('c'),
    state: { kind: 'live' },
    faults: [],
    ...gauges,
  } as const,
});

test('reports no value that is zero, and no usual clock skew', () => {
  assert.deepEqual(alarmingValues([]), []);
  assert.deepEqual(
    alarmingValues([cluster(undefined), cluster(-1000, { faults: [fault('list-failing')] })]),
    [],
  );
});

test('adds up what alarms wait for over all clusters, and reports the largest clock skew in seconds', () => {
  const values = alarmingValues([
    cluster(1001, { trips: [trip, trip], stuck: 2, faults: [fault('heartbeat-suspended')] }),
    cluster(-2500, {
      trips: [trip],
      stuck: 3,
      faults: [fault('no-eviction-controller'), fault('no-eviction-controller')],
    }),
    cluster(undefined),
  ]);
  assert.deepEqual(Object.fromEntries(values), {
    [GUARD_TRIPS]: 3,
    [TAKEOVERS_WITHHELD]: 1,
    [NOBODY_EVICTS]: 2,
    [STUCK_PODS]: 5,
    [CLOCK_SKEW]: 2.5,
  });
});

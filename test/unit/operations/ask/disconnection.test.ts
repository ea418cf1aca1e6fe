import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { knownOr } from '#shared/explain/known.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import type { ServiceClusterView } from '#shared/operations/fleet/service-view.ts';
import { relayStory } from '#shared/operations/look/blind.ts';
import { DISCONNECTED_AFTER_MS } from '#shared/state/lease.ts';
import { VERSION } from '#shared/version.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { recordContact } from '#test/world/record-contact.ts';

const CLUSTER = clusterName('prod');
const LONG_AGO = NOW - DISCONNECTED_AFTER_MS - 1;
const VIEW = { breakerOpen: false, nodes: 0, tainted: 0, pods: 0, down: 0, customTaints: 0 };

/** Returns the disconnection of a cluster with an old contact in its lease and this answer of its process. */
async function reported(t: TestContext, service: Fleet['service']) {
  const clock = { now: () => NOW };
  const { fleet, leases } = embeddedFleet(t, { clusters: [CLUSTER], clock }, { service });
  await recordContact(leases, CLUSTER, LONG_AGO);
  const { disconnection } = await relayStory(fleet, CLUSTER, clock);
  return knownOr(disconnection, 'unknown');
}

const saying =
  (view: Pick<ServiceClusterView, 'state' | 'lastContactAt'>): Fleet['service'] =>
  async () => ({ version: VERSION, startedAt: 0, queues: {}, clusters: { [CLUSTER]: { ...VIEW, ...view } } });

test('prefers the state of the process to its lease, which lags behind', async (t) => {
  assert.equal(await reported(t, saying({ state: 'live', lastContactAt: NOW })), undefined);
  assert.deepEqual(
    await reported(t, saying({ state: 'disconnected', lastContactAt: NOW - 2 * DISCONNECTED_AFTER_MS })),
    {
      since: NOW - 2 * DISCONNECTED_AFTER_MS,
    },
  );
});

test('does not report a cluster as disconnected during its first sync', async (t) => {
  assert.equal(await reported(t, saying({ state: 'syncing' })), undefined);
});

test('uses the lease when the process does not answer', async (t) => {
  const silent = async () => {
    throw new FleetError('The process does not answer.');
  };
  assert.deepEqual(await reported(t, silent), { since: LONG_AGO });
});

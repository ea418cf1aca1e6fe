import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { rulesReader } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

test('reads rules again for the next caller after a failure, even at the same time', async () => {
  let failing = true;
  const read = async () => {
    if (failing) throw new StoreError('The table is away.');
    return {
      orders: { revision: 7, stops: [], holds: [] },
      guard: { revision: 0, trips: [] },
      fleetRevision: 0,
    };
  };
  const matching = { comparisonOperators: false };
  const rules = rulesReader({ rulesStore: { read }, matching, clock: new DrivenClock(NOW) });
  await assert.rejects(rules(clusterName('prod')), { name: 'StoreError' });
  failing = false;
  assert.equal((await rules(clusterName('prod'))).ordersRevision, 7);
});

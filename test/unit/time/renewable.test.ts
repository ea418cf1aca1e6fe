import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { RULES_MAX_AGE_MS, rulesReader } from '#shared/state/rules-store.ts';
import { renewable } from '#shared/time/cache.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';

test('a renewed reader ignores earlier reads of rules, however recent', async () => {
  let reads = 0;
  const read = async () => {
    reads += 1;
    return {
      orders: { revision: reads, stops: [], holds: [] },
      guard: { revision: 0, trips: [] },
      fleetRevision: 0,
    };
  };
  const clock = new SteppedClock(0);
  const matching = { comparisonOperators: false };
  const rules = renewable(() => rulesReader({ rulesStore: { read }, matching, clock }));
  const revisionRead = async () => (await rules.call(clusterName('c1'))).ordersRevision;
  assert.equal(await revisionRead(), 1);
  clock.pass(RULES_MAX_AGE_MS - 1);
  assert.equal(await revisionRead(), 1);
  rules.renew();
  assert.equal(await revisionRead(), 2);
});

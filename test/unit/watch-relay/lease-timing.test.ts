import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  LEASE_RENEW_MS,
  LEASE_TTL_MS,
  leaseWaitMs,
  MAX_LEASE_WAIT_MS,
} from '#functions/watch-relay/cluster-relay.ts';

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test('a dead relay is stood in for within 15 s, however many leases the others hold', () => {
  fc.assert(
    fc.property(fc.nat(100_000), random, (held, chance) => {
      assert.ok(LEASE_TTL_MS + leaseWaitMs(held, chance) < 15_000);
      assert.ok(leaseWaitMs(held, chance) <= MAX_LEASE_WAIT_MS);
    }),
  );
});

test('a lease outlasts two renewals that fail', () => {
  assert.ok(3 * LEASE_RENEW_MS < LEASE_TTL_MS);
});

test('a relay with many leases leaves a free one to a relay with few', () => {
  fc.assert(
    fc.property(random, random, (one, other) => assert.ok(leaseWaitMs(0, one) < leaseWaitMs(40, other))),
  );
});

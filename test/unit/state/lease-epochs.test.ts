import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { leaseEpochs, nextEpoch } from '#shared/state/lease.ts';
import { StoreError } from '#shared/state/store.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const [A, B] = [clusterName('a'), clusterName('b')];

let clock: DrivenClock;
let reads: ClusterName[];
let stored: number | Error;
let epochOf: ReturnType<typeof leaseEpochs>;
beforeEach(() => {
  clock = new DrivenClock(0);
  reads = [];
  stored = 1;
  const read = async (cluster: ClusterName) => {
    reads.push(cluster);
    if (stored instanceof Error) throw stored;
    return { cluster, epoch: stored, renewals: 0, renewedAt: 0 };
  };
  epochOf = leaseEpochs({ read }, clock);
});

test('epochs are unique and at least the time, even after the table was recreated or restored', () => {
  const seconds = Math.floor(NOW / 1000);
  assert.equal(nextEpoch(undefined, NOW), seconds);
  assert.equal(nextEpoch(5, NOW), seconds);
  assert.equal(nextEpoch(seconds, NOW), seconds + 1);
});

test('reads an epoch once a second for all callers', async () => {
  assert.deepEqual(await Promise.all([epochOf(A), epochOf(A)]), [1, 1]);
  stored = 2;
  await clock.advanceTo(999);
  assert.equal(await epochOf(A), 1);
  await clock.advanceTo(1000);
  assert.equal(await epochOf(A), 2);
  assert.deepEqual(reads, [A, A]);
});

test('reads the epoch of each cluster separately', async () => {
  await epochOf(A);
  await epochOf(B);
  assert.deepEqual(reads, [A, B]);
});

test('reads an epoch again immediately after a failure', async () => {
  stored = new StoreError('the table is away');
  await assert.rejects(epochOf(A), { message: 'the table is away' });
  stored = 3;
  assert.equal(await epochOf(A), 3);
});

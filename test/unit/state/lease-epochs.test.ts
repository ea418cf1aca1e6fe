import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { type LeaseReader, leaseEpochs, nextEpoch } from '#shared/state/lease.ts';
import { StoreError } from '#shared/state/store.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const [A, B] = [clusterName('a'), clusterName('b')];

let clock: DrivenClock;
let asked: ClusterName[];
let stored: number | Error;
let epochOf: LeaseReader['epoch'];
beforeEach(() => {
  clock = new DrivenClock(0);
  asked = [];
  stored = 1;
  const epoch = async (cluster: ClusterName) => {
    asked.push(cluster);
    if (stored instanceof Error) throw stored;
    return stored;
  };
  epochOf = leaseEpochs({ epoch }, clock);
});

test('an epoch is never below the time, also of a table that was made anew or put back, and never the same again', () => {
  const seconds = Math.floor(NOW / 1000);
  assert.equal(nextEpoch(undefined, NOW), seconds);
  assert.equal(nextEpoch(5, NOW), seconds);
  assert.equal(nextEpoch(seconds, NOW), seconds + 1);
});

test('an epoch is asked for once a second, however many want to know', async () => {
  assert.deepEqual(await Promise.all([epochOf(A), epochOf(A)]), [1, 1]);
  stored = 2;
  await clock.advanceTo(999);
  assert.equal(await epochOf(A), 1);
  await clock.advanceTo(1000);
  assert.equal(await epochOf(A), 2);
  assert.deepEqual(asked, [A, A]);
});

test('each cluster is asked for by itself', async () => {
  await epochOf(A);
  await epochOf(B);
  assert.deepEqual(asked, [A, B]);
});

test('one that could not be read is asked for again at once', async () => {
  stored = new StoreError('the table is away');
  await assert.rejects(epochOf(A), { message: 'the table is away' });
  stored = 3;
  assert.equal(await epochOf(A), 3);
});

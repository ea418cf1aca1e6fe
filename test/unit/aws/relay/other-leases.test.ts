import assert from 'node:assert/strict';
import { test } from 'node:test';
import { otherLeases } from '#shared/aws/relay/aws-relay.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

test("claims share reads of the other clusters' leases; a fresh read begins after its claim", async (context) => {
  const time = driveTimers(context, NOW);
  const reads: string[] = [];
  const list = async () => ({
    clusters: ['c1', 'c2', 'c3'].map((name) => ({ name: clusterName(name) })),
    strays: [],
  });
  const read = otherLeases({ list } as never, {
    readAll: async (clusters) => {
      reads.push(`${(Date.now() - NOW) / 1000}: ${clusters.join(' ')}`);
      return clusters.map((cluster) => ({ cluster })) as never;
    },
  });
  const others = async (cluster: string, isFresh = false) => {
    const found = read(clusterName(cluster), isFresh);
    await time.pass(isFresh ? 1_000 : 0);
    return (await found).map((lease) => lease.cluster);
  };
  assert.deepEqual(await others('c1'), ['c2', 'c3']);
  await time.pass(9_000);
  assert.deepEqual(await others('c2'), ['c1', 'c3']);
  assert.deepEqual(await others('c1', true), ['c2', 'c3']);
  await time.pass(2_000);
  assert.deepEqual(await others('c3'), ['c1', 'c2']);
  assert.deepEqual(reads, ['0: c1 c2 c3', '10: c1 c2 c3', '12: c1 c2 c3']);
});

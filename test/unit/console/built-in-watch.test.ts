import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchBuiltIn } from '#shared/console/built-in-watch.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { eventually } from '#test/contracts/eventually.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const PROD = clusterName('prod');

test('checks a built-in controller in the background every five minutes and reports failures as evidence', async () => {
  const clock = new DrivenClock(NOW);
  let [reads, closed] = [0, 0];
  const live = { close: () => closed++ } as unknown as LiveCluster;
  const cluster = async () => {
    if (++reads === 2) throw new Error('it does not answer');
    return live;
  };
  const builtIn = watchBuiltIn({ cluster }, clock, async () => {
    if (reads === 3) throw new Error('it forbids the read');
    return { state: 'off', evidence: 'its flags' };
  });
  assert.equal(builtIn(PROD).state, 'unknown');
  await eventually(async () => assert.equal(builtIn(PROD).state, 'off'));
  assert.deepEqual([reads, closed], [1, 1]);
  await clock.advanceTo(NOW + 5 * 60_000);
  assert.equal(builtIn(PROD).state, 'off');
  await eventually(async () =>
    assert.deepEqual(builtIn(PROD), { state: 'unknown', evidence: 'it does not answer' }),
  );
  assert.deepEqual([reads, closed], [2, 1]);
  await clock.advanceTo(NOW + 10 * 60_000);
  builtIn(PROD);
  await eventually(async () => assert.equal(builtIn(PROD).evidence, 'it forbids the read'));
  assert.deepEqual([reads, closed], [3, 2]);
});

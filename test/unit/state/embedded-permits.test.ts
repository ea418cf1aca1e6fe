import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import { aCluster, NOW } from '#test/contracts/partition-builders.ts';
import { permitsContract, waitingPods } from '#test/contracts/permits-contract.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const stored = objectPermits(new FakeObjects());

permitsContract(
  'EmbeddedPermits',
  async () => ({ open: (stopwatch) => new EmbeddedPermits(stopwatch, stored), close: async () => undefined }),
  { shared: false },
);

describe('a new process', () => {
  const pace = { evictionRate: 2, releaseRate: 2 };

  test('has no permits, because its predecessor may have used a burst in the same second', async () => {
    let ms = 0;
    const permits = new EmbeddedPermits(() => ms, stored);
    const cluster = aCluster();
    const ask = (drains: boolean) =>
      permits.take(cluster, waitingPods(1, { drains, inTurn: true }), pace, NOW + ms);
    assert.deepEqual(await ask(false), [{ turnAt: NOW + 1000 }]);
    assert.deepEqual(await ask(true), [{ turnAt: NOW + 1000 }]);
    ms = 999;
    assert.deepEqual(await ask(false), [{ turnAt: NOW + 1000 }]);
    ms = 1000;
    assert.deepEqual(await ask(false), [undefined]);
  });

  test('has no permits even after waiting an hour for its lease', async () => {
    let ms = 0;
    const permits = new EmbeddedPermits(() => ms, stored);
    const cluster = aCluster();
    ms = 3_600_000;
    permits.begin();
    const turns = await permits.take(cluster, waitingPods(2), pace, NOW);
    assert.equal(turns.filter((turn) => turn === undefined).length, 0);
  });

  test('gains no permits when its clock is set', async () => {
    let ms = 0;
    const permits = new EmbeddedPermits(() => ms, stored);
    const cluster = aCluster();
    ms = 3_600_000;
    const taken = [];
    for (const offsetMs of [0, 86_400_000, -86_400_000, 30_000, 0, 600_000])
      taken.push(
        ...(await permits.take(cluster, waitingPods(10, { inTurn: true }), pace, NOW + ms + offsetMs)),
      );
    assert.equal(taken.filter((turn) => turn === undefined).length, 2);
  });
});

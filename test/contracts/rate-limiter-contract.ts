import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { RateLimiter } from '#shared/clusters/rate-limiter.ts';
import { TURNS_AHEAD_MS } from '#shared/eviction/rate.ts';
import { aCluster, NOW } from './partition-builders.ts';

/** Limiters under contract. */
export interface RateLimiters {
  /** As another process has it. Called once where there is one process. */
  open(): RateLimiter;
  close(): Promise<void>;
}

/** Registers the tests that every rate limiter has to pass. `shared`: processes share it. */
export function rateLimiterContract(
  name: string,
  open: () => Promise<RateLimiters>,
  { shared }: { readonly shared: boolean },
): void {
  describe(`${name} keeps the contract of a rate limiter`, () => {
    let limiters: RateLimiters;
    let limiter: RateLimiter;
    before(async () => {
      limiters = await open();
      limiter = limiters.open();
    });
    after(() => limiters.close());

    test('a cluster where nobody went lately gives the first turn at once', async () => {
      const cluster = aCluster();
      assert.deepEqual(await limiter.take(cluster, 3, 1, NOW), [NOW, NOW + 1000, NOW + 2000]);
      assert.deepEqual(await limiter.take(cluster, 1, 1, NOW + 60_000), [NOW + 60_000]);
    });

    test('turns follow those that are taken, at whatever rate is asked by then', async () => {
      const cluster = aCluster();
      await limiter.take(cluster, 4, 1, NOW);
      assert.deepEqual(await limiter.take(cluster, 3, 2, NOW + 500), [NOW + 4000, NOW + 4000, NOW + 5000]);
    });

    test('clusters do not wait for each other', async () => {
      await limiter.take(aCluster(), 50, 1, NOW);
      assert.deepEqual(await limiter.take(aCluster(), 1, 1, NOW), [NOW]);
    });

    test('nobody gets a turn that is far ahead, but later', async () => {
      const cluster = aCluster();
      assert.equal((await limiter.take(cluster, 1000, 1, NOW)).length, 60);
      const [last] = await limiter.take(cluster, 1000, 1, NOW);
      assert.equal(last, NOW + TURNS_AHEAD_MS);
      assert.deepEqual(await limiter.take(cluster, 1, 1, NOW), []);
      const later = NOW + 2 * TURNS_AHEAD_MS + 1000;
      assert.deepEqual(await limiter.take(cluster, 1, 1, later), [later]);
    });

    if (!shared) return;

    test('all processes together take no turn twice, however many ask at once', async () => {
      const cluster = aCluster();
      const others = Array.from({ length: 8 }, () => limiters.open());
      const taken = await Promise.all(others.map((each) => each.take(cluster, 2, 2, NOW)));
      const turns = taken.flat().sort((a, b) => a - b);
      assert.ok(turns.length > 2);
      assert.deepEqual(
        turns,
        turns.map((_, index) => NOW + Math.floor(index / 2) * 1000),
      );
    });
  });
}

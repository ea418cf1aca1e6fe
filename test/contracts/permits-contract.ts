import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import { PERMIT_LASTS_MS } from '#shared/eviction/permits.ts';
import type { Permits } from '#shared/state/permits.ts';
import { aCluster, NOW } from './partition-builders.ts';

/** Permits under contract. */
export interface PermitsPlace {
  /** Opens the permits as another process does, or as the same process after a restart. */
  open(): Permits;
  close(): Promise<void>;
}

const WEB = 'default/Deployment/web';
const LIMIT = { count: 3, windowMs: 600_000 };
/** Returns the time at which a permit that was taken at `at` lapses. */
const lapse = (at: number) => at + LIMIT.windowMs + PERMIT_LASTS_MS;
const pods = (...names: string[]) => names.map(podUid);

/** Registers the tests that every implementation of permits has to pass. */
export function permitsContract(name: string, open: () => Promise<PermitsPlace>): void {
  describe(`${name} keeps the contract of permits`, () => {
    let place: PermitsPlace;
    before(async () => {
      place = await open();
    });
    after(() => place.close());

    test('gives permits to as many pods as the limit allows, and returns the next lapse for others', async () => {
      const cluster = aCluster();
      const permits = place.open();
      assert.deepEqual(await permits.take(cluster, WEB, pods('a'), LIMIT, NOW), [NOW]);
      const later = NOW + 1000;
      assert.deepEqual(await permits.take(cluster, WEB, pods('b', 'c', 'd', 'e', 'f', 'g'), LIMIT, later), [
        ...[later, later],
        ...[lapse(NOW), lapse(later), lapse(later), lapse(later)],
      ]);
    });

    test('keeps permits across processes until they lapse with the window', async () => {
      const cluster = aCluster();
      await place.open().take(cluster, WEB, pods('a', 'b', 'c'), LIMIT, NOW);
      const take = (at: number) => place.open().take(cluster, WEB, pods('d'), LIMIT, at);
      assert.deepEqual(await take(lapse(NOW) - 1), [lapse(NOW)]);
      assert.deepEqual(await take(lapse(NOW)), [lapse(NOW)]);
      assert.deepEqual(await place.open().take(cluster, WEB, pods('e', 'f', 'g'), LIMIT, lapse(NOW)), [
        ...[lapse(NOW), lapse(NOW)],
        lapse(lapse(NOW)),
      ]);
    });

    test('renews the permit of a pod that asks again', async () => {
      const cluster = aCluster();
      const permits = place.open();
      await permits.take(cluster, WEB, pods('a', 'b', 'c'), LIMIT, NOW);
      const later = NOW + 60_000;
      assert.deepEqual(await permits.take(cluster, WEB, pods('d', 'a'), LIMIT, later), [lapse(NOW), later]);
      assert.deepEqual(await permits.take(cluster, WEB, pods('d', 'e', 'f'), LIMIT, lapse(NOW)), [
        ...[lapse(NOW), lapse(NOW)],
        lapse(later),
      ]);
    });

    test('gives fewer permits under a lower limit immediately', async () => {
      const cluster = aCluster();
      const permits = place.open();
      await permits.take(cluster, WEB, pods('a', 'b', 'c'), LIMIT, NOW);
      const lower = { ...LIMIT, count: 1 };
      assert.deepEqual(await permits.take(cluster, WEB, pods('a', 'd'), lower, NOW + 1), [
        lapse(NOW),
        lapse(NOW),
      ]);
      assert.deepEqual(await permits.take(cluster, WEB, pods('d', 'e'), lower, lapse(NOW)), [
        lapse(NOW),
        lapse(lapse(NOW)),
      ]);
    });

    test('counts workloads and clusters separately', async () => {
      const cluster = aCluster();
      const permits = place.open();
      await permits.take(cluster, WEB, pods('a', 'b', 'c'), LIMIT, NOW);
      const db = 'default/StatefulSet/db';
      assert.deepEqual(await permits.take(cluster, db, pods('d', 'e', 'f'), LIMIT, NOW), [NOW, NOW, NOW]);
      assert.deepEqual(await permits.take(aCluster(), WEB, pods('a'), LIMIT, NOW), [NOW]);
      assert.deepEqual(await permits.take(cluster, WEB, pods('g'), LIMIT, NOW), [lapse(NOW)]);
    });

    test('gives all processes together no more permits than the limit, despite concurrent requests', async () => {
      const cluster = aCluster();
      const requests = Array.from({ length: 8 }, (_, index) =>
        place.open().take(cluster, WEB, pods(`${index}-a`, `${index}-b`), LIMIT, NOW),
      );
      const taken = (await Promise.all(requests)).flat();
      assert.equal(taken.filter((moment) => moment === NOW).length, LIMIT.count);
      assert.ok(taken.every((moment) => moment === NOW || moment === lapse(NOW)));
    });
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import { openDatabase, openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { KINDS, SqliteObjects } from '#shared/state/sqlite/sqlite-objects.ts';
import { sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { StoreError } from '#shared/state/store.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

leaseContract('leases in SQLite', async () => {
  const database = openDatabase(':memory:');
  return { leases: sqliteLeases(database), close: async () => database.close() };
});

const rules = (name: string, status: object, labels = {}, resourceVersion?: string) => ({
  apiVersion: 'taintward.dev/v1',
  kind: KINDS.rules,
  status,
  metadata: { name, labels, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
});
const versionOf = (object: unknown): string => (object as KubernetesObject).metadata.resourceVersion ?? '';

for (const [what, make] of [
  ['in SQLite', () => new SqliteObjects(openDatabase(':memory:'), KINDS.rules)],
  ['of the double of an API server', () => new FakeObjects()],
] as const satisfies readonly (readonly [string, () => Objects])[]) {
  test(`creates objects ${what} once and lists them by labels`, async () => {
    const objects = make();
    const created = await objects.create(rules('a', { edition: 1 }, { of: 'prod' }));
    assert.equal(await objects.create(rules('a', { edition: 2 })), undefined);
    await objects.create(rules('b', { edition: 3 }, { of: 'test' }));
    assert.deepEqual(await objects.get('a'), created);
    assert.equal(await objects.get('c'), undefined);
    assert.deepEqual(await Array.fromAsync(objects.list({ of: 'prod' })), [created]);
    assert.equal((await Array.fromAsync(objects.list())).length, 2);
  });

  test(`replaces and removes objects ${what} at the version that was read`, async () => {
    const objects = make();
    const first = versionOf(await objects.create(rules('a', { edition: 1 })));
    const second = versionOf(await objects.replace(rules('a', { edition: 2 }, {}, first)));
    assert.equal(await objects.replace(rules('a', { edition: 3 }, {}, first)), undefined);
    await objects.remove('a', first);
    assert.deepEqual(await objects.get('a'), rules('a', { edition: 2 }, {}, second));
    await objects.remove('a', second);
    assert.equal(await objects.get('a'), undefined);
  });

  test(`keeps the version of an object ${what} in a replace without changes`, async () => {
    const objects = make();
    const version = versionOf(await objects.create(rules('a', { edition: 1 })));
    assert.equal(versionOf(await objects.replace(rules('a', { edition: 1 }, {}, version))), version);
  });

  test(`gives a recreated object ${what} another version`, async () => {
    const objects = make();
    const first = versionOf(await objects.create(rules('a', { edition: 1 })));
    await objects.remove('a', first);
    await objects.create(rules('a', { edition: 1 }));
    assert.equal(await objects.replace(rules('a', { edition: 2 }, {}, first)), undefined);
  });
}

test('writes an object and its related rows together or not at all', async () => {
  const database = openRulesDatabase(':memory:');
  const objects = new SqliteObjects(database, KINDS.rules);
  const note = (at: number) => database.prepare('INSERT INTO audit (at, json) VALUES (?, ?)').run(at, '{}');
  const version = versionOf(await objects.beside(() => note(1)).create(rules('a', { edition: 1 })));
  await objects.beside(() => note(2)).replace(rules('a', { edition: 2 }, {}, 'another'));
  const failing = objects.beside(() => {
    note(3);
    throw new StoreError('its disk is full');
  });
  await assert.rejects(failing.replace(rules('a', { edition: 3 }, {}, version)), StoreError);
  assert.deepEqual(await objects.get('a'), rules('a', { edition: 1 }, {}, version));
  const noted = database.prepare('SELECT at FROM audit').all();
  assert.deepEqual(
    noted.map(({ at }) => at),
    [1],
  );
  database.close();
});

test('never gives out a lease with invalid JSON, because its epoch would restart', async () => {
  const database = openDatabase(':memory:');
  const leases = sqliteLeases(database);
  const [bad, good] = [clusterName('bad'), clusterName('good')];
  for (const cluster of [bad, good]) await leases.take(cluster, undefined, 'relay-1', NOW);
  database.exec(`UPDATE objects SET json = '{' WHERE name LIKE '%bad'`);
  await assert.rejects(leases.take(bad, undefined, 'relay-2', NOW), {
    name: 'StoreError',
    message: /^The stored Lease taintward-bad cannot be read \(value: is not JSON\)/,
  });
  assert.equal((await leases.read(good))?.holder, 'relay-1');
  assert.deepEqual(await leases.clusters(), [good]);
  database.close();
});

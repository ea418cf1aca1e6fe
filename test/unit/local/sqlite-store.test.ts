import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { TOMBSTONE_SECONDS } from '#shared/store/retention.ts';
import { aNode, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { storeContract } from '#test/contracts/store-contract.ts';

storeContract('SqliteStore in memory', async () => {
  const store = new SqliteStore({ path: ':memory:' });
  return { store, close: async () => store.close() };
});

storeContract('SqliteStore in a file', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'));
  const store = new SqliteStore({ path: join(directory, 'taintward.db') });
  const close = async () => {
    store.close();
    rmSync(directory, { recursive: true });
  };
  return { store, close };
});

describe('SqliteStore', () => {
  let directory: string;
  let path: string;
  let store: SqliteStore;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'store-'));
    path = join(directory, 'taintward.db');
    store = new SqliteStore({ path });
  });
  afterEach(() => {
    if (store.database.isOpen) store.close();
    rmSync(directory, { recursive: true });
  });

  test('what was committed is there when the database is opened again', async () => {
    const ref = aRef();
    await store.commit(ref, 0, { node: aNode(), evictions: [aRecord()], live: true }, NOW);
    const before = await store.load(ref, { kind: 'all' });
    store.close();
    store = new SqliteStore({ path });
    assert.deepEqual(await store.load(ref, { kind: 'all' }), before);
  });

  test('another process on the same file sees each commit, and competes for the same lock', async () => {
    const ref = aRef();
    const other = new SqliteStore({ path });
    await store.commit(ref, 0, { node: aNode(), evictions: [], live: true }, NOW);
    assert.deepEqual((await other.load(ref, { kind: 'all' })).node, aNode());
    assert.equal(await other.commit(ref, 0, { evictions: [], live: true }, NOW), 'conflict');
    assert.equal(await other.commit(ref, 1, { evictions: [], live: true }, NOW), 'committed');
    assert.equal(await store.commit(ref, 1, { evictions: [], live: true }, NOW), 'conflict');
    other.close();
  });

  test('purging removes tombstones when their time is over, and scheduled records never', async () => {
    const ref = aRef();
    const scheduled = aRecord({ fireAt: 0 });
    const settled = aRecord();
    const ended = (['cancelled', 'done', 'gone'] as const).map((state) => aRecord({ state }));
    await store.commit(ref, 0, { evictions: [scheduled, settled, ...ended], live: true }, NOW);
    await store.settle(ref, [{ uid: settled.uid, state: 'done' }], NOW + 60_000);
    const left = async (now: number) => {
      await store.purge(now);
      return new Set((await store.load(ref, { kind: 'all' })).evictions.keys());
    };
    const uidsOf = (records: readonly EvictionRecord[]) => new Set(records.map(({ uid }) => uid));
    const endOfTombstones = NOW + TOMBSTONE_SECONDS * 1000;
    assert.deepEqual(await left(endOfTombstones - 1), uidsOf([scheduled, settled, ...ended]));
    assert.deepEqual(await left(endOfTombstones), uidsOf([scheduled, settled]));
    assert.deepEqual(await left(endOfTombstones + 60_000), uidsOf([scheduled]));
    assert.deepEqual(await left(8.64e15), uidsOf([scheduled]));
    assert.equal((await store.load(ref, { kind: 'all' })).revision, 1);
  });

  test('purging removes nodes on which nothing was live for the tombstone time', async () => {
    const [idle, live, revived] = [aRef(), aRef(), aRef()];
    await store.commit(idle, 0, { node: aNode({ taints: [] }), evictions: [], live: false }, NOW);
    await store.commit(live, 0, { node: aNode(), evictions: [], live: true }, NOW);
    await store.commit(revived, 0, { node: aNode({ taints: [] }), evictions: [], live: false }, NOW);
    await store.commit(revived, 1, { node: aNode(), evictions: [], live: true }, NOW);
    await store.purge(NOW + TOMBSTONE_SECONDS * 1000);
    const revisions = await Promise.all(
      [idle, live, revived].map(async (ref) => (await store.load(ref, { kind: 'all' })).revision),
    );
    assert.deepEqual(revisions, [0, 1, 2]);
  });

  test('upcoming goes on while its reader settles what it is told', async () => {
    const refs = Array.from({ length: 1200 }, (_, index) => aRef(undefined, `node-${index}`));
    const record = aRecord({ fireAt: NOW });
    for (const ref of refs) await store.commit(ref, 0, { evictions: [record], live: true }, NOW);
    let seen = 0;
    for await (const { ref } of store.upcoming()) {
      await store.settle(ref, [{ uid: record.uid, state: 'done' }], NOW);
      seen++;
    }
    assert.equal(seen, refs.length);
  });

  test('a database that was changed by hand is refused, naming what cannot be read', async () => {
    const ref = aRef();
    await store.commit(ref, 0, { node: aNode(), evictions: [aRecord()], live: true }, NOW);
    store.database.exec(`UPDATE evictions SET record = json_remove(record, '$.namespace')`);
    await assert.rejects(store.load(ref, { kind: 'all' }), {
      name: 'StoreError',
      message: new RegExp(`^The stored eviction record of node ${ref.node} of cluster .* \\(namespace: `),
    });
  });

  test('a failure in the middle of a commit undoes the whole of it', async () => {
    const ref = aRef();
    store.database.exec(`
      CREATE TRIGGER fail BEFORE INSERT ON evictions WHEN NEW.uid = 'bad'
      BEGIN SELECT RAISE(FAIL, 'disk trouble'); END`);
    const evictions = [aRecord(), aRecord({ uid: podUid('bad') })];
    await assert.rejects(store.commit(ref, 0, { node: aNode(), evictions, live: true }, NOW), {
      name: 'StoreError',
      message: `The database ${path} cannot be used: disk trouble.`,
    });
    assert.deepEqual(await store.load(ref, { kind: 'all' }), {
      ref,
      revision: 0,
      node: undefined,
      evictions: new Map(),
    });
  });

  test('after it was closed every method says so', async () => {
    store.close();
    const expected = { name: 'StoreError', message: /cannot be used: database is not open\.$/ };
    await assert.rejects(store.load(aRef(), { kind: 'all' }), expected);
    await assert.rejects(store.commit(aRef(), 0, { evictions: [], live: true }, NOW), expected);
    await assert.rejects(store.settle(aRef(), [], NOW), expected);
    await assert.rejects(store.purge(NOW), expected);
  });
});

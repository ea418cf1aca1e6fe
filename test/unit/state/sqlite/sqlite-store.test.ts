import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type NodeRef, podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { NODE_SECONDS, parseStored, recordSchema } from '#shared/state/stored.ts';
import {
  aCluster,
  aNode,
  anEnding,
  aRecord,
  aRef,
  NOW,
  someRecords,
} from '#test/contracts/partition-builders.ts';
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

  const none = { schedule: [], end: [], live: true };

  test('keeps commits when the database is reopened', async () => {
    const ref = aRef();
    await store.commit(ref, 0, { node: aNode(), schedule: [aRecord()], end: [anEnding()], live: true }, NOW);
    const before = await store.load(ref, NOW);
    store.close();
    store = new SqliteStore({ path });
    assert.deepEqual(await store.load(ref, NOW), before);
  });

  test('shows each commit to another process on the same file, with a shared lock', async () => {
    const ref = aRef();
    const other = new SqliteStore({ path });
    await store.commit(ref, 0, { ...none, node: aNode() }, NOW);
    assert.deepEqual((await other.load(ref, NOW)).node, aNode());
    assert.equal(await other.commit(ref, 0, none, NOW), 'conflict');
    assert.equal(await other.commit(ref, 1, none, NOW), 'committed');
    assert.equal(await store.commit(ref, 1, none, NOW), 'conflict');
    other.close();
  });

  test('purges expired ends and never scheduled records', async () => {
    const ref = aRef();
    const record = aRecord({ dueAt: 0 });
    await store.commit(ref, 0, { ...none, schedule: [record], end: [anEnding()] }, NOW);
    await store.end(ref, [anEnding()], NOW + 60_000);
    const left = async (now: number) => {
      await store.purge(now);
      const { scheduled } = await store.load(ref, now);
      assert.deepEqual([...scheduled.values()], [record]);
      return (await store.load(ref, NOW)).ended.size;
    };
    const over = NOW + NODE_SECONDS * 1000;
    assert.equal(await left(over - 1), 2);
    assert.equal(await left(over), 1);
    assert.equal(await left(over + 60_000), 0);
    assert.equal(await left(8.64e15), 0);
    assert.equal((await store.load(ref, NOW)).revision, 2);
  });

  test('purges nodes that were idle for the retention period, unless they have scheduled evictions', async () => {
    const [idle, live, revived, pending] = [aRef(), aRef(), aRef(), aRef()];
    const untainted = { ...none, node: aNode({ taints: [] }), live: false };
    await store.commit(idle, 0, untainted, NOW);
    await store.commit(live, 0, { ...none, node: aNode() }, NOW);
    await store.commit(revived, 0, untainted, NOW);
    await store.commit(revived, 1, { ...none, node: aNode() }, NOW);
    await store.commit(pending, 0, { ...untainted, schedule: [aRecord()] }, NOW);
    const left = async (now: number) => {
      await store.purge(now);
      const nodes = [idle, live, revived, pending];
      return Promise.all(nodes.map(async (ref) => (await store.load(ref, NOW)).revision));
    };
    assert.deepEqual(await left(NOW + NODE_SECONDS * 1000 - 1), [1, 1, 2, 1]);
    assert.deepEqual(await left(NOW + NODE_SECONDS * 1000), [0, 1, 2, 1]);
  });

  test('does not read ends before the window', (context) => {
    const statements: string[] = [];
    const { prepare } = DatabaseSync.prototype;
    context.mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
      statements.push(sql);
      return prepare.call(this, sql);
    });
    const { database } = new SqliteStore({ path: ':memory:' });
    const reads = statements.filter((sql) => /SELECT json FROM ended/.test(sql));
    assert.equal(reads.length, 2);
    for (const sql of reads) {
      const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      const step = steps.map(({ detail }) => String(detail)).find((detail) => detail.includes('ended'));
      assert.equal(step, 'SEARCH ended USING INDEX ended_recently (cluster=? AND node=? AND ended_at>?)');
    }
    database.close();
  });

  test('syncs deadlines to disk, but not ends, which a restart finds out again', async (context) => {
    const FULL = 2;
    const NORMAL = 1;
    const synced: unknown[] = [];
    const { exec } = DatabaseSync.prototype;
    context.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      if (sql === 'COMMIT') synced.push(this.prepare('PRAGMA synchronous').get()?.['synchronous']);
      return exec.call(this, sql);
    });
    const [ref, record] = [aRef(), aRecord()];
    await store.commit(ref, 0, { ...none, node: aNode(), schedule: [record] }, NOW);
    await store.end(ref, [anEnding(record)], NOW);
    await store.commit(ref, 2, { ...none, schedule: [aRecord()] }, NOW);
    assert.deepEqual(synced, [FULL, NORMAL, FULL]);
  });

  test('syncs scheduled records even after a failed end', async () => {
    const operator = new DatabaseSync(path);
    operator.exec('DROP TABLE ended');
    operator.close();
    await assert.rejects(store.end(aRef(), [anEnding()], NOW), StoreError);
    assert.equal(store.database.prepare('PRAGMA synchronous').get()?.['synchronous'], 2);
  });

  describe('upcoming', () => {
    const upcoming = () => Array.fromAsync(store.upcoming());
    const schedule = async (ref: NodeRef, records: readonly EvictionRecord[]) =>
      store.commit(ref, (await store.load(ref, NOW)).revision, { ...none, schedule: records }, NOW);

    test('lists distinct times of scheduled records, soonest first', async () => {
      const cluster = aCluster();
      const [one, two] = [aRef(cluster, 'one'), aRef(cluster, 'two')];
      await schedule(one, [
        ...someRecords(3, { dueAt: NOW + 10 }),
        aRecord({ dueAt: NOW + 30 }),
        aRecord({ dueAt: NOW - 5 }),
        aRecord({ dueAt: 8.64e15 }),
      ]);
      await schedule(two, someRecords(2, { dueAt: NOW + 20 }));
      await store.end(two, [anEnding(aRecord({ dueAt: NOW + 1 }))], NOW);
      assert.deepEqual(await upcoming(), [
        { ref: one, dueAt: NOW - 5 },
        { ref: one, dueAt: NOW + 10 },
        { ref: two, dueAt: NOW + 20 },
        { ref: one, dueAt: NOW + 30 },
        { ref: one, dueAt: 8.64e15 },
      ]);
    });

    test('lists a rescheduled record only at its new time, and an ended one not at all', async () => {
      const ref = aRef();
      const [moving, ending] = [aRecord({ dueAt: NOW + 1 }), aRecord({ dueAt: NOW + 2 })];
      await schedule(ref, [moving, ending]);
      await schedule(ref, [{ ...moving, dueAt: NOW + 3 }]);
      await store.end(ref, [anEnding(ending)], NOW);
      assert.deepEqual(await upcoming(), [{ ref, dueAt: NOW + 3 }]);
    });

    test('exceeds one page and continues while its reader ends listed records', async () => {
      const refs = Array.from({ length: 1200 }, (_, index) => aRef(undefined, `node-${index}`));
      const record = aRecord({ dueAt: NOW });
      for (const ref of refs) await schedule(ref, [record]);
      let seen = 0;
      for await (const { ref } of store.upcoming()) {
        await store.end(ref, [anEnding(record)], NOW);
        seen++;
      }
      assert.equal(seen, refs.length);
    });
  });

  test('rejects a database that was changed manually and names the unreadable state', async () => {
    const ref = aRef();
    await store.commit(ref, 0, { ...none, node: aNode(), schedule: [aRecord()] }, NOW);
    store.database.exec(
      `UPDATE objects SET json = json_remove(json, '$.status.records.scheduled[0].namespace')`,
    );
    store.close();
    store = new SqliteStore({ path });
    await assert.rejects(store.load(ref, NOW), {
      name: 'StoreError',
      message: new RegExp(
        `^The stored state .*of node ${ref.node} of cluster .* \\(scheduled\\.0\\.namespace: `,
      ),
    });
  });

  test('rolls back a commit that fails in the middle', async () => {
    const ref = aRef();
    store.database.exec(`
      CREATE TRIGGER fail BEFORE INSERT ON ended WHEN NEW.uid = 'bad'
      BEGIN SELECT RAISE(FAIL, 'disk trouble'); END`);
    const [schedule, end] = [[aRecord()], [anEnding(), anEnding(aRecord({ uid: podUid('bad') }))]];
    await assert.rejects(store.commit(ref, 0, { ...none, node: aNode(), schedule, end }, NOW), {
      name: 'StoreError',
      message: `The database ${path} cannot be used: disk trouble.`,
    });
    const empty = { ref, revision: 0, node: undefined, scheduled: new Map(), ended: new Map() };
    assert.deepEqual(await store.load(ref, NOW), empty);
  });

  test('names a row with invalid JSON and reads the rows of other nodes', async () => {
    const [bad, good] = [aRef(undefined, 'bad'), aRef(undefined, 'good')];
    for (const ref of [bad, good])
      await store.commit(ref, 0, { ...none, node: aNode(), schedule: [aRecord()] }, NOW);
    store.database.exec(`UPDATE objects SET json = '{' WHERE name LIKE '%#${bad.node}'`);
    store.close();
    store = new SqliteStore({ path });
    await assert.rejects(store.load(bad, NOW), {
      name: 'StoreError',
      message: /^The stored state of node bad of cluster .* cannot be read \(value: is not JSON\): /,
    });
    assert.equal((await store.load(good, NOW)).scheduled.size, 1);
  });

  test('rejects every call after it was closed', async () => {
    store.close();
    const expected = { name: 'StoreError', message: /cannot be used: database is not open\.$/ };
    await assert.rejects(store.load(aRef(), NOW), expected);
    await assert.rejects(store.commit(aRef(), 0, none, NOW), expected);
    await assert.rejects(store.end(aRef(), [anEnding()], NOW), expected);
    await assert.rejects(store.purge(NOW), expected);
  });
});

test('stores, reads, and counts a pod that is held by its live node as such', async () => {
  const [ref, until] = [aRef(), NOW + 29];
  const gate = { kind: 'node-alive', renewedAt: NOW - 11, until, revision: 1, guardRevision: 0 } as const;
  const held = { ...aRecord(), held: { by: gate, since: NOW, until } };
  assert.deepEqual(parseStored(recordSchema, JSON.parse(JSON.stringify(held)), 'a record'), held);
  const store = new SqliteStore({ path: ':memory:' });
  try {
    await store.commit(ref, 0, { schedule: [held], end: [], live: true }, NOW);
    assert.deepEqual(store.states(), [{ cluster: ref.cluster, state: 'node-alive', evictions: 1 }]);
  } finally {
    store.close();
  }
});

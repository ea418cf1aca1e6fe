import assert from 'node:assert/strict';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { aNode, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';

const NODES = 20;
const refs = Array.from({ length: NODES }, (_, index) => ({ ...aRef(), node: nodeName(`node-${index}`) }));
const whole = { end: [], live: true };

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'damaged-'));
  path = join(directory, 'store.sqlite');
});
afterEach(() => rmSync(directory, { recursive: true }));

async function fill(store: SqliteStore): Promise<void> {
  // The test doesn't simulate a power failure.
  store.database.exec('PRAGMA synchronous = OFF');
  for (const ref of refs)
    await store.commit(ref, 0, { ...whole, node: aNode(), schedule: [aRecord(), aRecord()] }, NOW);
}

/** Returns the number of records of each node, or the error of an unreadable node. */
async function recordsIn(store: SqliteStore): Promise<readonly (number | string)[]> {
  return Promise.all(
    refs.map(async (ref) => {
      try {
        return (await store.load(ref, NOW)).scheduled.size;
      } catch (error) {
        assert.ok(error instanceof StoreError, String(error));
        assert.doesNotMatch(error.message, /\n|JSON at position|undefined/);
        return error.message;
      }
    }),
  );
}

describe('a store on a full disk', () => {
  test('reports the error, keeps its data, and continues when there is room', async () => {
    const store = new SqliteStore({ path });
    await fill(store);
    const pages = store.database.prepare('PRAGMA page_count').get()?.['page_count'];
    store.database.exec(`PRAGMA max_page_count = ${Number(pages) + 1}`);
    const [ref] = refs;
    assert.ok(ref);
    const many = Array.from({ length: 500 }, () => aRecord());
    const commit = () => store.commit(ref, 1, { ...whole, schedule: many }, NOW);
    const message = `The database ${path} cannot be used: its disk is full: make room (database or disk is full).`;
    await assert.rejects(commit, { name: 'StoreError', message });
    assert.deepEqual(await recordsIn(store), Array(NODES).fill(2));
    store.database.exec('PRAGMA max_page_count = 100000');
    assert.equal(await commit(), 'committed');
    assert.equal((await store.load(ref, NOW)).scheduled.size, 502);
    store.close();
  });
});

describe('a store with a damaged file', () => {
  beforeEach(async () => {
    const store = new SqliteStore({ path });
    await fill(store);
    store.close();
  });

  test('is rejected if its end is missing, or reports each affected node', async () => {
    const { size } = statSync(path);
    for (const kept of [0.9, 0.5, 0.1]) {
      truncateSync(path, Math.floor(size * kept));
      assert.throws(() => new SqliteStore({ path }), {
        name: 'StoreError',
        message: /it is damaged: restore a copy, or move it away to start again/,
      });
    }
  });

  test('is rejected if bytes changed, or reads unchanged except for the nodes that it names', async () => {
    const original = readFileSync(path);
    for (let at = 100; at < original.length; at += 4_999) {
      writeFileSync(path, original);
      const file = openSync(path, 'r+');
      writeSync(file, Buffer.from([(original[at] ?? 0) ^ 0xff]), 0, 1, at);
      closeSync(file);
      let store: SqliteStore;
      try {
        store = new SqliteStore({ path });
      } catch (error) {
        assert.ok(error instanceof StoreError, String(error));
        assert.doesNotMatch(error.message, /\n/);
        continue;
      }
      const found = await recordsIn(store);
      assert.ok(found.every((each) => typeof each === 'string' || each <= 2));
      store.close();
    }
  });

  test('is not modified by a process that rejects it', () => {
    truncateSync(path, Math.floor(statSync(path).size / 2));
    const before = readFileSync(path);
    assert.throws(() => openDatabase(path), StoreError);
    assert.deepEqual(readFileSync(path), before);
  });
});

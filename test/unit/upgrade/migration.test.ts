import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { bringOver } from '#shared/state/sqlite/sqlite-migration.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { dumped, FILES_MEANING, openState, restore } from './kept-files.ts';
import { CLUSTER, NOW, REF } from './messages.ts';
import { FIRST, knownTo } from './releases.ts';
import { APPLIED_FILE, KEPT_MEANING, readKept } from './stored.ts';

const { files } = JSON.parse(readFileSync(join(import.meta.dirname, 'written/000e089.json'), 'utf8'));

/** Additional tables of later releases before the change to objects: the applied policy file and the database's identity. */
const BESIDES = `
  CREATE TABLE applied_files (cluster TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO applied_files VALUES ('${CLUSTER}', '${JSON.stringify(APPLIED_FILE)}');
  CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL) STRICT;
  INSERT INTO identity VALUES (1, 'the-database')`;

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'migration-'));
  path = join(directory, 'store.sqlite');
  restore(path, files['store.sqlite']);
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Executes SQL on the older release's file. */
function byHand(sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

function contentOf(file: string) {
  const database = new DatabaseSync(file);
  const content = dumped(database);
  database.close();
  return content;
}

async function meaningOf(file: string) {
  const state = openState(file);
  const whole = { cluster: CLUSTER, node: REF.node, from: 0, to: NOW * 2 };
  const history = await Array.fromAsync(state.history.entries(whole), ({ name, what }) => `${name} ${what}`);
  const kept = await readKept(state);
  state.store.close();
  return { ...kept, history };
}

const MEANING = knownTo(FIRST, { ...KEPT_MEANING, history: FILES_MEANING.history });

/** Calls `see` before each further statement runs. */
function beforeEachStatement(t: TestContext, see: (statement: number) => void): void {
  let statements = 0;
  for (const [of, name] of [
    [DatabaseSync.prototype, 'exec'],
    [StatementSync.prototype, 'run'],
    [StatementSync.prototype, 'get'],
    [StatementSync.prototype, 'all'],
    [StatementSync.prototype, 'iterate'],
  ] as const) {
    const real = of[name as never] as (...given: unknown[]) => unknown;
    t.mock.method(
      of,
      name as never,
      function (this: unknown, ...given: unknown[]) {
        see(++statements);
        return real.apply(this, given);
      } as never,
    );
  }
}

describe('the state of an older release', () => {
  test('is migrated once and keeps its meaning', async () => {
    byHand(BESIDES);
    assert.deepEqual(await meaningOf(path), MEANING);
    const before = contentOf(path);
    assert.deepEqual(await meaningOf(path), MEANING);
    assert.deepEqual(contentOf(path), before);
    const state = openState(path);
    assert.deepEqual(await state.rulesStore.appliedFile(CLUSTER), APPLIED_FILE);
    state.store.close();
  });

  test('does not stop clusters if a note records its rules revision', async () => {
    byHand(BESIDES);
    const clock = { now: () => NOW };
    const note = { database: 'the-database', revision: 2 };
    writeFileSync(join(directory, 'rules-revision.json'), JSON.stringify(note), { mode: 0o600 });
    const state = sqliteState({
      path,
      historyDays: 7,
      clock,
      log: logTo(() => undefined),
      lost: assert.fail,
    });
    const { fleetStop } = await state.rulesStore.read(CLUSTER);
    assert.deepEqual(fleetStop, KEPT_MEANING.storedRules.fleetStop);
    const lease = await state.leases.look(CLUSTER);
    assert.deepEqual([lease?.holder, lease?.epoch], [undefined, KEPT_MEANING.lease.epoch]);
    state.close();
  });

  test('is unchanged if any statement of the migration fails', (t) => {
    const before = contentOf(path);
    let failing = 0;
    for (let done = false; !done; ) {
      failing += 1;
      beforeEachStatement(t, (statement) => {
        if (statement === failing)
          throw Object.assign(new Error('database or disk is full'), { errcode: 13 });
      });
      try {
        openDatabase(path, bringOver).close();
        done = true;
      } catch (error) {
        assert.match(String(error), /StoreError: .* its disk is full: make room/);
      }
      t.mock.restoreAll();
      if (!done) assert.deepEqual(contentOf(path), before);
    }
    assert.ok(failing > 20, `${failing} statements`);
  });

  test('loses nothing if the process is killed at any statement of the migration', async (t) => {
    const killed: string[] = [];
    beforeEachStatement(t, (statement) => {
      const image = join(directory, `killed-${statement}.sqlite`);
      for (const part of ['', '-wal']) {
        if (existsSync(`${path}${part}`)) copyFileSync(`${path}${part}`, `${image}${part}`);
      }
      killed.push(image);
    });
    openDatabase(path, bringOver).close();
    t.mock.restoreAll();
    for (const image of killed) assert.deepEqual(await meaningOf(image), MEANING, image);
  });

  test('is not changed by read-only access', () => {
    const before = contentOf(path);
    assert.throws(() => openDatabase(path), { name: 'StoreError', message: /an older release wrote it/ });
    assert.deepEqual(contentOf(path), before);
  });

  test('keeps unreadable rows, which are rejected only when they are needed', async () => {
    byHand(`
      INSERT INTO nodes SELECT cluster, 'bad', revision, '{', ttl FROM nodes;
      INSERT INTO scheduled (cluster, node, uid, json) SELECT cluster, 'bad', uid, json_remove(json, '$.name') FROM scheduled;
      INSERT INTO orders VALUES ('bad', 1, '{"holds":[],"freeze":true}'), ('worse', 1, '{');`);
    assert.deepEqual(await meaningOf(path), MEANING);
    const { store, rulesStore } = openState(path);
    const bad = { cluster: CLUSTER, node: nodeName('bad') };
    await assert.rejects(store.load(bad, NOW), { message: /^The stored state of node bad of cluster prod/ });
    const due = await Array.fromAsync(store.upcoming(), ({ ref }) => ref.node);
    assert.deepEqual(due.toSorted(), ['bad', REF.node]);
    for (const cluster of ['bad', 'worse']) {
      await assert.rejects(rulesStore.read(cluster as typeof CLUSTER), { name: 'StoreError' });
    }
    store.close();
  });
});

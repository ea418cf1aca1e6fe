import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import type { ServiceState } from '#shared/state/service-state.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { StateFiles } from '#shared/state/sqlite/state-files.ts';
import { StoreError } from '#shared/state/store.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';

/** An open database with a umask that makes new files readable to everyone. */
function openIn(t: TestContext) {
  const umask = process.umask(0);
  const dir = mkdtempSync(join(tmpdir(), 'state-files-'));
  const path = join(dir, 'store.sqlite');
  const database = new DatabaseSync(path);
  t.after(() => {
    database.close();
    rmSync(dir, { recursive: true });
    process.umask(umask);
  });
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE kept (a); INSERT INTO kept VALUES (1)');
  chmodSync(path, 0o600);
  return { path, files: new StateFiles(database, path) };
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

const keptIn = (path: string) => {
  const database = new DatabaseSync(path);
  const rows = database.prepare('SELECT a FROM kept').all();
  database.close();
  return rows.map(({ a }) => a);
};

test('rewrites a deleted database for its owner alone', (t) => {
  const { path, files } = openIn(t);
  rmSync(path);
  assert.throws(() => files.check(), {
    name: 'StateLostError',
    message: `the database ${path} was deleted while it was in use; its content is restored: start it again`,
  });
  assert.deepEqual([modeOf(path), keptIn(path)], ['600', [1]]);
});

test('writes a deleted log into the database', (t) => {
  const { path, files } = openIn(t);
  rmSync(`${path}-wal`);
  assert.throws(() => files.check(), {
    name: 'StateLostError',
    message: `the log of the database ${path} was deleted while it was in use; its content was written to the database: start it again`,
  });
  assert.deepEqual(keptIn(path), [1]);
});

test('saves a replaced database next to the new one, for its owner alone', (t) => {
  const { path, files } = openIn(t);
  const other = `${path}.other`;
  writeFileSync(other, '');
  renameSync(other, path);
  assert.throws(() => files.check(), {
    name: 'StateLostError',
    message: `the database ${path} was replaced while it was in use; what this process had in it is in ${path}.saved: start it again`,
  });
  assert.deepEqual([modeOf(`${path}.saved`), keptIn(`${path}.saved`)], ['600', [1]]);
});

const CUT_OFF =
  /^the log of the database \S+ was cut off while it was in use; changes that were only in the log are lost, and the rest is unchanged: start it again$/;
const none = { schedule: [], end: [], live: true };

/** The state of a service, and a record of its loss. */
function stateIn(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'state-files-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'store.sqlite');
  const lost: string[] = [];
  const log = logTo(() => undefined);
  const clock = { now: () => NOW };
  const state = sqliteState({ path, historyDays: 7, clock, log, lost: ({ message }) => lost.push(message) });
  return { path, state, lost };
}

/** Returns the nodes with scheduled evictions in a database. */
async function scheduledIn(path: string): Promise<readonly string[]> {
  const store = new SqliteStore({ path });
  const nodes = await Array.fromAsync(store.upcoming(), ({ ref }) => ref.node);
  store.close();
  return nodes.toSorted();
}

test('rejects a commit to a deleted database before writing, and keeps all earlier data', async (t) => {
  const { path, state, lost } = stateIn(t);
  const [first, second] = [aRef(undefined, 'first'), aRef(undefined, 'second')];
  await state.store.commit(first, 0, { ...none, node: aNode(), schedule: [aRecord()] }, NOW);
  rmSync(path);
  const commit = state.store.commit(second, 0, { ...none, node: aNode(), schedule: [aRecord()] }, NOW);
  await assert.rejects(commit, { name: 'StateLostError', message: /was deleted while it was in use/ });
  assert.equal(lost.length, 1);
  assert.deepEqual(await scheduledIn(path), ['first']);
});

test('rejects a commit during which the database was deleted, and saves its data', async (t) => {
  const { path, state, lost } = stateIn(t);
  const { exec } = DatabaseSync.prototype;
  t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    if (sql === 'COMMIT') rmSync(path, { force: true });
    return exec.call(this, sql);
  });
  const commit = state.store.commit(aRef(undefined, 'first'), 0, { ...none, schedule: [aRecord()] }, NOW);
  await assert.rejects(commit, StoreError);
  t.mock.restoreAll();
  assert.equal(lost.length, 1);
  assert.deepEqual(await scheduledIn(path), ['first']);
});

test('protects ends, leases, and rules like records', async (t) => {
  const ref = aRef();
  for (const write of [
    ({ store }: ServiceState) => store.end(ref, [anEnding()], NOW),
    ({ leases }: ServiceState) => leases.take(ref.cluster, undefined, 'relay-1', NOW),
    ({ rulesStore }: ServiceState) =>
      rulesStore.note({ actor: 'anna', at: NOW, kind: 'resume', message: 'resumed' }),
  ]) {
    const { path, state } = stateIn(t);
    truncateSync(`${path}-wal`, 0);
    await assert.rejects(write(state), { name: 'StateLostError', message: CUT_OFF });
  }
});

test('reads without checking the files', async (t) => {
  const { path, state, lost } = stateIn(t);
  rmSync(path);
  assert.equal((await state.store.load(aRef(), NOW)).revision, 0);
  assert.deepEqual(lost, []);
});

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, type TestContext, test } from 'node:test';
import type { ServiceState } from '#shared/state/service-state.ts';
import { openState, sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { RULES_FILE, STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { StoreError } from '#shared/state/store.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';

const none = { schedule: [], end: [], live: true };
const [first, second] = [aRef(undefined, 'first'), aRef(undefined, 'second')];
const timer = { ...none, node: aNode(), schedule: [aRecord()] };
const entry = { actor: 'anna', at: NOW, kind: 'stop', message: 'stopped all clusters' } as const;
const STOP = { scope: 'fleet', actor: 'anna', at: NOW, reason: 'an incident' } as const;

let umask: number;
beforeEach(() => {
  umask = process.umask(0);
});
afterEach(() => {
  process.umask(umask);
});

/** The state of a service with a timer and a stop, the paths of its files, and a record of its loss. */
async function stateIn(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'state-files-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const lost: string[] = [];
  const log = logTo(() => undefined);
  const clock = { now: () => NOW };
  const options = { directory: dir, historyDays: 7, clock, log };
  const state = sqliteState({ ...options, lost: ({ message }) => lost.push(message) });
  await state.store.commit(first, 0, timer, NOW);
  await state.rulesStore.changeFleetStop(undefined, STOP, entry);
  const records = join(dir, STORE_FILE);
  const paths = { records, log: `${records}-wal`, rules: join(dir, RULES_FILE) };
  return { dir, paths, state, lost };
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** Returns what another process finds in a state directory. */
async function foundIn(dir: string) {
  const { store, rulesStore } = openState(dir);
  const timers = await Array.fromAsync(store.upcoming(), ({ ref }) => ref.node);
  const lost = rulesStore.stopIfLost(NOW);
  const stop = (await rulesStore.fleetStop())?.reason;
  rulesStore.close();
  store.close();
  return { timers, stop, lost };
}

const commit = ({ store }: ServiceState) => store.commit(second, 0, timer, NOW);

for (const [what, remove] of [
  ['the records', ({ paths }) => rmSync(paths.records)],
  ['the log of the records', ({ paths }) => rmSync(paths.log)],
  ['the rules', ({ paths }) => rmSync(paths.rules)],
  ['the state directory', ({ dir }) => rmSync(dir, { recursive: true })],
] as const satisfies readonly (readonly [string, (at: Awaited<ReturnType<typeof stateIn>>) => void])[]) {
  test(`restores timers and stops, for their owner alone, after ${what} disappeared`, async (t) => {
    const at = await stateIn(t);
    remove(at);
    await assert.rejects(commit(at.state), {
      name: 'StateLostError',
      message: /^\S+ was deleted while it was in use; its content is restored: start it again$/,
    });
    assert.equal(at.lost.length, 1);
    assert.deepEqual(await foundIn(at.dir), { timers: ['first'], stop: 'an incident', lost: undefined });
    assert.deepEqual([at.paths.records, at.paths.rules].map(modeOf), ['600', '600']);
  });
}

for (const place of ['records', 'rules'] as const) {
  test(`ends when the ${place} are replaced, before anything reads or writes the new ones`, async (t) => {
    const { paths, state, lost } = await stateIn(t);
    const path = paths[place];
    writeFileSync(`${path}.other`, '');
    renameSync(`${path}.other`, path);
    const message = `${path} was replaced while it was in use: start it again`;
    await assert.rejects(state.rulesStore.read(first.cluster), { name: 'StateLostError', message });
    assert.deepEqual(lost, [message]);
    assert.equal(statSync(path).size, 0);
  });
}

test('rejects a commit during which the database was deleted, and saves its data', async (t) => {
  const { dir, paths, state, lost } = await stateIn(t);
  const { exec } = DatabaseSync.prototype;
  t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    if (sql === 'COMMIT') rmSync(paths.records, { force: true });
    return exec.call(this, sql);
  });
  await assert.rejects(commit(state), StoreError);
  t.mock.restoreAll();
  assert.equal(lost.length, 1);
  assert.deepEqual((await foundIn(dir)).timers.toSorted(), ['first', 'second']);
});

test('protects ends, leases, and rules like records', async (t) => {
  for (const write of [
    ({ store }: ServiceState) => store.end(first, [anEnding()], NOW),
    ({ leases }: ServiceState) => leases.take(first.cluster, undefined, 'relay-1', NOW),
    ({ rulesStore }: ServiceState) => rulesStore.note(entry),
  ]) {
    const { paths, state } = await stateIn(t);
    truncateSync(paths.log, 0);
    const message = `${paths.log} was cut off while it was in use: start it again`;
    await assert.rejects(write(state), { name: 'StateLostError', message });
  }
});

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { issuesOf } from '#shared/conditions/conditions.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { localFleet } from '#shared/operations/fleet/local-fleet.ts';
import type { Operator } from '#shared/state/operator.ts';
import { openState, sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { RULES_FILE, STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 24, 12);
const PROD = clusterName('prod');
const clock = new DrivenClock(NOW);

let dir: string;
let rulesFile: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'known-rules-'));
  rulesFile = join(dir, RULES_FILE);
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Opens the state as `npm start` does and returns its log of rules and its current rules. */
async function start(act?: (operator: Operator) => Promise<unknown>) {
  const logged: string[] = [];
  const log = logTo((_, { event, fields }) => {
    if (event.startsWith('rules.')) logged.push(`${event}: ${'error' in fields ? fields.error : ''}`);
  });
  const state = sqliteState({ directory: dir, historyDays: 7, clock, log, lost: assert.fail });
  const { fleetStop, orders } = await state.rulesStore.read(PROD);
  const audit = await state.rulesStore.audit({ from: 0, to: NOW * 2 });
  await act?.({ rulesStore: state.rulesStore, clock, actor: 'anna@host' });
  state.close();
  return { logged, fleetStop, orders, audit };
}

const applyPolicy = (operator: Operator) =>
  perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce' }, operator);
const hold = (operator: Operator) =>
  perform(
    { kind: 'hold', cluster: PROD, target: { kind: 'node', node: nodeName('n') }, reason: 'a backup' },
    operator,
  );
const stop = (operator: Operator) =>
  perform({ kind: 'stop', cluster: PROD, reason: 'an incident' }, operator);
const rules = async (operator: Operator) => {
  for (const change of [applyPolicy, hold, stop]) await change(operator);
};

/** Copies the rules and returns a function that restores the copy. */
function kept(): () => void {
  copyFileSync(rulesFile, `${rulesFile}.kept`);
  return () => copyFileSync(`${rulesFile}.kept`, rulesFile);
}

/** Removes the records and their log. */
function removeRecords(): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(dir, `${STORE_FILE}${suffix}`), { force: true });
}

const OTHER =
  /^rules\.sqlite is not the database of rules that store\.sqlite knows, so policies, stops or holds may be missing: check them \(taintward holds, policy get, audit\) and set missing ones again$/;
const lacks = (many: string) =>
  `rules.sqlite lacks ${many} of policies, stops, holds or the guard: check them (taintward holds, policy get, audit) and set missing ones again`;

describe('rules that lack changes which the records know', () => {
  test('stop all clusters until an operator resumes them, which each start logs', async () => {
    await start(applyPolicy);
    const restore = kept();
    await start(stop);
    await start(hold);
    restore();
    const why = lacks('the last 2 changes');
    for (const _ of [1, 2]) {
      const { fleetStop, logged, audit } = await start();
      assert.deepEqual(fleetStop, { scope: 'fleet', actor: 'taintward', at: NOW, reason: why });
      assert.deepEqual(logged, [`rules.outdated: ${why}`]);
      const [{ actor: who, kind, reason } = assert.fail('the audit says nothing')] = audit;
      assert.deepEqual([who, kind, reason], ['taintward', 'stop', why]);
    }
    await start((operator) => perform({ kind: 'resume', reason: 'looked at' }, operator));
    const { fleetStop, logged } = await start();
    assert.deepEqual([fleetStop, logged], [undefined, []]);
  });

  test('are stopped by the first process that opens them, which status reports', async () => {
    await start(applyPolicy);
    const restore = kept();
    await start(stop);
    restore();
    const fleet = localFleet(dir, clock);
    const found = await fleet.rulesStore.fleetStop();
    fleet.close();
    assert.ok(found);
    const [{ message, remediation } = assert.fail('nothing needs anybody')] = issuesOf({
      at: NOW,
      clusters: [],
      stop: found,
    });
    assert.equal(message, `All clusters are stopped by taintward: ${lacks('the last change')}.`);
    assert.equal(remediation, "To resume, run taintward resume --all --reason 'REASON'.");
    assert.equal((await start()).logged.length, 1);
  });

  test('are detected even after as many changes by a command', async () => {
    await start(applyPolicy);
    const restore = kept();
    await start(stop);
    restore();
    const fleet = localFleet(dir, clock);
    const operator = await fleet.operator();
    for (const mode of ['observe', 'enforce'])
      await perform({ kind: 'apply-policy', cluster: PROD, text: `mode: ${mode}` }, operator);
    fleet.close();
    assert.equal((await start()).fleetStop?.actor, 'taintward');
  });

  for (const [what, damage] of [
    ['empty', () => truncateSync(rulesFile)],
    ['missing', () => rmSync(rulesFile)],
    ['those of another directory', () => replaceByOthers()],
  ] as const) {
    test(`count as lost if they are ${what}`, async () => {
      await start(rules);
      await damage();
      assert.match((await start()).fleetStop?.reason ?? '', OTHER);
      assert.match((await start()).fleetStop?.reason ?? '', OTHER);
    });
  }

  test('also count as lost when newer rules return without the later stop', async () => {
    await start(rules);
    const newer = kept();
    rmSync(rulesFile);
    await start();
    newer();
    assert.match((await start()).fleetStop?.reason ?? '', OTHER);
  });
});

/** Puts rules there that had more changes elsewhere. */
async function replaceByOthers(): Promise<void> {
  const here = dir;
  dir = mkdtempSync(join(tmpdir(), 'known-rules-'));
  for (const _ of [1, 2]) await start((operator) => perform({ kind: 'stop', reason: 'a test' }, operator));
  await start((operator) => perform({ kind: 'resume', reason: 'tested' }, operator));
  await start(rules);
  copyFileSync(join(dir, RULES_FILE), rulesFile);
  rmSync(dir, { recursive: true });
  dir = here;
}

describe('rules remain in force', () => {
  test('without their records', async () => {
    await start(rules);
    removeRecords();
    const { fleetStop, orders } = await start();
    assert.deepEqual(
      [fleetStop, orders.holds.length, orders.stops[0]?.reason],
      [undefined, 1, 'an incident'],
    );
    rmSync(rulesFile);
    assert.match((await start()).fleetStop?.reason ?? '', OTHER);
  });

  test('with older records', async () => {
    await start(applyPolicy);
    copyFileSync(join(dir, STORE_FILE), join(dir, 'older'));
    await start(stop);
    copyFileSync(join(dir, 'older'), join(dir, STORE_FILE));
    const { fleetStop, orders } = await start();
    assert.deepEqual([fleetStop, orders.stops[0]?.reason], [undefined, 'an incident']);
  });

  test('with records whose log is cut off', async () => {
    const { store, rulesStore } = openState(dir);
    rulesStore.stopIfLost(NOW);
    await rules({ rulesStore, clock, actor: 'anna@host' });
    // Closing the records would move their log into the database. A killed process does not.
    const killed = mkdtempSync(join(tmpdir(), 'known-rules-'));
    for (const name of [STORE_FILE, RULES_FILE]) copyFileSync(join(dir, name), join(killed, name));
    writeFileSync(join(killed, `${STORE_FILE}-wal`), '');
    rulesStore.close();
    store.close();
    const before = dir;
    dir = killed;
    const { fleetStop, orders } = await start();
    dir = before;
    rmSync(killed, { recursive: true });
    assert.deepEqual(
      [orders.holds.length, orders.stops[0]?.reason, fleetStop],
      [1, 'an incident', undefined],
    );
  });

  test('if the process ended, or its disk was full, before the records knew them', async () => {
    const { store, rulesStore } = openState(dir);
    rulesStore.stopIfLost(NOW);
    const operator = { rulesStore, clock, actor: 'anna@host' };
    await applyPolicy(operator);
    store.database.exec('PRAGMA query_only = 1');
    await stop(operator);
    store.close();
    rulesStore.close();
    const restore = kept();
    const { fleetStop, orders } = await start();
    assert.deepEqual([fleetStop, orders.stops[0]?.reason], [undefined, 'an incident']);
    await start(hold);
    restore();
    assert.equal((await start()).fleetStop?.reason, lacks('the last change'));
  });
});

test('rules that are lost still count as lost after a crash between the stop and the records', async () => {
  await start(rules);
  rmSync(rulesFile);
  const { store, rules: database, rulesStore } = openState(dir);
  database.exec('BEGIN IMMEDIATE');
  assert.equal(rulesStore.stopIfLost(NOW)?.actor, 'taintward');
  database.exec('ROLLBACK');
  rulesStore.close();
  store.close();
  assert.match((await start()).fleetStop?.reason ?? '', OTHER);
});

test("does not report an operator's stop of all clusters as a stop for missing rules", async () => {
  await start((operator) => perform({ kind: 'stop', reason: 'an incident' }, operator));
  const { logged, fleetStop } = await start();
  assert.deepEqual([fleetStop?.reason, logged], ['an incident', []]);
});

test('a state directory without rules starts without its records, and counts missing rules as lost', async () => {
  await start();
  removeRecords();
  assert.equal((await start()).fleetStop, undefined);
  rmSync(rulesFile);
  assert.match((await start()).fleetStop?.reason ?? '', OTHER);
});

test('rules that an older copy replaces while they are in use are neither read nor changed', async () => {
  await start(applyPolicy);
  const restore = kept();
  const { store, rulesStore } = openState(dir);
  rulesStore.stopIfLost(NOW);
  const operator = { rulesStore, clock, actor: 'anna@host' };
  await stop(operator);
  restore();
  const error = { name: 'StoreError', message: lacks('the last change') };
  await assert.rejects(rulesStore.read(PROD), error);
  await assert.rejects(rulesStore.readAll([PROD]), error);
  await assert.rejects(stop(operator), error);
  rulesStore.close();
  store.close();
  assert.equal((await start()).fleetStop?.reason, lacks('the last change'));
});

test('rules that were changed without their records are those of another database', async () => {
  await start(applyPolicy);
  const restore = kept();
  await start(stop);
  removeRecords();
  await start();
  restore();
  assert.match((await start()).fleetStop?.reason ?? '', OTHER);
});

test('rules whose index lost a page are damaged', async () => {
  await start(applyPolicy);
  const database = new DatabaseSync(rulesFile);
  const at =
    (Number(
      database
        .prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_objects_1'")
        .get()?.['rootpage'],
    ) -
      1) *
    4096;
  database.close();
  const page = readFileSync(rulesFile).subarray(at, at + 4096);
  await start((operator) => perform({ kind: 'stop', reason: 'an incident' }, operator));
  const torn = readFileSync(rulesFile);
  page.copy(torn, at);
  writeFileSync(rulesFile, torn);
  assert.throws(() => openState(dir), { name: 'StoreError', message: /is damaged/ });
});

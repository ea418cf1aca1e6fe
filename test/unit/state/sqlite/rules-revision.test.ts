import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { localFleet } from '#shared/operations/fleet/local-fleet.ts';
import { issuesOf } from '#shared/operations/look/issues.ts';
import { Operator } from '#shared/state/operator.ts';
import { RULES_REVISION_FILE } from '#shared/state/sqlite/rules-revision.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 24, 12);
const PROD = clusterName('prod');
const clock = new DrivenClock(NOW);

let dir: string;
let path: string;
let note: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'rules-revision-'));
  path = join(dir, STORE_FILE);
  note = join(dir, RULES_REVISION_FILE);
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Opens the state as `npm start` does and returns its log of rules and its current rules. */
async function start(act?: (operator: Operator) => Promise<unknown>) {
  const logged: string[] = [];
  const log = logTo((_, { event, fields }) => {
    if (event.startsWith('rules.')) logged.push(`${event}: ${'error' in fields ? fields.error : ''}`);
  });
  const state = sqliteState({ path, historyDays: 7, clock, log, lost: assert.fail });
  const { fleetStop, orders } = await state.rulesStore.read(PROD);
  const audit = await state.rulesStore.audit({ from: 0, to: NOW * 2 });
  await act?.(new Operator({ rulesStore: state.rulesStore, clock, actor: 'anna@host' }));
  state.close();
  return { logged, fleetStop, orders, audit };
}

const rules = (operator: Operator) =>
  operator
    .applyPolicy(PROD, 'mode: enforce')
    .then(() => operator.hold(PROD, { kind: 'node', node: nodeName('n') }, { reason: 'a backup' }))
    .then(() => operator.stop(PROD, { reason: 'an incident' }));

const noted = () => JSON.parse(readFileSync(note, 'utf8')) as { database: string; revision: number };

/** Copies the database and returns a function that restores the copy. */
function kept() {
  copyFileSync(path, `${path}.kept`);
  return () => {
    for (const part of ['-wal', '-shm']) rmSync(`${path}${part}`, { force: true });
    copyFileSync(`${path}.kept`, path);
  };
}

describe('a change of policy, stops or holds', () => {
  test('is recorded in a private file next to the database', async () => {
    await start(rules);
    assert.equal(noted().revision, 3);
    assert.equal(statSync(note).mode & 0o777, 0o600);
    await start((operator) => operator.stopAll({ reason: 'all of it' }));
    assert.equal(noted().revision, 4);
  });

  test('is written to the database file immediately and survives a lost write-ahead log', async () => {
    const store = new SqliteStore({ path });
    const rulesStore = new SqliteRulesStore({ database: store.database });
    rulesStore.recover(NOW);
    await rules(new Operator({ rulesStore, clock, actor: 'anna@host' }));
    // Closing a database checkpoints its log. A killed process does not.
    const killed = mkdtempSync(join(tmpdir(), 'rules-revision-'));
    for (const name of [STORE_FILE, RULES_REVISION_FILE]) copyFileSync(join(dir, name), join(killed, name));
    store.close();
    const before = [dir, path];
    [dir, path] = [killed, join(killed, STORE_FILE)];
    const { orders, fleetStop } = await start();
    rmSync(killed, { recursive: true });
    [dir, path] = before as [string, string];
    assert.deepEqual([orders.holds.length, orders.stop?.reason, fleetStop], [1, 'an incident', undefined]);
  });

  test('keeps a note about another database that was put there', async () => {
    await start(rules);
    const other = { database: 'another', revision: 1 };
    await start(async (operator) => {
      writeFileSync(note, JSON.stringify(other), { mode: 0o600 });
      await operator.stop(PROD, { reason: 'a second one' });
    });
    assert.deepEqual(noted(), other);
  });

  test("remains effective if the note can't be written", async () => {
    await start();
    await start(async (operator) => {
      rmSync(note);
      symlinkSync('/nowhere/at/all', note);
      await operator.stop(PROD, { reason: 'an incident' });
      rmSync(note);
    });
    assert.equal((await start()).orders.stop?.reason, 'an incident');
    assert.equal(noted().revision, 1);
  });
});

describe('a database that lacks changes in its note', () => {
  const lacks = (many: string) =>
    `store.sqlite lacks ${many} of policies, stops or holds: check them (taintward holds, policy get, audit) and set missing ones again`;

  test('stops all clusters until an operator resumes them, and logs that at each start', async () => {
    await start((operator) => operator.applyPolicy(PROD, 'mode: enforce'));
    const restore = kept();
    await start((operator) => operator.stop(PROD, { reason: 'an incident' }));
    await start((operator) =>
      operator.hold(PROD, { kind: 'node', node: nodeName('n') }, { reason: 'a backup' }),
    );
    restore();
    const why = lacks('the last 2 changes');
    for (const _ of [1, 2]) {
      const { fleetStop, logged, audit } = await start();
      assert.deepEqual(fleetStop, { scope: 'fleet', actor: 'taintward', at: NOW, reason: why });
      assert.deepEqual(logged, [`rules.outdated: ${why}`]);
      const [{ actor: who, kind, reason } = assert.fail('the audit says nothing')] = audit;
      assert.deepEqual([who, kind, reason], ['taintward', 'stop', why]);
    }
    await start((operator) => operator.resumeAll('looked at'));
    const { fleetStop, logged } = await start();
    assert.deepEqual([fleetStop, logged], [undefined, []]);
  });

  test('is stopped by the first process that opens it, which status reports', async () => {
    await start((operator) => operator.applyPolicy(PROD, 'mode: enforce'));
    const restore = kept();
    await start((operator) => operator.stop(PROD, { reason: 'an incident' }));
    restore();
    const fleet = localFleet(dir, clock);
    const stop = await fleet.rulesStore.fleetStop();
    fleet.close();
    assert.ok(stop);
    const [{ message, remediation } = assert.fail('nothing needs anybody')] = issuesOf({
      at: NOW,
      clusters: [],
      stop,
    });
    assert.equal(message, `All clusters are stopped by taintward: ${lacks('the last change')}.`);
    assert.equal(remediation, "To resume, run taintward resume --all --reason 'REASON'.");
    assert.equal((await start()).logged.length, 1);
  });

  for (const [what, damage] of [
    ['is empty', () => writeFileSync(path, '')],
    ['is gone', () => rmSync(path)],
  ] as const) {
    test(`stops all clusters because it ${what}`, async () => {
      await start(rules);
      damage();
      const { fleetStop } = await start();
      assert.match(
        fleetStop?.reason ?? '',
        /^store\.sqlite is not the database that rules-revision\.json names, so policies, stops or holds may be missing/,
      );
    });
  }

  test('also counts as another database when the newer one returns without the later changes', async () => {
    await start(rules);
    const newer = kept();
    rmSync(path);
    await start();
    await start((operator) => operator.stop(PROD, { reason: 'a second incident' }));
    newer();
    assert.match((await start()).fleetStop?.reason ?? '', /is not the database that/);
  });

  test('is detected even after as many manual changes', async () => {
    await start((operator) => operator.applyPolicy(PROD, 'mode: enforce'));
    const restore = kept();
    await start((operator) => operator.stop(PROD, { reason: 'an incident' }));
    restore();
    const fleet = localFleet(dir, clock);
    const operator = await fleet.operator();
    for (const mode of ['observe', 'enforce']) await operator.applyPolicy(PROD, `mode: ${mode}`);
    fleet.close();
    assert.equal((await start()).fleetStop?.actor, 'taintward');
  });

  test("stops all clusters if the note can't be read, and the note is rewritten", async () => {
    await start(rules);
    writeFileSync(note, '{"revision": ');
    assert.match(
      (await start()).fleetStop?.reason ?? '',
      /^rules-revision\.json cannot be read, so policies/,
    );
    assert.equal(noted().revision, 4);
  });
});

describe('a state directory starts normally', () => {
  test('if an older release left it without a note', async () => {
    const store = new SqliteStore({ path });
    const operator = new Operator({
      rulesStore: new SqliteRulesStore({ database: store.database }),
      clock,
      actor: 'anna@host',
    });
    await rules(operator);
    store.close();
    assert.ok(!existsSync(note));
    const { fleetStop, orders } = await start();
    assert.deepEqual([fleetStop, orders.holds.length], [undefined, 1]);
    assert.equal(noted().revision, 3);
  });

  test('if an older release changed rules without updating the note', async () => {
    await start(rules);
    const before = readFileSync(note);
    await start((operator) => operator.resume(PROD, 'mended'));
    writeFileSync(note, before);
    assert.equal((await start()).fleetStop, undefined);
    assert.equal(noted().revision, 4);
  });

  test('if its clusters never had rules, even if its database is lost', async () => {
    await start();
    rmSync(path);
    assert.equal((await start()).fleetStop, undefined);
    await start(rules);
    assert.equal(noted().revision, 3);
  });

  test('if only its database was copied', async () => {
    await start(rules);
    rmSync(note);
    assert.equal((await start()).fleetStop, undefined);
    assert.equal(noted().revision, 3);
  });

  test('but not if others may write its note', async () => {
    await start(rules);
    rmSync(note);
    symlinkSync('/nowhere/at/all', note);
    await assert.rejects(start(), { name: 'ForeignFileError', message: /rules-revision\.json is a link/ });
  });
});

test("does not report an operator's stop of all clusters as a stop for missing rules", async () => {
  await start((operator) => operator.stopAll({ reason: 'an incident' }));
  const { logged, fleetStop } = await start();
  assert.deepEqual([fleetStop?.reason, logged], ['an incident', []]);
});

test('writes no note for an in-memory database', () => {
  const store = new SqliteStore({ path: ':memory:' });
  assert.equal(new SqliteRulesStore({ database: store.database }).recover(NOW), undefined);
  store.close();
});

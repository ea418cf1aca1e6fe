import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createProgram } from '#functions/cli/program.ts';
import { parseMoment } from '#functions/cli/time-option.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { localFleet } from '#shared/operations/fleet/local-fleet.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { openState, sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { plainOutput } from './plain-output.ts';

const MINUTE = 60_000;
const at = (minutes: number) => NOW + minutes * MINUTE;
const REF = aRef(clusterName('prod'), 'n1');

/** The command line one hour after `NOW`, beside a service that keeps writing its state directory. */
function commandLine(t: TestContext) {
  const state = mkdtempSync(join(tmpdir(), 'history-'));
  const { store, rulesStore } = openState(state);
  t.after(() => {
    rulesStore.close();
    store.close();
    rmSync(state, { recursive: true });
  });
  const leases = sqliteLeases(store.database);
  void leases.take(REF.cluster, undefined, 'relay', NOW);
  const clock = new DrivenClock(at(60));
  const output = plainOutput();
  const program = createProgram({
    fleet: async ({ stateDir: dir = assert.fail('no state directory was named') }) => localFleet(dir, clock),
    live: () => assert.fail('a cluster was asked for'),
    clock,
    ...output.deps,
    connect: () => assert.fail('a cluster was asked for'),
  });
  for (const command of program.commands) {
    command.exitOverride().configureOutput({ writeErr: () => undefined });
  }
  const run = async (...args: string[]): Promise<string> => {
    output.state.printed = '';
    // Commander keeps option values between parses of one program.
    await program.parseAsync(['history', '--state-dir', state, ...args], { from: 'user' });
    return output.state.printed;
  };
  const write = async (
    minutes: number,
    schedule: readonly EvictionRecord[],
    noted: readonly Noted[] = [],
  ) => {
    const { revision } = await store.load(REF, NOW, []);
    await store.commit(REF, revision, { node: aNode(), schedule, noted, end: [], live: true }, at(minutes));
  };
  return { store, rulesStore, run, write };
}

const pod = (name: string, dueMinutes = 5) =>
  aRecord({ name, startedAt: at(0), dueAt: at(dueMinutes), podSince: NOW });

const wouldHave = ({ uid, namespace, name, dueAt, causes }: EvictionRecord): Noted => ({
  uid,
  namespace,
  name,
  dueAt,
  causes,
  event: 'would-evict',
  by: { kind: 'observe' },
});

test('prints entries oldest first with cause and actor', async (t) => {
  const { store, run, write } = commandLine(t);
  const [a, b] = [pod('a'), { ...pod('b'), startedAt: at(1) }];
  await write(0, [a, b]);
  await write(5.5, [b], [wouldHave(b)]);
  await store.end(REF, [anEnding(a, { delayMs: 42 })], at(5));
  const deleted = { at: at(6), by: 'taint-manager' } as const;
  await store.end(REF, [anEnding(b, { outcome: 'already-gone', cancelReason: 'pod-gone', deleted })], at(7));
  const history = new SqliteHistory({ database: store.database });
  await history.noteGone(REF.cluster, [
    { uid: a.uid, at: at(5) + 31_400 },
    { uid: b.uid, at: at(8) },
  ]);
  const lines = (await run('prod')).trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => line.split(/ {3,}/).slice(1, 3)),
    [
      ['WHAT', 'POD'],
      ['scheduled', 'default/a'],
      ['scheduled', 'default/b'],
      ['evicted', 'default/a'],
      ['would evict', 'default/b'],
      ['already gone', 'default/b'],
    ],
  );
  const because =
    'node.kubernetes.io/unreachable:NoExecute since 2026-11-21T11:59:59Z (added), toleration 1: 5m';
  assert.equal(
    lines[3]?.replaceAll(/ {3,}/g, ' | '),
    `2026-11-21T12:05:00Z | evicted | default/a | n1 | 2026-11-21T12:05:00Z | 42ms | after 31s | taintward | ${because}`,
  );
  assert.match(String(lines[5]), / {3}after 2m {4}built-in controller, 2026-11-21T12:06:00Z {3}/);
});

test('lists actions of operators and the guard between pod events', async (t) => {
  const { store, rulesStore, run, write } = commandLine(t);
  const { cluster } = REF;
  const a = pod('a');
  await write(0, [a]);
  const trip = { scope: 'cluster', trippedAt: at(1), nodes: 6, outOf: 10 } as const;
  const entry = { actor: 'the guard', at: at(1), kind: 'guard-tripped', message: 'the guard holds' } as const;
  await rulesStore.changeGuard(cluster, { revision: 0, trips: [] }, [trip], { cluster, ...entry });
  const stop = { actor: 'anna', at: at(2), reason: 'a storm', scope: 'fleet' } as const;
  const stopped = {
    actor: 'anna',
    at: at(2),
    kind: 'stop',
    message: 'stopped all',
    reason: 'a storm',
  } as const;
  await rulesStore.changeFleetStop(undefined, stop, stopped);
  await store.end(REF, [anEnding(a)], at(3));
  const cells = async (...args: string[]) =>
    (await run(...args))
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {3,}/).slice(1));
  const [, tripped, all, evicted] = await cells('prod');
  assert.deepEqual(tripped, ['guard tripped', 'the guard', 'the guard holds']);
  assert.deepEqual(all, ['stop', '(all clusters)', 'anna', 'stopped all: a storm']);
  assert.deepEqual(evicted?.slice(0, 2), ['evicted', 'default/a']);
  assert.equal((await cells('prod', '--pod', 'a')).length, 2);
  const [, json, ofAll] = JSON.parse(await run('prod', '-o', 'json'));
  const time = '2026-11-21T12:01:00.000Z';
  assert.deepEqual(json, {
    time,
    cluster,
    kind: 'guard-tripped',
    actor: 'the guard',
    message: 'the guard holds',
  });
  assert.equal('cluster' in ofAll, false);
});

test('filters entries by node, namespace, pod, and period, with or without a cluster name', async (t) => {
  const { store, run, write } = commandLine(t);
  await write(0, [pod('a'), { ...pod('b'), namespace: 'shop' }]);
  const later = (name: string) => ({ ...pod(name), startedAt: at(10) });
  const onOther = { node: aNode(), schedule: [later('a'), later('c')], end: [], live: true };
  await store.commit(aRef(REF.cluster, 'n2'), 0, onOther, at(10));
  const lines = async (...args: string[]) => (await run(...args)).split('\n').length - 1;
  assert.equal(await lines(), 5);
  assert.equal(await lines('--pod', 'a'), 3);
  assert.equal(await lines('--node', 'n2', '--pod', 'a'), 2);
  assert.equal(await lines('--namespace', 'shop'), 2);
  assert.equal(await lines('--since', '1h', '--until', '55m'), 3);
  assert.match(await run('--pod', 'a', '--since', '30m'), /^No entries in this period\. /);
  assert.match(await run('other', '--since', '2026-11-21T00:00:00Z'), /^No entries in this period\. /);
});

test('prints JSON for programs', async (t) => {
  const { store, run, write } = commandLine(t);
  const a = pod('a');
  await write(0, [a]);
  await write(5, [a], [wouldHave(a)]);
  const deleted = { at: at(5.1), by: 'taint-manager' } as const;
  await store.end(REF, [anEnding(a, { outcome: 'already-gone', deleted })], at(6));
  const history = new SqliteHistory({ database: store.database });
  await history.noteGone(REF.cluster, [{ uid: a.uid, at: at(5.5) }]);
  const [, would, gone] = JSON.parse(await run('prod', '-o', 'json'));
  const { deletedBy, deletedAt, removedAt } = gone;
  const minute = '2026-11-21T12:05';
  assert.deepEqual(
    [deletedBy, deletedAt, removedAt],
    ['taint-manager', `${minute}:06.000Z`, `${minute}:30.000Z`],
  );
  assert.deepEqual(would, {
    time: '2026-11-21T12:05:00.000Z',
    cluster: 'prod',
    node: 'n1',
    namespace: 'default',
    pod: 'a',
    uid: a.uid,
    event: 'would-evict',
    dueAt: '2026-11-21T12:05:00.000Z',
    by: { kind: 'observe' },
    causes: [
      {
        taint: 'node.kubernetes.io/unreachable:NoExecute',
        since: '2026-11-21T11:59:59.000Z',
        known: 'added',
        toleration: 1,
        seconds: 300,
      },
    ],
  });
});

test('compares evictions of the built-in controller with those of Taintward', async (t) => {
  const { store, run, write } = commandLine(t);
  const [early, late, ours, theirs, other] = ['early', 'late', 'ours', 'theirs', 'other'].map((name) =>
    pod(name),
  ) as [EvictionRecord, EvictionRecord, EvictionRecord, EvictionRecord, EvictionRecord];
  await write(0, [early, late, ours, other]);
  await write(5, [late, ours], [late, ours].map(wouldHave));
  const gone = (
    record: EvictionRecord,
    seconds: number,
    deleter: 'taint-manager' | 'other' = 'taint-manager',
  ) =>
    anEnding(record, {
      outcome: 'already-gone',
      deleted: { at: record.dueAt + seconds * 1000, by: deleter },
    });
  await store.end(REF, [gone(early, -1), gone(late, 3), gone(other, -60, 'other')], at(6));
  await store.end(REF, [{ ...gone(theirs, 0), causes: [], dueAt: 8.64e15 }], at(6));
  const text = await run('prod', '--compare');
  const cells = text
    .split('\n')
    .slice(1, 5)
    .map((line) => line.split(/ {3,}/).slice(0, 5));
  assert.deepEqual(cells, [
    ['default/early', 'n1', '2026-11-21T12:04:59Z', '2026-11-21T12:05:00Z', '-1s'],
    ['default/late', 'n1', '2026-11-21T12:05:03Z', '2026-11-21T12:05:00Z', '3s'],
    ['default/theirs', 'n1', '2026-11-21T12:05:00Z', 'never'],
    ['default/ours', 'n1', 'never', '2026-11-21T12:05:00Z', cells[3]?.[4]],
  ]);
  assert.match(
    text,
    /\nEvicted by both: 2 \(median difference 1s, maximum 3s\)\. By the built-in controller only: 1\. By Taintward only: 1\.\n$/,
  );
});

test('compares no deadline of Taintward for a pod that a gate held, or would have held in enforce mode', async (t) => {
  const { store, run, write } = commandLine(t);
  const [held, reported] = [pod('held'), pod('reported')];
  await write(0, [held, reported]);
  await write(5, [reported], [wouldHave(reported)]);
  const gate = {
    kind: 'guard',
    scope: 'customTaints',
    trippedAt: at(4),
    revision: 1,
    guardRevision: 1,
  } as const;
  const deleted = { at: at(5), by: 'taint-manager' } as const;
  await store.end(REF, [anEnding(held, { outcome: 'already-gone', deleted, by: gate })], at(6));
  await store.end(REF, [anEnding(reported, { outcome: 'already-gone', deleted })], at(6));
  const { both, builtInOnly } = JSON.parse(await run('prod', '--compare', '-o', 'json'));
  const names = (pods: readonly { readonly pod: string }[]) => pods.map((each) => each.pod);
  assert.deepEqual([names(both), names(builtInOnly)], [['reported'], ['held']]);
});

test('compares times in whole seconds, the precision of the built-in controller', async (t) => {
  const { store, run, write } = commandLine(t);
  const record = { ...pod('a'), dueAt: at(5) + 600 };
  await write(0, [record]);
  const deleted = { at: at(5), by: 'taint-manager' } as const;
  await store.end(REF, [anEnding(record, { outcome: 'already-gone', deleted })], at(6));
  assert.match(await run('prod', '--compare'), / 0s .*\n.*median difference 0s/s);
});

test('prints zeros when there is nothing to compare', async (t) => {
  const { run } = commandLine(t);
  assert.equal(
    await run('prod', '--compare'),
    'Evicted by both: 0. By the built-in controller only: 0. By Taintward only: 0.\n',
  );
});

test('reads a duration, a date, and a time with its zone', () => {
  assert.deepEqual(parseMoment('1d12h'), { agoMs: 36 * 60 * MINUTE });
  assert.deepEqual(parseMoment('2026-11-21'), { at: Date.UTC(2026, 10, 21) });
  assert.deepEqual(parseMoment('2026-11-21T01:30:00+02:00'), { at: Date.UTC(2026, 10, 20, 23, 30) });
  for (const text of ['2026', '2026-11', '2026-13-01', '-1h'])
    assert.throws(() => parseMoment(text), { code: 'commander.invalidArgument' }, text);
});

test('rejects an invalid time', async (t) => {
  const { run } = commandLine(t);
  await assert.rejects(
    run('--since', 'yesterday'),
    /Specify a duration before now, for example 30m, 2h, or 7d, or a date/,
  );
  await assert.rejects(run('--since', '5'), /Specify a duration before now/);
});

test('rejects a missing state directory', async (t) => {
  const { run } = commandLine(t);
  await assert.rejects(run('--state-dir', '/nowhere'), {
    name: 'FleetError',
    message: /^\/nowhere\/.* not found/,
  });
});

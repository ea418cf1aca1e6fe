import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { REACHED_BY_FILE, writeReachedBy } from '#functions/local/reached-by.ts';
import { SqliteLeases } from '#functions/local/sqlite-leases.ts';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { STORE_FILE, takeStateDirectory } from '#functions/local/state-directory.ts';
import { openFleet, openLive } from '#functions/operator/open-fleet.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const PROD = clusterName('prod');

/** In a directory in which an `npm start` was once given the context `prod`. */
async function here(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'open-fleet-'));
  const before = process.cwd();
  process.chdir(directory);
  const state = takeStateDirectory('.taintward');
  const store = new SqliteStore({ path: state.file(STORE_FILE) });
  await new SqliteLeases({ database: store.database }).take(PROD, undefined, 'relay', NOW);
  writeReachedBy(state.file(REACHED_BY_FILE), new Map([[PROD, { context: 'prod', kubeconfig: '/k' }]]));
  store.close();
  t.after(() => {
    process.chdir(before);
    rmSync(directory, { recursive: true });
  });
  const hints: string[] = [];
  const deps = {
    clock: new DrivenClock(NOW),
    connect: () => assert.fail('a registered cluster was asked'),
    hint: (text: string) => hints.push(text),
  };
  return { deps, hints, state };
}

test('without a word the fleet is that of the npm start that runs here, and that is said', async (t) => {
  const { deps, hints, state } = await here(t);
  const fleet = openFleet({}, deps);
  t.after(() => fleet.close());
  assert.equal(fleet.kind, 'local');
  assert.deepEqual(await fleet.clusters(), ['prod']);
  assert.deepEqual(hints, ['Of the npm start that runs in this directory (--state .taintward).']);
  state.release();
});

test('without a word the fleet is the table of a stack where no npm start runs', async (t) => {
  const { deps, hints, state } = await here(t);
  state.release();
  const onFailure: string[] = [];
  const fleet = openFleet({}, { ...deps, hintOnFailure: (text) => onFailure.push(text) });
  assert.equal(fleet.where, 'table taintward');
  assert.deepEqual(hints, []);
  assert.match(
    onFailure.join(),
    /^No npm start runs in this directory, so that was asked of table taintward/,
  );
});

test('a state directory goes before a table, and a table before what runs here', async (t) => {
  const { deps, state } = await here(t);
  const named = openFleet({ state: '.taintward', table: 'fleet' }, deps);
  t.after(() => named.close());
  assert.equal(named.kind, 'local');
  assert.equal(openFleet({ table: 'fleet' }, deps).where, 'table fleet');
  state.release();
});

test('a context alone is a cluster of which nothing else is known, unless the npm start here manages it', async (t) => {
  const { deps, state } = await here(t);
  assert.equal((await openLive({ context: 'other' }, deps)).kind, 'context');
  const managed = await openLive({ context: 'prod' }, deps);
  t.after(() => managed.close());
  assert.equal(managed.kind, 'local');
  state.release();
  assert.equal((await openLive({ context: 'prod' }, deps)).kind, 'context');
});

test('a cluster of a state directory is asked by the context by which its process reaches it', async (t) => {
  const { deps, state } = await here(t);
  state.release();
  const fleet = openFleet({ state: '.taintward' }, deps);
  t.after(() => fleet.close());
  const cluster = await fleet.cluster(PROD);
  t.after(() => cluster.close());
  assert.equal(cluster.objects.host, 'context "prod"');
  await assert.rejects(fleet.cluster(clusterName('stage')), {
    name: 'FleetError',
    message: /^How cluster stage is reached is not known in .+: say --context NAME\.$/,
  });
});

test('a kubeconfig without a context is refused', async (t) => {
  const { deps, state } = await here(t);
  state.release();
  await assert.rejects(openLive({ kubeconfig: 'k' }, deps), {
    name: 'FleetError',
    message: '--kubeconfig needs --context: say which of its clusters is meant.',
  });
});

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { FleetChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { openFleet, openLive } from '#shared/operations/fleet/open-fleet.ts';
import { REACHED_BY_FILE, writeReachedBy } from '#shared/operations/fleet/reached-by.ts';
import { listenOnSocket } from '#shared/operations/fleet/state-socket.ts';
import { sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { STORE_FILE, takeStateDirectory } from '#shared/state/sqlite/state-directory.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const PROD = clusterName('prod');

/** Creates a directory in which an `npm start` was once given the context `prod`. */
async function here(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'open-fleet-'));
  const before = process.cwd();
  process.chdir(directory);
  const state = takeStateDirectory('.taintward');
  const store = new SqliteStore({ path: state.file(STORE_FILE) });
  await sqliteLeases(store.database).take(PROD, undefined, 'relay', NOW);
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
    env: {},
  };
  return { deps, hints, state };
}

test('uses the fleet of a running npm start in the directory by default, and prints that', async (t) => {
  const { deps, hints, state } = await here(t);
  const fleet = await openFleet({}, deps);
  t.after(() => fleet.close());
  assert.equal(fleet.kind, 'local');
  assert.deepEqual(await fleet.clusters(), ['prod']);
  assert.deepEqual(hints, ['Using the npm start that runs in this directory (--state-dir .taintward).']);
  state.release();
});

test('closes each database of a state directory', async (t) => {
  const { deps, state } = await here(t);
  const fleet = await openFleet({}, deps);
  fleet.close();
  const { rulesStore, store, leases } = fleet;
  const node = { cluster: PROD, node: nodeName('n1') };
  for (const read of [() => rulesStore.read(PROD), () => store.load(node, NOW), () => leases.read(PROD)])
    await assert.rejects(async () => read(), /not open/, `${read}`);
  state.release();
});

test('uses the state directory that a stopped npm start left, and prints that', async (t) => {
  const { deps, hints, state } = await here(t);
  state.release();
  const fleet = await openFleet({}, deps);
  t.after(() => fleet.close());
  assert.deepEqual([fleet.kind, fleet.isAbandoned, await fleet.clusters()], ['local', true, ['prod']]);
  assert.match(
    hints.join(),
    /^No npm start runs in this directory\. Using its state directory as it was left/,
  );
  const specified = await openFleet({ stateDir: '.taintward' }, deps);
  t.after(() => specified.close());
  assert.equal(specified.isAbandoned, undefined);
});

const AWS_SETTINGS = [
  ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_PROFILE', 'AWS_DEFAULT_PROFILE', 'AWS_ACCESS_KEY_ID'],
  ['AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_CONTAINER_CREDENTIALS_FULL_URI', 'AWS_SHARED_CREDENTIALS_FILE'],
  ['AWS_ROLE_ARN', 'AWS_SESSION_TOKEN', 'AWS_CONFIG_FILE', 'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_DYNAMODB'],
].flat();
test('rejects a stopped npm start beside AWS settings, and names both fleets', async (t) => {
  const { deps, state } = await here(t);
  const choose = (env: Record<string, string>) => openFleet({}, { ...deps, env });
  const running = await choose({ AWS_REGION: 'eu-west-1' });
  assert.equal(running.kind, 'local');
  running.close();
  state.release();
  for (const name of AWS_SETTINGS) {
    await assert.rejects(choose({ [name]: 'x', AWS_PAGER: '' }), {
      name: 'UsageError',
      message: `No npm start runs on the state directory .taintward of this directory, and the environment selects an AWS account (${name}). Specify the fleet: run taintward --state-dir .taintward COMMAND, or taintward --table NAME COMMAND.`,
    });
  }
  (await choose({ AWS_REGION: '', AWS_PAGER: 'less', AWS_CA_BUNDLE: '/etc/ca.pem' })).close();
});

test('opens no fleet that is not specified in a directory without state', async (t) => {
  const { deps, state } = await here(t);
  state.release();
  mkdirSync('below/.taintward', { recursive: true, mode: 0o700 });
  process.chdir('below');
  for (const env of [{}, { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'x' }]) {
    await assert.rejects(openFleet({}, { ...deps, env }), {
      name: 'UsageError',
      message:
        /^No fleet is specified, and this directory has no state directory \.taintward\. Specify --table /,
    });
  }
});

test('prefers a state directory to a table, and a table to a running npm start', async (t) => {
  const { deps, state } = await here(t);
  const named = await openFleet({ stateDir: '.taintward', table: 'fleet' }, deps);
  t.after(() => named.close());
  assert.equal(named.kind, 'local');
  assert.equal((await openFleet({ table: 'fleet' }, deps)).where, 'table fleet');
  state.release();
});

test('uses a bare context without records unless the npm start in the directory manages it', async (t) => {
  const { deps, state } = await here(t);
  assert.equal((await openLive({ context: 'other' }, deps)).kind, 'context');
  const managed = await openLive({ context: 'prod' }, deps);
  t.after(() => managed.close());
  assert.equal(managed.kind, 'local');
  state.release();
  assert.equal((await openLive({ context: 'prod' }, deps)).kind, 'context');
});

test('reaches a cluster of a state directory by the context that its process uses', async (t) => {
  const { deps, state } = await here(t);
  state.release();
  const fleet = await openFleet({ stateDir: '.taintward' }, deps);
  t.after(() => fleet.close());
  const cluster = await fleet.cluster(PROD);
  t.after(() => cluster.close());
  assert.equal(cluster.objects.host, 'context "prod"');
  await assert.rejects(fleet.cluster(clusterName('stage')), {
    name: 'FleetError',
    message: /^No kubeconfig context is recorded for cluster "stage" in .+\. Specify --context NAME\.$/,
  });
});

test('rejects a kubeconfig without a context', async (t) => {
  const { deps, state } = await here(t);
  state.release();
  await assert.rejects(openLive({ kubeconfig: 'k' }, deps), {
    name: 'UsageError',
    message: '--kubeconfig requires --context NAME, which selects the cluster.',
  });
});

/** A kubeconfig whose user runs a program, and a state directory that refers to it. */
async function hereWithAProgram(t: TestContext, user = '{exec: {command: ./run}}') {
  const opened = await here(t);
  const kubeconfig = resolve('hostile.kubeconfig');
  writeFileSync(
    kubeconfig,
    `clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: prod, context: {cluster: c, user: u}}]
users: [{name: u, user: ${user}}]`,
  );
  writeReachedBy(opened.state.file(REACHED_BY_FILE), new Map([[PROD, { context: 'prod', kubeconfig }]]));
  let isRunning = true;
  const stop = () => {
    if (isRunning) opened.state.release();
    isRunning = false;
  };
  t.after(stop);
  const before = process.env['KUBECONFIG'];
  t.after(() => {
    if (before === undefined) delete process.env['KUBECONFIG'];
    else process.env['KUBECONFIG'] = before;
  });
  process.env['KUBECONFIG'] = '/nowhere/config';
  const open = async (choice: FleetChoice): Promise<unknown> => {
    const fleet = await openFleet(choice, opened.deps);
    const cluster = await fleet.cluster(PROD);
    try {
      return await cluster.objects.get('/api/v1/nodes/n');
    } finally {
      cluster.close();
      fleet.close();
    }
  };
  return { kubeconfig, open, stop };
}

const REFUSED =
  /starts a program for its credentials \((exec|auth-provider)\): its kubeconfig .*hostile\.kubeconfig is named by \.taintward, which you did not specify\. If you trust that directory, specify --state-dir \.taintward\.$/;

for (const state of ['running', 'stopped'] as const) {
  for (const [what, user] of [
    ['an exec plugin', '{exec: {command: ./run}}'],
    ['an auth-provider', '{auth-provider: {name: gcp, config: {cmd-path: ./run}}}'],
  ] as const) {
    test(`does not run ${what} of a kubeconfig from an implicit state directory of a ${state} npm start`, async (t) => {
      const { open, stop } = await hereWithAProgram(t, user);
      if (state === 'stopped') stop();
      await assert.rejects(open({}), REFUSED);
    });
  }
}

test('runs an exec plugin if the state directory was named or kubectl reads the same kubeconfig', async (t) => {
  const { open, kubeconfig, stop } = await hereWithAProgram(t, '{exec: {command: /nowhere/run}}');
  const started = /The credentials plugin \/nowhere\/run of context "prod" cannot be started \(ENOENT\)/;
  await assert.rejects(open({ stateDir: '.taintward' }), started);
  process.env['KUBECONFIG'] = `/elsewhere:${kubeconfig}`;
  await assert.rejects(open({}), started);
  stop();
  await assert.rejects(open({}), started);
  process.env['KUBECONFIG'] = '/nowhere/config';
  await assert.rejects(open({ stateDir: '.taintward' }), started);
});

test('rejects a state directory that others may write, and reads none of it for a context', async (t) => {
  const { deps, hints, state } = await here(t);
  chmodSync(state.path, 0o777);
  await assert.rejects(openFleet({}, deps), { name: 'ForeignFileError' });
  assert.equal((await openLive({ context: 'prod' }, deps)).kind, 'context');
  assert.match(
    hints.join(),
    /^The state directory \.taintward of this directory is ignored: .*\.taintward may be written by other users \(mode 777\)/,
  );
  await assert.rejects(openFleet({ stateDir: '.taintward' }, deps), { name: 'ForeignFileError' });
  state.release();
});

test('rejects a clusters.json that others may write', async (t) => {
  const { deps, state } = await here(t);
  state.release();
  const fleet = await openFleet({ stateDir: '.taintward' }, deps);
  t.after(() => fleet.close());
  chmodSync(state.file(REACHED_BY_FILE), 0o666);
  await assert.rejects(fleet.cluster(PROD), /clusters\.json may be written by other users/);
});

test('prints no link to a console elsewhere or with more than a key', async (t) => {
  const { deps, state } = await here(t);
  let link = '';
  const socket = await listenOnSocket(
    state.file('service.sock'),
    (_, response) => void response.end(JSON.stringify({ link })),
    recordingLog(),
  );
  t.after(() => socket?.close());
  const fleet = await openFleet({}, deps);
  t.after(() => fleet.close());
  for (link of ['http://127.0.0.1:8080/?key=aB3-_x', 'http://[::1]:8080/?key=aB3-_x'])
    assert.equal(await fleet.consoleLink?.(), link);
  for (link of [
    'http://127.0.0.1:6666/?key="><script>evil</script>',
    'http://127.0.0.1:1/?key=\u001b]0;owned\u0007',
    'http://evil.example:80/?key=a',
    'http://127.0.0.1:80@evil.example/?key=a',
    'https://127.0.0.1:80/?key=a',
    'javascript:alert(1)',
    'http://127.0.0.1:8080/?key=a\n',
  ])
    await assert.rejects(async () => fleet.consoleLink?.(), {
      name: 'FleetError',
      message: /service\.sock is not a link to a console on this machine\. Check which process listens there/,
    });
  state.release();
});

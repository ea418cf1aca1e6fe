import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildSync } from 'esbuild';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { REACHED_BY_FILE, readReachedBy } from '#shared/operations/fleet/reached-by.ts';
import { askSocket, SOCKET_FILE } from '#shared/operations/fleet/state-socket.ts';
import { openState } from '#shared/state/sqlite/sqlite-state.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { NpmStart } from '#test/world/npm-start.ts';
import {
  clusterWithoutDelete,
  comparing,
  forwarding,
  kubeconfigOf,
  startProgram,
} from '../entries/entries.ts';

test('npm start loads nothing of the AWS SDK', () => {
  const { inputs } = buildSync({
    absWorkingDir: PROJECT_DIR,
    entryPoints: ['functions/service/main.ts'],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  }).metafile;
  const paths = Object.keys(inputs);
  assert.ok(paths.includes('functions/service/service.ts'));
  assert.deepEqual(
    paths.filter((path) => /node_modules\/(@aws-sdk|@smithy)\//.test(path)),
    [],
  );
});

test("npm start --log json prints only the functions' log lines on standard output", async (context) => {
  const service = new NpmStart(context, ['--log', 'json']);
  await service.event('relay.synced');
  service.signal('SIGTERM');
  await service.exit;
  const events = service.out.all.map((line) => {
    const { time, level, event } = JSON.parse(line);
    assert.ok(Date.parse(time) > 0 && level === 'info', line);
    return event;
  });
  assert.equal(events[0], 'relay.started');
  assert.ok(events.includes('relay.synced'), String(events));
  assert.deepEqual(events.slice(-2), ['relay.stopping', 'relay.stopped']);
  assert.match(service.err.all.join('\n'), /\bsimulated\b.* 4 nodes /s);
});

test('npm start --log json has a console, and its log contains no key to it', async (context) => {
  const service = new NpmStart(context, ['--log', 'json']);
  await service.line((line) => line.includes('type "console"') || undefined, service.err);
  service.type('console');
  const link = await service.line((line) => /http:\S+key=\S+/.exec(line)?.[0], service.err);
  assert.equal((await fetch(link)).status, 200);
  const log = service.out.all;
  const started = log.map((each) => JSON.parse(each)).find(({ event }) => event === 'console.started');
  assert.equal(started.address, new URL(link).origin);
  assert.doesNotMatch(log.join('\n'), /key=/);
  const socket = join(service.state, SOCKET_FILE);
  assert.match(JSON.stringify(await askSocket(socket, '/console/link', 'POST')), /key=/);
  const [cluster] = readReachedBy(join(service.state, REACHED_BY_FILE)).keys();
  assert.equal(cluster, 'simulated');
  assert.ok(await askSocket(socket, '/api/status'));
  const { code, stderr } = await service.stop();
  assert.equal(code, 0);
  assert.match(stderr, /^Stopping\. /m);
});

test('npm start on a cluster prints what it manages, by which rules, and how to reach it', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'main-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  context.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true });
  });
  const reached = ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig];
  // Longer than the path of a socket may be.
  const state = join(dir, 'x'.repeat(100));
  const any = ['--port', '0', '--console-port', '0', '--log', 'json'];
  const service = new NpmStart(context, [...reached, ...any], state);
  await service.event('socket.unavailable');
  for (const line of [
    /^Managing simulated\. Health and metrics: /,
    /^simulated: observe mode/,
    /^Console: .* --state-dir \S+ console$/,
  ])
    await service.line((printed) => line.test(printed) || undefined, service.err);
  await service.event('console.started');
  assert.equal((await service.stop()).code, 0);
});

test('npm start keeps its audit for --history-days, and the console matches tolerations by its options', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'main-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  context.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true });
  });
  const state = join(dir, 'state');
  mkdirSync(state, { mode: 0o700 });
  const { rulesStore, store } = openState(state);
  for (const days of [10, 8]) {
    const clock = { now: () => Date.now() - days * 24 * 3_600_000 };
    const act = {
      kind: 'apply-policy',
      cluster: clusterName('c'),
      text: `# ${days}\nmode: observe\n`,
    } as const;
    await perform(act, { rulesStore, clock, actor: 'anna' });
  }
  const kubeconfig = await kubeconfigOf(context, createServer(forwarding(cluster, comparing)));
  const service = startProgram(
    context,
    '#functions/service/main.ts',
    [
      ...['--context', 'c', '--kubeconfig', kubeconfig],
      ...['--state-dir', state, '--port', '0', '--no-console', '--log', 'json'],
      ...['--history-days', '9', '--comparison-operators'],
    ],
    // Tasks of each hour begin immediately.
    {
      NODE_OPTIONS:
        '--import=data:text/javascript,const{setInterval:set}=globalThis;globalThis.setInterval=(run,ms)=>set(run,ms<36e5?ms:100)',
    },
  );
  await service.out.first((line) => line.includes('"relay.synced"') || undefined);
  await until(
    'the older entry is removed',
    async () => (await rulesStore.audit({ from: 0, to: Date.now() })).length < 2,
  );
  const [first] = await rulesStore.audit({ from: 0, to: Date.now() });
  assert.ok(first, 'the newer one is kept');
  const question = '/api/what-if?cluster=c&taint=maintenance=5:NoExecute&nodes=node-1';
  const answer = await until('it answers', () => askSocket(join(state, SOCKET_FILE), question));
  assert.partialDeepStrictEqual(
    answer,
    { pods: 4, keep: 2 },
    'logs tolerates all taints, and db this number',
  );
  rulesStore.close();
  store.close();
});

test('npm start that cannot start prints one sentence', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'main-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'file');
  writeFileSync(file, 'mode: on\n');
  const taken = createSocket();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  context.after(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const kubeconfig = await clusterWithoutDelete(context);
  const cases = [
    [/lack permissions.* delete pods/, ['--context', 'c', '--kubeconfig', kubeconfig, '--enforce']],
    [/ENOENT/, ['--context', 'c', '--kubeconfig', '/nowhere']],
    [/policy\.mode must be/, ['--policy', file]],
    [/--port/, ['--port', `${port}`]],
    [/--console-port/, ['--port', '0', '--console-port', `${port}`]],
    [/file/, ['--port', '0'], file],
  ] as const;
  for (const [sentence, args, state] of cases) {
    const { code, stderr } = await new NpmStart(context, [...args, '--log', 'json'], state).exit;
    const sentences = stderr.split('\n').filter((line) => line.startsWith('taintward: '));
    assert.deepEqual([code, sentences.length, /^ +at /m.test(stderr)], [1, 1, false], stderr);
    assert.match(sentences[0] ?? '', sentence);
  }
});

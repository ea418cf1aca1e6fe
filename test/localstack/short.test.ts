import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VERSION } from '#shared/version.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { accountContents } from '#test/deployed/rig/account-contents.ts';
import { ROOT, run } from '#test/deployed/rig/command.ts';
import { deployed } from '#test/deployed/rig/deployed-stage.ts';
import { accountEnvironment } from '#test/deployed/rig/emulated-account.ts';
import { assigned } from '#test/deployed/rig/relay-process.ts';
import { isFollowed } from '#test/transcripts/followed-pages.ts';
import { blocksOf, commandsOf, nameOf, pageText } from '#test/transcripts/page.ts';

/*
 * `npm run test:deployed` in short, on the LocalStack in AWS_ENDPOINT_URL: the stack is deployed before the first test,
 * with two clusters, and destroyed by the last one.
 */

test('the stack is deployed to LocalStack', () => {
  assert.equal(deployed().account.isLocalStack, true, 'AWS_ENDPOINT_URL names no LocalStack');
});

test('a taint evicts pods only in the tainted one of two clusters with the same nodes and pods, immediately and at their deadlines', async (t) => {
  const { alpha, beta } = deployed();
  await deployed().withRelays(1);
  const [node, same] = await Promise.all([alpha, beta].map(({ cluster }) => cluster.addNode('short')));
  assert.equal(node, same);
  assert.ok(node);
  const add = ({ cluster }: typeof alpha, name: string, seconds: number) =>
    cluster.addPod(node, name, { tolerations: seconds === 0 ? [] : [tolerates('x', seconds)] });
  const times = [0, 4];
  const inAlpha = await Promise.all(times.map((seconds) => add(alpha, `short-${seconds}`, seconds)));
  const inBeta = await Promise.all(times.map((seconds) => add(beta, `short-${seconds}`, seconds)));

  const late: number[] = [];
  for (const [{ cluster }, pods, others] of [
    [alpha, inAlpha, inBeta] as const,
    [beta, inBeta, []] as const,
  ]) {
    const tainted = await cluster.taint(node, { key: 'x' });
    for (const [index, pod] of pods.entries())
      late.push(await evictedOnTime(pod, times[index] ?? 0, tainted));
    assertUntouched(...others);
  }
  t.diagnostic(`evicted ${late.join(', ')} ms after their deadlines`);
});

test('an unreadable delta is dead-lettered with the reason, and other deltas of its cluster are applied', async () => {
  const { alpha, queues } = deployed();
  await deployed().withRelays(1);
  await queues.nodeDeltas.send('{"v":1,"kind":"node","cluster":"alpha"}', { group: 'poison', id: 'poison' });
  const letter = await until('the dead letter', () => queues.nodeDeltasDead.peek());
  assert.match(letter.MessageAttributes?.['reason']?.StringValue ?? '', /^delta message rejected: node: /);
  const node = await alpha.cluster.addNode('short-poisoned');
  const pod = await alpha.cluster.addPod(node, 'short-poisoned');
  await evictedOnTime(pod, 0, await alpha.cluster.taint(node, { key: 'x' }));
});

// At AWS the table stays; LocalStack does not support RetainExceptOnCreate.
test('the destroyed stack leaves nothing', async () => {
  const { account, deployment } = deployed();
  await deployed().withRelays(0);
  await deployment.destroy();
  const ours = (await accountContents(account.url)).filter((name) => name.includes('taintward'));
  assert.deepEqual(ours, []);
});

const PAGE = 'how-to/install-by-cloudformation.md';
const COMMAND_WITHIN_MS = 5 * 60_000;

/** Returns the followed commands of the page, before its last section or in it. */
const commandsOfPage = (isLast: boolean): string =>
  blocksOf(pageText(PAGE))
    .filter(({ language, section }) => language === 'sh' && (section === 'Remove') === isLast)
    .flatMap(commandsOf)
    .filter((command) => isFollowed(PAGE, nameOf(command), 'localstack'))
    .join('\n');

test('the files of a release, in a folder without the repository, are deployed by the AWS CLI as the page says, applied documents survive a pause, show drift, and evict a pod', async (t) => {
  const { alpha, account } = deployed();
  const cwd = mkdtempSync(join(tmpdir(), 'taintward-released-'));
  t.after(() => rmSync(cwd, { recursive: true }));
  const settings = { env: accountEnvironment(account.url), withinMs: COMMAND_WITHIN_MS, cwd };
  const files = join(cwd, 'files');
  const image = join(cwd, 'image');
  const made = [
    [join(ROOT, 'deploy/release/files.ts'), files],
    [join(ROOT, 'cdk/bundle-image.ts'), image],
  ];
  for (const args of made) await run(process.execPath, args, settings);

  const timed = async <T>(what: string, action: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    return await action().finally(() =>
      t.diagnostic(`${what}: ${Math.round(performance.now() - startedAt)} ms`),
    );
  };
  const inFiles = { ...settings, cwd: files };
  await timed('deploy', () => run('bash', ['-eo', 'pipefail', '-c', commandsOfPage(false)], inFiles));
  const variables = readFileSync(join(files, 'relay.env'), 'utf8').trim().replaceAll('\n', ' ');
  const launch = { program: process.execPath, args: ['relay.mjs'], cwd: image, env: assigned(variables) };
  const relay = await deployed().startRelay(launch);
  await run('npm', ['install', '--offline', join(files, `taintward-npm-${VERSION}.tgz`)], settings);
  const cli = (...args: readonly string[]) =>
    timed(args.slice(0, 2).join(' '), () =>
      run(join(cwd, 'node_modules/.bin/taintward'), ['--table', 'taintward', ...args], settings),
    );
  const json = async (...args: readonly string[]) => JSON.parse((await cli(...args, '-o', 'json')).stdout);
  const off = { cluster: 'off', zone: 'off', customTaints: 'off' };
  const document = { mode: 'enforce', guard: off };
  const declare = (policy: object) =>
    writeFileSync(
      join(cwd, 'fleet.yaml'),
      JSON.stringify({
        apiVersion: 'taintward.dev/v1',
        kind: 'Policy',
        metadata: { name: 'default' },
        spec: { clusters: ['*'], policy },
      }),
    );
  const dryRun = () => cli('apply', '-f', 'fleet.yaml', '--dry-run');
  await cli('clusters', 'add', alpha.name, '--kubeconfig-secret', alpha.secretArn, '--context', alpha.name);
  declare(document);
  await assert.rejects(dryRun(), /ended with code 2/);
  await cli('apply', '-f', 'fleet.yaml', '--yes', '--reason', 'commit 1');
  await dryRun();
  const written = await json('audit');
  await cli('pause', alpha.name, '--reason', 'incident', '--for', '1h');
  const paused = await json('holds');
  await cli('apply', '-f', 'fleet.yaml', '--yes');
  assert.deepEqual(await json('holds'), paused);
  assert.equal((await json('audit')).length, written.length + 1);
  declare({ ...document, evictionRate: 7 });
  await assert.rejects(dryRun(), /ended with code 2/);
  await cli('apply', '-f', 'fleet.yaml', '--yes');
  assert.deepEqual(await json('holds'), paused);
  await cli('resume', alpha.name, '--reason', 'over');
  await until('the cluster is watched', async () => (await relay.states()).get(alpha.name) === 'live');

  const node = await alpha.cluster.addNode('released');
  const pod = await alpha.cluster.addPod(node, 'released');
  await evictedOnTime(pod, 0, await alpha.cluster.taint(node, { key: 'x' }));
  await deployed().withRelays(0);
  await run('bash', ['-e', '-c', commandsOfPage(true)], inFiles);
});

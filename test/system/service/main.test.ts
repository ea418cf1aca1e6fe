import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildSync } from 'esbuild';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { NpmStart } from '#test/world/npm-start.ts';

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
});

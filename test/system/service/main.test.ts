import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { buildSync } from 'esbuild';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

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
  const dir = mkdtempSync(join(tmpdir(), 'main-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const main = join(PROJECT_DIR, 'functions/service/main.ts');
  const child = spawn(process.execPath, [main, '--log', 'json', '--state-dir', join(dir, 'state')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  context.after(() => child.kill('SIGKILL'));
  const said = text(child.stderr);
  const events: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const { time, level, event } = JSON.parse(line);
    assert.ok(Date.parse(time) > 0 && level === 'info', line);
    events.push(event);
    if (event === 'relay.synced') child.kill('SIGTERM');
  }
  assert.equal(events[0], 'relay.started');
  assert.ok(events.includes('relay.synced'), String(events));
  assert.deepEqual(events.slice(-2), ['relay.stopping', 'relay.stopped']);
  assert.match(await said, /^Managing simulated\. .*A simulated cluster of 4 nodes is running/s);
});

test('npm start --log json has a console, and its log contains no key to it', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'main-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const main = join(PROJECT_DIR, 'functions/service/main.ts');
  const child = spawn(process.execPath, [main, '--log', 'json', '--state-dir', join(dir, 'state')], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  context.after(() => child.kill('SIGKILL'));
  const log: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => log.push(line));
  for await (const line of createInterface({ input: child.stderr })) {
    if (line.includes('type "console"')) child.stdin.write('console\n');
    const [link] = /http:\S+key=\S+/.exec(line) ?? [];
    if (link === undefined) continue;
    assert.equal((await fetch(link)).status, 200);
    const started = log.map((each) => JSON.parse(each)).find(({ event }) => event === 'console.started');
    assert.equal(started.address, new URL(link).origin);
    assert.doesNotMatch(log.join('\n'), /key=/);
    return;
  }
  assert.fail('nobody was given a link');
});

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { FileSystem, IgnoreMode } from 'aws-cdk-lib';
import * as z from 'zod';
import { PROGRAM_NAMES, PROJECT_DIR, programFile } from '#deploy/build/bundle.ts';
import { LICENCE_TEXTS_FILE } from '#deploy/build/licence-texts.ts';
import { askSocket, SOCKET_FILE } from '#shared/operations/fleet/state-socket.ts';
import { VERSION } from '#shared/version.ts';
import { buildImage, type Image } from '#test/deployed/rig/image/build.ts';
import { billFile } from '../../../cdk/bundle-image.ts';

const Link = z.object({ link: z.string() });
/** Files that the programs read. */
const READ = ['page', 'protobuf-messages.json'];

describe('the image, whose stages are simulated without Docker, with the files that .dockerignore admits,', () => {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-image-'));
  let image: Image;
  let workdir: string;
  before(() => {
    const context = join(dir, 'context');
    const exclude = readFileSync(join(PROJECT_DIR, '.dockerignore'), 'utf8').trim().split('\n');
    mkdirSync(context);
    FileSystem.copyDirectory(PROJECT_DIR, context, { exclude, ignoreMode: IgnoreMode.DOCKER });
    copyFileSync(join(PROJECT_DIR, 'Dockerfile'), join(context, 'Dockerfile'));
    image = buildImage(context, join(dir, 'stages'));
    workdir = join(image.root, image.workdir);
  });
  after(() => rmSync(dir, { recursive: true }));

  const env = () => ({ PATH: process.env['PATH'], HOME: dir, ...image.env });
  const run = (program: string, ...args: readonly string[]) =>
    spawnSync(process.execPath, [program, ...args], { cwd: workdir, env: env(), encoding: 'utf8' });

  test('contains each program and its parts with their source maps, its bill of materials, its data files, and licenses: nothing else', () => {
    const files = readdirSync(workdir);
    const parts = files.filter((file) => file.endsWith('.mjs'));
    for (const part of parts) {
      const ofProgram = PROGRAM_NAMES.some(
        (name) => part === programFile(name) || part.startsWith(`${name}-`),
      );
      assert.ok(ofProgram, part);
    }
    const ofPrograms = PROGRAM_NAMES.flatMap((name) => [programFile(name), billFile(name)]);
    const maps = parts.map((part) => `${part}.map`);
    const expected = new Set([...ofPrograms, ...parts, ...maps, ...READ, 'LICENSE', LICENCE_TEXTS_FILE]);
    assert.deepEqual(files.toSorted(), [...expected].toSorted());
    assert.equal(image.user, 'node');
    assert.deepEqual(image.command, ['node', programFile('relay')]);
  });

  test('contains programs that print their version and their help', () => {
    for (const name of PROGRAM_NAMES) {
      const version = run(programFile(name), '--version');
      assert.deepEqual([version.status, version.stdout, version.stderr], [0, `${VERSION}\n`, ''], name);
      const help = run(programFile(name), '--help');
      assert.equal(help.status, 0, help.stderr);
      assert.match(help.stdout, /^Usage: /, name);
    }
  });

  test('contains a service that starts its simulated cluster, serves metrics and console, and stops on SIGTERM', async (t) => {
    const state = join(dir, 'state');
    const args = ['service.mjs', '--log', 'json', '--state-dir', state];
    const service = spawn(process.execPath, args, { cwd: workdir, env: env() });
    // Without this, a test that fails early keeps the service running, and the run waits for it.
    t.after(() => service.kill('SIGKILL'));
    const printed: string[] = [];
    let complaints = '';
    service.stderr.on('data', (text) => {
      complaints += text;
    });
    const ended = once(service, 'exit');
    for await (const line of createInterface(service.stdout)) {
      const { event, address } = JSON.parse(line);
      printed.push(event);
      if (event === 'console.started') {
        assert.equal((await fetch(address)).status, 401);
        const { link } = Link.parse(await askSocket(join(state, SOCKET_FILE), '/console/link', 'POST'));
        const entered = await fetch(link);
        const [cookie = ''] = entered.headers.get('set-cookie')?.split(';') ?? [];
        const [, path = ''] = /url=(\/[^"]+)"/.exec(await entered.text()) ?? [];
        const page = await fetch(`${address}${path}`, { headers: { cookie } });
        assert.equal(page.status, 200, await page.text());
        service.kill('SIGTERM');
      }
    }
    assert.deepEqual(await ended, [0, null], complaints);
    assert.ok(printed.includes('relay.started') && printed.includes('relay.stopped'), printed.join());
  });
});

import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { askSocket, listenOnSocket } from '#shared/operations/fleet/state-socket.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const log = recordingLog();
const end = (response: ServerResponse, answer: unknown) => void response.end(JSON.stringify(answer));

function directory(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'socket-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

test('answers only users with access to the directory, until it is closed', async (t) => {
  const path = join(directory(t), 'service.sock');
  assert.equal(await askSocket(path, '/service'), undefined);
  const socket = await listenOnSocket(path, ({ url }, response) => end(response, { url }), log);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(await askSocket(path, '/service'), { url: '/service' });
  await socket?.close();
  assert.equal(await askSocket(path, '/service'), undefined);
});

test('replaces the socket of a killed process', async (t) => {
  const path = join(directory(t), 'service.sock');
  const killed = await listenOnSocket(path, () => undefined, log);
  renameSync(path, `${path}.kept`);
  await killed?.close();
  renameSync(`${path}.kept`, path);
  assert.equal(await askSocket(path, '/service'), undefined);
  const socket = await listenOnSocket(path, (_, response) => end(response, 1), log);
  assert.equal(await askSocket(path, '/'), 1);
  await socket?.close();
});

test('keeps and names a file that is not a socket', async (t) => {
  const path = join(directory(t), 'service.sock');
  writeFileSync(path, 'precious', { mode: 0o600 });
  const why = { name: 'ForeignFileError', message: /service\.sock is no socket: move it away$/ };
  await assert.rejects(
    listenOnSocket(path, () => undefined, log),
    why,
  );
  await assert.rejects(askSocket(path, '/service'), why);
  assert.equal(readFileSync(path, 'utf8'), 'precious');
});

test('rejects a socket that others may write', async (t) => {
  const path = join(directory(t), 'service.sock');
  const socket = await listenOnSocket(path, (_, response) => void response.end('{"link":"theirs"}'), log);
  chmodSync(path, 0o666);
  await assert.rejects(
    askSocket(path, '/console/link', 'POST'),
    /may be written by other users \(mode 666\)/,
  );
  symlinkSync(path, `${path}.link`);
  await assert.rejects(askSocket(`${path}.link`, '/service'), /is a link: move it away$/);
  await socket?.close();
});

test('rejects a request with an error status', async (t) => {
  const path = join(directory(t), 'service.sock');
  const socket = await listenOnSocket(path, (_, response) => void response.writeHead(404).end(), log);
  await assert.rejects(askSocket(path, '/what'), /answers 404 to \/what$/);
  await socket?.close();
});

test('reports a path that is too long for a socket', async (t) => {
  const path = join(directory(t), 'x'.repeat(120), 'service.sock');
  assert.equal(await listenOnSocket(path, () => undefined, log), undefined);
  assert.equal(await askSocket(path, '/service'), undefined);
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { askSocket, listenOnSocket } from '#functions/local/state-socket.ts';

function directory(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'socket-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

test('who may read the directory is answered, and nobody else, until it is closed', async (t) => {
  const path = join(directory(t), 'service.sock');
  assert.equal(await askSocket(path, '/service'), undefined);
  const socket = await listenOnSocket(path, ({ url }, response) => response.end(JSON.stringify({ url })));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(await askSocket(path, '/service'), { url: '/service' });
  await socket?.close();
  assert.equal(await askSocket(path, '/service'), undefined);
});

test('what a killed process left is taken away', async (t) => {
  const path = join(directory(t), 'service.sock');
  writeFileSync(path, '');
  assert.equal(await askSocket(path, '/service').catch(() => undefined), undefined);
  const socket = await listenOnSocket(path, (_, response) => response.end('1'));
  assert.equal(await askSocket(path, '/'), 1);
  await socket?.close();
});

test('a question that is refused rejects', async (t) => {
  const path = join(directory(t), 'service.sock');
  const socket = await listenOnSocket(path, (_, response) => response.writeHead(404).end());
  await assert.rejects(askSocket(path, '/what'), /answers 404 to \/what$/);
  await socket?.close();
});

test('a path that is too long for a socket is told', async (t) => {
  const path = join(directory(t), 'x'.repeat(120), 'service.sock');
  assert.equal(await listenOnSocket(path, () => undefined), undefined);
  assert.equal(await askSocket(path, '/service'), undefined);
});

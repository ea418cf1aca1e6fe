import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { answerSocket } from '#functions/service/answer-socket.ts';
import { fleetApi } from '#shared/console/fleet-api.ts';
import { askSocket, listenOnSocket } from '#shared/operations/fleet/state-socket.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';

const VIEW = { version: '1.0.0', startedAt: NOW, clusters: {}, queues: {} };

async function answered(t: TestContext, link = (): string | undefined => undefined) {
  const dir = mkdtempSync(join(tmpdir(), 'socket-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const clock = new DrivenClock(NOW);
  const { fleet } = embeddedFleet(t, { clusters: ['prod'], clock });
  const matching = { comparisonOperators: false };
  const api = t.mock.fn(async () => fleetApi({ fleet, matching, clock, log: recordingLog() }));
  const path = join(dir, 'service.sock');
  const socket = await listenOnSocket(path, answerSocket({ view: () => VIEW, link, api }), recordingLog());
  t.after(() => socket?.close());
  return { path, api };
}

test("serves the process's state on the socket and creates the API at the first request", async (t) => {
  const { path, api } = await answered(t);
  assert.deepEqual(await askSocket(path, '/service'), VIEW);
  assert.equal(api.mock.callCount(), 0);
  const { at, clusters } = (await askSocket(path, '/api/status')) as {
    at: number;
    clusters: { cluster: string }[];
  };
  assert.deepEqual([at, clusters.map(({ cluster }) => cluster)], [NOW, ['prod']]);
  assert.deepEqual(await askSocket(path, '/api/nodes?cluster=prod'), []);
  await assert.rejects(askSocket(path, '/api/what'), /answers 404/);
});

test("answers 500 when the API can't be created and retries at the next request", async (t) => {
  const { path, api } = await answered(t);
  api.mock.mockImplementationOnce(() => Promise.reject(new Error('the state cannot be opened')));
  await assert.rejects(askSocket(path, '/api/status'), /answers 500/);
  assert.deepEqual(await askSocket(path, '/api/nodes?cluster=prod'), []);
});

test('returns console links to POST requests if a console runs', async (t) => {
  const links = ['first', 'second'];
  const { path } = await answered(t, () => links.shift());
  await assert.rejects(askSocket(path, '/console/link'), /answers 404/);
  assert.deepEqual(await askSocket(path, '/console/link', 'POST'), { link: 'first' });
  assert.deepEqual(await askSocket(path, '/console/link', 'POST'), { link: 'second' });
  assert.deepEqual(await askSocket(path, '/console/link', 'POST'), {});
});

test('accepts actions without session and token', async (t) => {
  const { path } = await answered(t);
  const body = JSON.stringify({ kind: 'stop', cluster: 'prod', reason: 'a drill' });
  const headers = { 'content-type': 'application/json' };
  const sent = request({ socketPath: path, path: '/api/preview', method: 'POST', headers, agent: false });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 200, JSON.stringify(await json(response)));
});

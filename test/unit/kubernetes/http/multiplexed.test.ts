import assert from 'node:assert/strict';
import type { EventEmitter } from 'node:events';
import type { ServerHttp2Session } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { until } from '#test/world/turns.ts';
import { holdingServer, line, NODE, NOW, node, POD, signal, UID, unanswered } from '../builders.ts';
import { clientOf, listening, scriptedServer, tunnel } from '../scripted-server.ts';

const ADDED = line('ADDED', { metadata: { name: 'n1', resourceVersion: '6' } });
const WATCH = { resourceVersion: '5', timeoutSeconds: 300, signal };
const TLS = { protocol: 'h2' } as const;

describe('an HTTP/2 connection', () => {
  test('carries many concurrent calls from the start', async (t) => {
    const { api, requests, connections, answerHeld } = await holdingServer(t, TLS);
    const calls = Array.from({ length: 50 }, () => api.getNode(NODE));
    await until(() => requests.length === 50);
    answerHeld();
    await Promise.all(calls);
    assert.equal(connections().ever, 1);
    assert.ok(requests.every(({ httpVersion }) => httpVersion === '2.0'));
    assert.equal(requests[0]?.headers.authorization, 'Bearer sesame');
  });

  test('carries at most as many concurrent calls as the server accepts', async (t) => {
    const { api, requests, connections, answerHeld } = await holdingServer(t, { ...TLS, streams: 2 });
    const calls = Array.from({ length: 5 }, () => api.getNode(NODE));
    await until(() => requests.length === 5);
    assert.equal(connections().ever, 3);
    answerHeld();
    await Promise.all(calls);
  });

  test('carries watches separately from calls, and carries request bodies', async (t) => {
    const { api, requests, connections } = await scriptedServer(
      t,
      (response, { method }) => (method === 'GET' ? response.write(ADDED) : response.end('{}')),
      TLS,
    );
    for await (const event of api.nodes.watch(WATCH)) {
      assert.equal(event.kind, 'upsert');
      await api.deletePod(POD, { uid: UID });
      break;
    }
    for await (const _ of api.nodes.watch(WATCH)) break;
    assert.equal(connections().ever, 2);
    assert.deepEqual(JSON.parse(requests[1]?.body ?? '').preconditions, { uid: UID });
  });

  test('closes a watch that its reader ends or aborts', async (t) => {
    let closed = 0;
    const { api } = await scriptedServer(
      t,
      (response) => {
        response.once('close', () => {
          closed += 1;
        });
        response.write(ADDED);
      },
      TLS,
    );
    for await (const _ of api.nodes.watch(WATCH)) break;
    const abort = new AbortController();
    for await (const _ of api.nodes.watch({ ...WATCH, signal: abort.signal })) abort.abort();
    await until(() => closed === 2);
  });

  test('does not fail the next call after it ended while idle', async (t) => {
    const { api, cut, connections } = await scriptedServer(t, node, TLS);
    await api.getNode(NODE);
    cut();
    await api.getNode(NODE);
    assert.equal(connections().ever, 2);
  });

  test('takes no new calls after GOAWAY and finishes its current calls', async (t) => {
    const { api, server, requests, connections, answerHeld } = await holdingServer(t, TLS);
    const sessions: ServerHttp2Session[] = [];
    server.on('session', (session: ServerHttp2Session) => sessions.push(session));
    const first = api.getNode(NODE);
    await until(() => requests.length === 1);
    sessions[0]?.goaway(0, 1);
    const second = api.getNode(NODE);
    await until(() => requests.length === 2);
    answerHeld();
    await Promise.all([first, second]);
    assert.ok(connections().ever <= 2);
  });

  test('ends a watch with an error when it breaks', async (t) => {
    const { api, cut } = await scriptedServer(t, (response) => response.write(ADDED), TLS);
    await assert.rejects(async () => {
      for await (const _ of api.nodes.watch(WATCH)) cut();
    }, ApiError);
  });

  test('is abandoned after a call without an answer if its peer is unreachable, and the next call gets another', async (t) => {
    let answers = true;
    const { port, requests } = await scriptedServer(
      t,
      (response, request) => answers && node(response, request),
      TLS,
    );
    const sockets: Socket[] = [];
    const door = createServer((outer) => sockets.push(outer, tunnel(outer, port)));
    const { host, connections } = await listening(t, door);
    const access = { server: new URL(`https://${host}`), headers: {}, rejectUnauthorized: false };
    const api = clientOf(t, () => access);
    answers = false;
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const message = unanswered(api.getNode(NODE));
    await until(() => requests.length === 1);
    for (const socket of sockets) socket.unpipe().pause();
    t.mock.timers.tick(10_000);
    assert.match(await message, /no complete answer within 10s/);
    t.mock.timers.tick(3_000);
    answers = true;
    await api.getNode(NODE);
    assert.equal(connections().ever, 2);
  });

  test('is pinged every 15 s, and abandoned once its idle peer does not answer', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    const { port, server } = await scriptedServer(t, node, TLS);
    let pings = 0;
    (server as EventEmitter).on('session', (session: EventEmitter) => session.on('ping', () => pings++));
    const sockets: Socket[] = [];
    const door = createServer((outer) => sockets.push(outer, tunnel(outer, port)));
    const { host, connections } = await listening(t, door);
    const access = { server: new URL(`https://${host}`), headers: {}, rejectUnauthorized: false };
    const api = clientOf(t, () => access);
    await api.getNode(NODE);
    for (let nth = 1; nth <= 3; nth++) {
      t.mock.timers.tick(15_000);
      // Its answer follows the one to the ping.
      await api.getNode(NODE);
      assert.deepEqual([pings, connections().ever], [nth, 1]);
    }
    for (const socket of sockets) socket.unpipe().pause();
    t.mock.timers.tick(15_000);
    t.mock.timers.tick(3_000);
    await api.getNode(NODE);
    assert.equal(connections().ever, 2);
  });

  test('never carries a late delete', async (t) => {
    const clock = new DrivenClock(NOW);
    const { api, requests } = await scriptedServer(t, (response) => response.end('{}'), { ...TLS, clock });
    await api.deletePod(POD, { uid: UID }, NOW);
    await clock.advanceTo(NOW + 251);
    await assert.rejects(api.deletePod(POD, { uid: UID }, NOW + 250), LateCallError);
    assert.equal(requests.length, 1);
  });

  test('closes with the others', async (t) => {
    const { api, requests } = await scriptedServer(t, () => undefined, TLS);
    const call = assert.rejects(api.getNode(NODE), ApiError);
    await until(() => requests.length === 1);
    api.close();
    await call;
  });
});

test('uses the first connection for a server that supports only HTTP/1.1', async (t) => {
  const { api, requests, connections } = await scriptedServer(t, node, { protocol: 'http/1.1 over TLS' });
  await api.getNode(NODE);
  await api.getNode(NODE);
  assert.deepEqual([connections().ever, requests[0]?.httpVersion], [1, '1.1']);
});

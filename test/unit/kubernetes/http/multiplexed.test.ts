import assert from 'node:assert/strict';
import type { Http2ServerResponse } from 'node:http2';
import { describe, type TestContext, test } from 'node:test';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { until } from '#test/world/turns.ts';
import { type TlsAnswer, tlsServer } from '../tls-server.ts';

const NODE = nodeName('n1');
const POD = { namespace: 'shop', name: 'web-0' };
const UID = podUid('7d1f');
const NOW = Date.UTC(2026, 10, 21, 11, 13, 53, 789);
const { signal } = new AbortController();

const node: TlsAnswer = (response) => response.end(JSON.stringify({ metadata: { name: 'n1' } }));
const line = (type: string, resourceVersion: string) =>
  `${JSON.stringify({ type, object: { metadata: { name: 'n1', resourceVersion } } })}\n`;

async function holding(t: TestContext, options: { readonly streams?: number } = {}) {
  const held: Http2ServerResponse[] = [];
  const server = await tlsServer(t, (response) => held.push(response), options);
  return {
    ...server,
    answerAll: () => {
      for (const response of held.splice(0)) node(response, undefined as never);
    },
  };
}

describe('an HTTP/2 connection', () => {
  test('carries many concurrent calls from the start', async (t) => {
    const { api, requests, connections, answerAll } = await holding(t);
    const calls = Array.from({ length: 50 }, () => api.getNode(NODE));
    await until(() => requests.length === 50);
    answerAll();
    await Promise.all(calls);
    assert.equal(connections(), 1);
    assert.ok(requests.every(({ httpVersion }) => httpVersion === '2.0'));
    assert.equal(requests[0]?.headers.authorization, 'Bearer sesame');
  });

  test('carries at most as many concurrent calls as the server accepts', async (t) => {
    const { api, requests, connections, answerAll } = await holding(t, { streams: 2 });
    const calls = Array.from({ length: 5 }, () => api.getNode(NODE));
    await until(() => requests.length === 5);
    assert.equal(connections(), 3);
    answerAll();
    await Promise.all(calls);
  });

  test('carries watches separately from calls, and carries request bodies', async (t) => {
    const bodies: string[] = [];
    const { api, connections } = await tlsServer(t, (response, request) => {
      if (request.method === 'GET') response.write(line('ADDED', '6'));
      else
        request
          .setEncoding('utf8')
          .on('data', (text) => bodies.push(String(text)))
          .on('end', () => response.end('{}'));
    });
    const watch = { resourceVersion: '5', timeoutSeconds: 300, signal };
    for await (const event of api.nodes.watch(watch)) {
      assert.equal(event.kind, 'upsert');
      await api.deletePod(POD, { uid: UID });
      break;
    }
    for await (const _ of api.nodes.watch(watch)) break;
    assert.equal(connections(), 2);
    assert.deepEqual(JSON.parse(bodies.join('')).preconditions, { uid: UID });
  });

  test('closes a watch that its reader ends or aborts', async (t) => {
    let closed = 0;
    const { api } = await tlsServer(t, (response) => {
      response.stream.once('close', () => {
        closed += 1;
      });
      response.write(line('ADDED', '6'));
    });
    const abort = new AbortController();
    for await (const _ of api.nodes.watch({ resourceVersion: '5', timeoutSeconds: 300, signal })) break;
    for await (const _ of api.nodes.watch({
      resourceVersion: '5',
      timeoutSeconds: 300,
      signal: abort.signal,
    })) {
      abort.abort();
    }
    await until(() => closed === 2);
  });

  test('does not fail the next call after it ended while idle', async (t) => {
    const { api, sessions, connections } = await tlsServer(t, node);
    await api.getNode(NODE);
    sessions[0]?.destroy();
    await api.getNode(NODE);
    assert.equal(connections(), 2);
  });

  test('takes no new calls after GOAWAY and finishes its current calls', async (t) => {
    const { api, sessions, requests, connections, answerAll } = await holding(t);
    const first = api.getNode(NODE);
    await until(() => requests.length === 1);
    sessions[0]?.goaway(0, 1);
    const second = api.getNode(NODE);
    await until(() => requests.length === 2);
    answerAll();
    await Promise.all([first, second]);
    assert.ok(connections() <= 2);
  });

  test('ends a watch with an error when it breaks', async (t) => {
    const { api, sessions } = await tlsServer(t, (response) => response.write(line('ADDED', '6')));
    await assert.rejects(async () => {
      for await (const _ of api.nodes.watch({ resourceVersion: '5', timeoutSeconds: 300, signal })) {
        sessions[0]?.destroy();
      }
    }, ApiError);
  });

  test('is abandoned after a call without an answer if its peer is unreachable, and the next call gets another', async (t) => {
    let answers: TlsAnswer = node;
    const { api, requests, connections, fallSilent } = await tlsServer(t, (response, request) =>
      answers(response, request),
    );
    answers = () => undefined;
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const unanswered = assert.rejects(api.getNode(NODE), /no complete answer within 10 s/);
    await until(() => requests.length === 1);
    fallSilent();
    t.mock.timers.tick(10_000);
    await unanswered;
    t.mock.timers.tick(3_000);
    answers = node;
    await api.getNode(NODE);
    assert.equal(connections(), 2);
  });

  test('never carries a late delete', async (t) => {
    const clock = new DrivenClock(NOW);
    const { api, requests } = await tlsServer(t, (response) => response.end('{}'), { clock });
    await api.deletePod(POD, { uid: UID }, NOW);
    await clock.advanceTo(NOW + 251);
    await assert.rejects(api.deletePod(POD, { uid: UID }, NOW + 250), LateCallError);
    assert.equal(requests.length, 1);
  });

  test('closes with the others', async (t) => {
    const { api, requests } = await tlsServer(t, () => undefined);
    const call = assert.rejects(api.getNode(NODE), ApiError);
    await until(() => requests.length === 1);
    api.close();
    await call;
  });
});

test('uses the first connection for a server that supports only HTTP/1.1', async (t) => {
  const { api, requests, connections } = await tlsServer(t, node, { http2: false });
  await api.getNode(NODE);
  await api.getNode(NODE);
  assert.deepEqual([connections(), requests[0]?.httpVersion], [1, '1.1']);
});

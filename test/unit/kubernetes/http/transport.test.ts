import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import https from 'node:https';
import { createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { LateCallError } from '#shared/kubernetes/http/api-error.ts';
import type { RequestAccess } from '#shared/kubernetes/http/connection.ts';
import { CALL_TIMEOUT_MS, PAGE_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { Clock } from '#shared/time/clock.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';
import { until } from '#test/world/turns.ts';
import { holdingServer, NODE, NOW, node, POD, rejection, signal, UID, unanswered } from '../builders.ts';
import {
  type Answer,
  clientOf,
  json,
  listening,
  scriptedServer,
  serverKeys,
  status,
  tunnel,
} from '../scripted-server.ts';

/** Maximum number of concurrent calls of a transport. */
const MAX_CONCURRENT_CALLS = 60;

/** A server that holds its answers, the slots of whose client a test can fill. */
async function fillableServer(t: TestContext, clock = new DrivenClock(NOW)) {
  const { answerHeld, ...server } = await holdingServer(t, { clock });
  return {
    ...server,
    clock,
    /** Answers all received requests and all later ones. */
    async answerAll(calls: readonly Promise<unknown>[]): Promise<void> {
      let over = false;
      const ended = Promise.allSettled(calls).then(() => {
        over = true;
      });
      while (!over) {
        answerHeld();
        await tick();
      }
      await ended;
    },
    /** Starts this number of calls and waits until all of them are at the server. */
    async fill(count = MAX_CONCURRENT_CALLS): Promise<Promise<unknown>[]> {
      const calls = Array.from({ length: count }, () => server.api.getNode(NODE));
      await until(() => server.requests.length === Math.min(count, MAX_CONCURRENT_CALLS));
      return calls;
    },
  };
}

/** A client of a TLS server whose connections wait for their handshake. */
async function withoutHandshake(t: TestContext) {
  const waiting: Socket[] = [];
  const { host } = await listening(
    t,
    createServer((socket) => waiting.push(socket)),
  );
  const access = { server: new URL(`https://${host}`), headers: {}, rejectUnauthorized: false };
  return { host, waiting, api: clientOf(t, () => access) };
}

describe('connections', () => {
  test('carry compressed answers', async (t) => {
    const { api, requests } = await scriptedServer(t, (response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      const labels = { 'topology.kubernetes.io/zone': 'Köln' };
      response.end(gzipSync(JSON.stringify({ metadata: { name: 'n1', labels } })));
    });
    assert.equal((await api.getNode(NODE))?.zone, 'Köln');
    assert.equal(requests[0]?.headers['accept-encoding'], 'gzip');
  });

  for (const protocol of ['http/1.1', 'http/1.1 over TLS', 'h2'] as const)
    test(`carry every character of a body, and nothing else (${protocol})`, async (t) => {
      const { api, requests } = await scriptedServer(t, json({}, 201), { protocol });
      const sent = ['x', 'Köln', 'held by „東京“ 🛑'];
      for (const message of sent) {
        const event = { key: 'k', type: 'Normal', reason: 'R', message } as const;
        await api.createEvent({ ...event, pod: { namespace: 'shop', name: 'web-0' } }, NOW);
      }
      assert.deepEqual(
        requests.map(({ body }) => JSON.parse(body).message),
        sent,
      );
    });

  test("prepend the path in the server's address to every call", async (t) => {
    const { api, requests } = await scriptedServer(t, node, { path: '/k8s/clusters/c-1/' });
    await api.getNode(NODE);
    assert.equal(requests[0]?.url, '/k8s/clusters/c-1/api/v1/nodes/n1');
  });

  test('are shared by consecutive calls', async (t) => {
    const { api, connections } = await scriptedServer(t, node);
    for (let i = 0; i < 5; i++) await api.getNode(NODE);
    assert.equal(connections().ever, 1);
  });

  for (const protocol of ['h2', 'http/1.1 over TLS'] as const)
    test(`are shared by no calls of which one has another access, with ${protocol}`, async (t) => {
      const { host, connections } = await scriptedServer(t, node, { protocol });
      const proxy = createHttpServer().on('connect', ({ url = '' }, outer: Socket) => {
        outer.write('HTTP/1.1 200 Connected\r\n\r\n');
        tunnel(outer, Number(url.split(':')[1]));
      });
      const { key, cert } = await serverKeys();
      const common = { server: new URL(`https://${host}`), headers: {}, rejectUnauthorized: false };
      const accesses: readonly Partial<RequestAccess>[] = [
        {},
        { ca: cert },
        { key, cert },
        { servername: 'api.example' },
        { ca: cert, rejectUnauthorized: true, servername: 'localhost' },
        { proxy: new URL(`http://${(await listening(t, proxy)).host}`) },
      ];
      let access = {};
      const api = clientOf(t, () => ({ ...common, ...access }));
      for (const [others, own] of accesses.entries()) {
        access = own;
        await api.getNode(NODE);
        access = { ...own, headers: { Authorization: 'Bearer sesame' } };
        await api.getNode(NODE);
        assert.equal(connections().ever, others + 1, Object.keys(own).join());
      }
    });

  test('do not fail the next call after they were cut while idle', async (t) => {
    let calls = 0;
    const { api, connections } = await scriptedServer(t, (response) => {
      calls += 1;
      if (calls === 2) response.socket?.resetAndDestroy();
      else response.end('{}');
    });
    await api.deletePod(POD, { uid: UID });
    await api.deletePod(POD, { uid: UID });
    assert.equal(calls, 3);
    assert.equal(connections().ever, 2);
  });

  test('are all closed by close, which rejects running and waiting calls once', async (t) => {
    const { api, fill, requests, connections } = await fillableServer(t);
    const calls = (await fill(MAX_CONCURRENT_CALLS + 5)).map(unanswered);
    api.close();
    await Promise.all(calls);
    assert.match(await unanswered(api.getNode(NODE)), /its connections were closed/);
    await until(() => connections().open === 0);
    assert.equal(requests.length, MAX_CONCURRENT_CALLS);
  });

  test("fail if they aren't established within 3 s", async (t) => {
    const { host, waiting, api } = await withoutHandshake(t);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const message = unanswered(api.getNode(NODE));
    await until(() => waiting.length === 1);
    t.mock.timers.tick(3_000);
    assert.equal(
      await message,
      `Cannot get nodes n1 at ${host}: the connection timed out; check the network and firewalls (ETIMEDOUT).`,
    );
  });
});

test('never sends a token over plain http', async (t) => {
  for (const name of ['Authorization', 'authorization']) {
    const access = { server: new URL('http://api.example:6443'), headers: { [name]: 'Bearer sesame' } };
    assert.equal(
      await unanswered(clientOf(t, () => access).getNode(NODE)),
      'Cannot get nodes n1 at api.example:6443: its address is plain http, which would show the token to anybody on the way; write the server in the kubeconfig as https://api.example:6443.',
    );
  }
});

describe('a missing answer', () => {
  for (const [what, call, ms] of [
    ['to a call', (api: RestApi) => api.getNode(NODE), CALL_TIMEOUT_MS],
    ['to a page', (api: RestApi) => api.nodes.list({ limit: 1, signal }), PAGE_TIMEOUT_MS],
  ] as const) {
    test(`${what} fails after ${ms / 1000} s`, async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] });
      const { api, host, requests } = await scriptedServer(t, (response) => response.write('{'));
      const message = unanswered(call(api));
      await until(() => requests.length === 1);
      t.mock.timers.tick(ms);
      assert.ok((await message).endsWith(` at ${host}: there was no complete answer within ${ms / 1000}s.`));
    });
  }
});

describe('a throttled call returns its retry delay', () => {
  const date = new Date(NOW).toUTCString();
  for (const [what, headers, seconds] of [
    ['in seconds', { 'retry-after': '7' }, 7],
    ['as a date', { date, 'retry-after': new Date(NOW + 90_000).toUTCString() }, 90],
    ['as a date that is past', { date, 'retry-after': new Date(NOW - 90_000).toUTCString() }, 0],
    ['in no way', {}, undefined],
    ['in a way nobody knows', { 'retry-after': '-5' }, undefined],
  ] as const) {
    test(what, async (t) => {
      const { api } = await scriptedServer(t, status(429, 'TooManyRequests', 'later', headers));
      const error = await rejection(api.getNode(NODE));
      assert.deepEqual([error.status, error.retryAfterSeconds], [429, seconds]);
    });
  }
});

describe('call slots', () => {
  test('are fewer than sockets, and every call gets one', async (t) => {
    const { fill, requests, answerAll, connections } = await fillableServer(t);
    const calls = await fill(200);
    for (let i = 0; i < 10; i++) await tick();
    assert.equal(requests.length, MAX_CONCURRENT_CALLS);
    await answerAll(calls);
    assert.equal(requests.length, 200);
    assert.equal(connections().ever, MAX_CONCURRENT_CALLS);
  });

  test('are not needed for lists and watches', async (t) => {
    const { api, fill, requests, answerAll } = await fillableServer(t);
    const calls = await fill();
    const list = api.nodes.list({ limit: 1, signal });
    await until(() => requests.length === MAX_CONCURRENT_CALLS + 1);
    await answerAll([...calls, list]);
  });
});

describe('a delete with a send deadline', () => {
  const at = (ms: number) => NOW + ms;

  test('is sent at the deadline itself', async (t) => {
    const { api } = await scriptedServer(t, json({}), { clock: new DrivenClock(at(250)) });
    await api.deletePod(POD, { uid: UID }, at(250));
  });

  test('is not sent if its slot is free too late', async (t) => {
    const { api, clock, fill, requests, answerAll } = await fillableServer(t);
    const calls = await fill();
    const late = assert.rejects(api.deletePod(POD, { uid: UID }, at(250)), (error) => {
      assert.ok(error instanceof LateCallError, String(error));
      assert.match(error.message, /^Did not delete pods shop\/web-0 at .*: it could not be sent in time\.$/);
      return true;
    });
    await clock.advanceTo(at(251));
    await answerAll(calls);
    await late;
    assert.ok(!requests.some(({ method }) => method === 'DELETE'));
  });

  test('overtakes earlier calls without a deadline', async (t) => {
    const { api, fill, requests, answerOne, answerAll } = await fillableServer(t);
    const calls = await fill(MAX_CONCURRENT_CALLS + 20);
    const deletion = api.deletePod(POD, { uid: UID }, at(250));
    answerOne();
    await until(() => requests.length === MAX_CONCURRENT_CALLS + 1);
    assert.equal(requests.at(-1)?.method, 'DELETE');
    await answerAll([...calls, deletion]);
  });

  test('is not sent if its connection takes too long, and the connection serves the next call', async (t) => {
    const { waiting, api } = await withoutHandshake(t);
    let requests = 0;
    const server = https.createServer(await serverKeys(), (request, response) => {
      requests += 1;
      request.resume();
      response.end('{}');
    });
    await assert.rejects(api.deletePod(POD, { uid: UID }, Date.now() + 100), LateCallError);
    await until(() => waiting.length === 1);
    server.emit('connection', waiting[0]);
    await once(server, 'secureConnection');
    await api.deletePod(POD, { uid: UID }, Date.now() + 10_000);
    assert.deepEqual([requests, waiting.length], [1, 1]);
  });

  for (const protocol of ['http/1.1', 'http/1.1 over TLS', 'h2'] as const)
    test(`is not sent if its credentials take too long, although a connection waits (${protocol})`, async (t) => {
      const clock = new DrivenClock(NOW);
      const { api, connection, requests } = await scriptedServer(t, node, { clock, protocol });
      await api.getNode(NODE);
      const { requestOptions } = connection;
      connection.requestOptions = async () => {
        await clock.advanceTo(at(251));
        return requestOptions();
      };
      await assert.rejects(api.deletePod(POD, { uid: UID }, at(250)), LateCallError);
      await api.getNode(NODE);
      assert.deepEqual(
        requests.map(({ method }) => method),
        ['GET', 'GET'],
      );
    });

  test('is unanswered, not unsent, when its connection breaks after the deadline', async (t) => {
    const clock = new DrivenClock(NOW);
    const { api, requests } = await scriptedServer(
      t,
      (response) => {
        if (requests.length === 1) {
          response.end('{}');
          return;
        }
        void clock.advanceTo(at(251));
        response.socket?.resetAndDestroy();
      },
      { clock },
    );
    await api.deletePod(POD, { uid: UID });
    assert.match(await unanswered(api.deletePod(POD, { uid: UID }, at(250))), /ECONNRESET/);
    assert.equal(requests.length, 2);
  });
});

describe('an unreachable server', () => {
  const reset: Answer = (response) => response.socket?.resetAndDestroy();

  /** A server that gives the current `answer` and whose breaker has opened. */
  async function outOfReach<Driven extends Clock>(t: TestContext, clock: Driven) {
    const script = { answer: reset };
    const server = await scriptedServer(t, (response, request) => script.answer(response, request), {
      clock,
    });
    for (let i = 0; i < 5; i++) {
      assert.equal(server.api.breakerOpen, false);
      await unanswered(server.api.getNode(NODE));
    }
    assert.equal(server.api.breakerOpen, true);
    return { ...server, clock, script };
  }

  test('receives no calls for some seconds, and errors name the end of the pause and the last cause', async (t) => {
    const { api, host, requests, clock } = await outOfReach(t, new DrivenClock(NOW));
    await clock.advanceTo(NOW + 4_999);
    assert.equal(
      await unanswered(api.deletePod(POD, { uid: UID })),
      `Cannot delete pods shop/web-0 at ${host}: it did not answer several calls in a row, so calls are suspended for some seconds; the last error: the connection was reset (ECONNRESET).`,
    );
    assert.equal(requests.length, 5);
  });

  for (const [how, setMs] of [
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ] as const)
    test(`has a pause of the same length when the clock is set ${how}`, async (t) => {
      const { api, requests, clock } = await outOfReach(t, new SteppedClock(NOW));
      clock.set(setMs);
      clock.pass(4_999);
      await unanswered(api.getNode(NODE));
      assert.equal(requests.length, 5);
      clock.pass(1);
      await unanswered(api.getNode(NODE));
      assert.equal(requests.length, 6);
    });

  test('receives one call after the pause, followed by another pause', async (t) => {
    const { api, requests, clock } = await outOfReach(t, new DrivenClock(NOW));
    await clock.advanceTo(NOW + 5_000);
    await Promise.all(Array.from({ length: 10 }, () => unanswered(api.getNode(NODE))));
    assert.equal(requests.length, 6);
    await clock.advanceTo(NOW + 10_000);
    await unanswered(api.getNode(NODE));
    assert.equal(requests.length, 7);
  });

  test('receives no calls that waited for their turn while it became unreachable', async (t) => {
    const held: ServerResponse[] = [];
    let isAway = false;
    const { api, requests } = await scriptedServer(t, (response, request) => {
      if (isAway) reset(response, request);
      else held.push(response);
    });
    const calls = Array.from({ length: MAX_CONCURRENT_CALLS + 20 }, () => unanswered(api.getNode(NODE)));
    await until(() => requests.length === MAX_CONCURRENT_CALLS);
    isAway = true;
    for (const response of held) response.socket?.resetAndDestroy();
    await Promise.all(calls);
    const late = requests.length - MAX_CONCURRENT_CALLS;
    assert.ok(late < 5, `${late} calls after it became unreachable`);
  });

  test('receives all calls again after any answer, even an error', async (t) => {
    const { api, clock, script } = await outOfReach(t, new DrivenClock(NOW));
    await clock.advanceTo(NOW + 5_000);
    script.answer = status(500, 'InternalError', 'later');
    assert.equal((await rejection(api.getNode(NODE))).status, 500);
    assert.equal(api.breakerOpen, false);
    script.answer = node;
    await api.getNode(NODE);
  });

  test('still receives lists and watches, whose answer ends the pause', async (t) => {
    const list = await outOfReach(t, new DrivenClock(NOW));
    list.script.answer = json({ metadata: { resourceVersion: '1' }, items: [] });
    await list.api.pods.list({ limit: 1, signal });
    assert.equal(list.api.breakerOpen, false);

    const watch = await outOfReach(t, new DrivenClock(NOW));
    watch.script.answer = (response) => response.end();
    for await (const _ of watch.api.pods.watch({ resourceVersion: '1', timeoutSeconds: 1, signal }));
    assert.equal(watch.api.breakerOpen, false);
  });

  test('is not assumed from failures of calls before its last answer', async (t) => {
    const held: ServerResponse[] = [];
    const { api, requests } = await scriptedServer(t, (response, request) => {
      if (request.method === 'DELETE') held.push(response);
      else node(response, request);
    });
    const failing = Array.from({ length: 10 }, () => unanswered(api.deletePod(POD, { uid: UID })));
    await until(() => requests.length === 10);
    await api.getNode(NODE);
    for (const response of held) response.socket?.resetAndDestroy();
    await Promise.all(failing);
    assert.equal(api.breakerOpen, false);
  });

  test("is not assumed from credentials that can't be obtained, whose error rejects the calls", async () => {
    const requestOptions = () => Promise.reject(new Error('The plugin is not installed.'));
    const api = new RestApi({ host: 'x', requestOptions });
    const message = 'Cannot get nodes n1 at x: The plugin is not installed.';
    for (let i = 0; i < 10; i++) assert.equal(await unanswered(api.getNode(NODE)), message);
    assert.equal(api.breakerOpen, false);
  });
});

test("estimates the server's clock from its answers", async (t) => {
  const clock = new DrivenClock(NOW);
  const aheadMs = 90_300;
  const { api } = await scriptedServer(
    t,
    (response, request) => {
      response.setHeader('date', new Date(clock.now() + aheadMs).toUTCString());
      node(response, request);
    },
    { clock },
  );
  assert.equal(api.skewMs, undefined);
  for (let i = 0; i < 20; i++) {
    await api.getNode(NODE);
    await clock.advanceTo(clock.now() + 130);
  }
  assert.ok(Math.abs((api.skewMs ?? 0) - aheadMs) < 100, String(api.skewMs));
});

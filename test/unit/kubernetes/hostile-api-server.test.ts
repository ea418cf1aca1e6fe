import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { RestApi } from '#shared/kubernetes/rest-api.ts';
import { tlsServer } from './tls-server.ts';

const NODE = nodeName('n1');
const POD = { namespace: 'shop', name: 'web-0' };
/** The token that the clients of `tlsServer` send. */
const TOKEN = 'sesame';
const never = new AbortController().signal;

/** A call of each kind that the service makes to an API server. */
const ASKED: Readonly<Record<string, (api: RestApi) => Promise<unknown>>> = {
  'a read': (api) => api.getNode(NODE),
  'a list': (api) => api.nodes.list({ signal: never }),
  'a watch': (api) =>
    Array.fromAsync(api.nodes.watch({ resourceVersion: '1', timeoutSeconds: 60, signal: never })),
  'a delete': (api) => api.deletePod(POD, { uid: podUid('u') }),
};

async function rejection(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => assert.fail('should have rejected'),
    (error: Error) => error.message,
  );
}

/** Another server in the network, for example an instance metadata service, that must receive no request. */
async function elsewhere(t: TestContext) {
  const visits: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    visits.push(request);
    response.end('{"metadata":{"name":"n1"}}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/latest/meta-data`, visits };
}

describe('an API server that redirects its callers', () => {
  for (const http2 of [true, false]) {
    for (const code of [301, 302, 303, 307, 308]) {
      test(`is not followed, with or without credentials: ${code}, HTTP/${http2 ? 2 : 1.1}`, async (t) => {
        const other = await elsewhere(t);
        const { api } = await tlsServer(
          t,
          (response) => {
            response.writeHead(code, { location: other.url });
            response.end();
          },
          { http2 },
        );
        for (const [what, ask] of Object.entries(ASKED)) {
          const why = `its answer ${code} is not a Kubernetes API server's; check the server address`;
          assert.ok((await rejection(ask(api))).includes(why), what);
        }
        assert.equal(other.visits.length, 0);
      });
    }
  }
});

describe('an API server that echoes requests', () => {
  const status = (message: string) =>
    JSON.stringify({ kind: 'Status', code: 403, reason: `Forbidden ${message}`, message });

  test('does not get credentials into a message, which is logged, stored, and shown', async (t) => {
    const { api } = await tlsServer(t, (response, { headers }) => {
      response.writeHead(403, { 'content-type': 'application/json' });
      response.end(status(`headers were authorization: ${headers.authorization}`));
    });
    for (const [what, ask] of Object.entries(ASKED)) {
      const message = await rejection(ask(api));
      assert.ok(!message.includes(TOKEN), `${what}: ${message}`);
      assert.match(message, /403 Forbidden .*headers were authorization: Bearer …/, what);
    }
  });

  test('does not get credentials into a message through a watch event', async (t) => {
    const { api } = await tlsServer(t, (response, { headers }) => {
      response.end(`{"type":"ERROR","object":${status(String(headers.authorization))}}\n`);
    });
    assert.match(await rejection(ASKED['a watch']?.(api) as Promise<unknown>), /403 Forbidden Bearer …/);
  });

  test('gets neither control characters nor long text into a message', async (t) => {
    const odd = '\u001b]0;owned\u0007\u001b[2J\r\n\u009b31mall is well\u202e';
    const bodies = [
      status(odd),
      status('x'.repeat(100_000)),
      `{"type":${JSON.stringify(odd + 'x'.repeat(100_000))}}`,
      `{"type":"ERROR","object":${status(odd)}}`,
    ];
    for (const body of bodies) {
      const { api } = await tlsServer(t, (response) => {
        response.writeHead(body.startsWith('{"kind"') ? 403 : 200);
        response.end(`${body}\n`);
      });
      const message = await rejection(ASKED['a watch']?.(api) as Promise<unknown>);
      assert.doesNotMatch(message, /[\p{Cc}\p{Cf}]/u);
      assert.ok(message.length < 2_000, `${message.length} characters`);
    }
  });
});

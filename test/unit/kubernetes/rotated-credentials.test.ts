import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { nodeName } from '#shared/eviction/identity.ts';
import type { RequestAccess } from '#shared/kubernetes/http/connection.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';

const certificateOf = (name: string) => generate([{ name: 'commonName', value: name }], { keySize: 2048 });

/** A server with this answer and a `RestApi` whose credentials are requested for each call. Both close at the end of the test. */
async function serverFor(
  t: TestContext,
  answer: RequestListener,
  credentials: () => Partial<RequestAccess>,
): Promise<RestApi> {
  const { private: key, cert } = await certificateOf('localhost');
  const listener = createServer({ key, cert, requestCert: true, rejectUnauthorized: false }, answer);
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const server = new URL(`https://${host}`);
  const api = new RestApi({
    host,
    requestOptions: async () => ({ server, headers: {}, rejectUnauthorized: false, ...credentials() }),
  });
  t.after(() => {
    api.close();
    listener.close();
    listener.closeAllConnections();
  });
  return api;
}

const NODE = nodeName('n1');

test('uses a new connection for a renewed client certificate', async (t) => {
  const [old, renewed] = await Promise.all(['old', 'renewed'].map(certificateOf));
  assert.ok(old && renewed);
  const shown: unknown[] = [];
  let client = old;
  const api = await serverFor(
    t,
    ({ socket }, response) => {
      shown.push((socket as TLSSocket).getPeerCertificate().subject.CN);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ metadata: { name: 'n1' } }));
    },
    () => ({ cert: client.cert, key: client.private }),
  );
  await api.getNode(NODE);
  await api.getNode(NODE);
  client = renewed;
  await api.getNode(NODE);
  assert.deepEqual(shown, ['old', 'old', 'renewed']);
});

test('redacts both the current and the previous token in error messages', async (t) => {
  const tokens = ['first-token', 'second-token'];
  let calls = 0;
  const api = await serverFor(
    t,
    (_request, response) => {
      response.writeHead(500, { 'content-type': 'application/json' });
      const message = 'you sent first-token, or second-token';
      response.end(
        JSON.stringify({ kind: 'Status', status: 'Failure', code: 500, reason: 'InternalError', message }),
      );
    },
    () => ({ headers: { Authorization: `Bearer ${tokens[Math.min(calls++, 1)]}` } }),
  );
  await assert.rejects(api.getNode(NODE), /you sent …, or second-token/);
  await assert.rejects(api.getNode(NODE), /you sent …, or …/);
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { nodeName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/connection.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';

const certificateOf = (name: string) => generate([{ name: 'commonName', value: name }], { keySize: 2048 });

test('a client certificate that was renewed is shown by a connection of its own', async (t) => {
  const [server, old, renewed] = await Promise.all(['localhost', 'old', 'renewed'].map(certificateOf));
  assert.ok(server && old && renewed);
  const shown: unknown[] = [];
  const listener = createServer(
    { key: server.private, cert: server.cert, requestCert: true, rejectUnauthorized: false },
    ({ socket }, response) => {
      shown.push((socket as TLSSocket).getPeerCertificate().subject.CN);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ metadata: { name: 'n1' } }));
    },
  ).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  let client = old;
  const connection: Connection = {
    host: `127.0.0.1:${port}`,
    requestOptions: async () => ({
      server: new URL(`https://127.0.0.1:${port}`),
      headers: {},
      rejectUnauthorized: false,
      cert: client.cert,
      key: client.private,
    }),
  };
  const api = new RestApi(connection);
  t.after(() => {
    api.close();
    listener.close();
    listener.closeAllConnections();
  });
  await api.getNode(nodeName('n1'));
  await api.getNode(nodeName('n1'));
  client = renewed;
  await api.getNode(nodeName('n1'));
  assert.deepEqual(shown, ['old', 'old', 'renewed']);
});

test('neither the token of now nor the one before comes back in what a server says', async (t) => {
  const tokens = ['first-token', 'second-token'];
  const listener = createServer({ ...(await pem()) }, (_request, response) => {
    response.writeHead(500, { 'content-type': 'application/json' });
    const message = 'you sent first-token, or second-token';
    response.end(
      JSON.stringify({ kind: 'Status', status: 'Failure', code: 500, reason: 'InternalError', message }),
    );
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  let calls = 0;
  const api = new RestApi({
    host: `127.0.0.1:${port}`,
    requestOptions: async () => ({
      server: new URL(`https://127.0.0.1:${port}`),
      headers: { Authorization: `Bearer ${tokens[Math.min(calls++, 1)]}` },
      rejectUnauthorized: false,
    }),
  });
  t.after(() => {
    api.close();
    listener.close();
    listener.closeAllConnections();
  });
  await assert.rejects(api.getNode(nodeName('n1')), /you sent …, or second-token/);
  await assert.rejects(api.getNode(nodeName('n1')), /you sent …, or …/);
});

async function pem() {
  const { private: key, cert } = await certificateOf('localhost');
  return { key, cert };
}

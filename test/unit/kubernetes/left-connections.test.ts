import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { until } from '#test/world/turns.ts';
import { serverKeys } from './scripted-server.ts';

const NODE = nodeName('n1');
const CALLS = 10;

/** A server that sends GOAWAY on each connection with its first request, closes no connection, and counts its calls. */
async function leavingServer(t: TestContext) {
  const server = http2.createSecureServer(await serverKeys(), (_request, response) => {
    response.end('{"metadata":{"name":"n1"}}');
  });
  server.on('session', (session) => {
    session.on('stream', () => session.goaway());
    session.on('error', () => undefined);
  });
  server.on('sessionError', () => undefined);
  const sockets: Socket[] = [];
  const note = (message: unknown) => sockets.push((message as { readonly socket: Socket }).socket);
  subscribe('net.client.socket', note);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const access = { server: new URL(`https://${host}`), headers: {}, rejectUnauthorized: false };
  const api = new RestApi({ host, requestOptions: async () => access });
  t.after(() => {
    unsubscribe('net.client.socket', note);
    api.close();
    server.close();
  });
  for (let call = 0; call < CALLS; call++) await api.getNode(NODE);
  assert.equal(sockets.length, CALLS);
  return { api, open: () => sockets.filter(({ closed }) => !closed).length };
}

describe('a server that leaves each connection open after GOAWAY', () => {
  test('costs no connection for longer than a second', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { open } = await leavingServer(t);
    await until(() => {
      t.mock.timers.tick(1_000);
      return open() === 0;
    });
  });

  test('keeps no connection of a client that closes its own', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { api, open } = await leavingServer(t);
    api.close();
    await until(() => open() === 0);
  });
});

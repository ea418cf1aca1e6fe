import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { until } from '#test/world/turns.ts';
import { NODE, node } from './builders.ts';
import { scriptedServer } from './scripted-server.ts';

const CALLS = 10;

/** A server that sends GOAWAY on each connection with its first request, closes no connection, and counts its calls. */
async function leavingServer(t: TestContext) {
  const { api, server } = await scriptedServer(t, node, { protocol: 'h2' });
  server.on('session', (session: ServerHttp2Session) => {
    session.on('stream', () => session.goaway());
    session.on('error', () => undefined);
  });
  server.on('sessionError', () => undefined);
  const sockets: Socket[] = [];
  const note = (message: unknown) => sockets.push((message as { readonly socket: Socket }).socket);
  subscribe('net.client.socket', note);
  t.after(() => unsubscribe('net.client.socket', note));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (let call = 0; call < CALLS; call++) await api.getNode(NODE);
  assert.equal(sockets.length, CALLS);
  return { api, open: () => sockets.filter(({ closed }) => !closed).length };
}

describe('a server that leaves each connection open after GOAWAY', () => {
  test('costs no connection for longer than a second', async (t) => {
    const { open } = await leavingServer(t);
    await until(() => {
      t.mock.timers.tick(1_000);
      return open() === 0;
    });
  });

  test('keeps no connection of a client that closes its own', async (t) => {
    const { api, open } = await leavingServer(t);
    api.close();
    await until(() => open() === 0);
  });
});

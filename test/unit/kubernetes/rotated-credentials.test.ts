import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { NODE, node, rejection } from './builders.ts';
import { certificateOf, clientOf, listening, scriptedServer, serverKeys, status } from './scripted-server.ts';

test('uses a new connection for a renewed client certificate', async (t) => {
  const [old, renewed] = await Promise.all(['old', 'renewed'].map(certificateOf));
  assert.ok(old && renewed);
  const shown: unknown[] = [];
  const options = { ...(await serverKeys()), requestCert: true, rejectUnauthorized: false };
  const server = createServer(options, ({ socket }, response) => {
    shown.push((socket as TLSSocket).getPeerCertificate().subject.CN);
    node(response, undefined as never);
  });
  const { host } = await listening(t, server);
  let client = old;
  const api = clientOf(t, () => ({
    server: new URL(`https://${host}`),
    headers: {},
    rejectUnauthorized: false,
    cert: client.cert,
    key: client.private,
  }));
  await api.getNode(NODE);
  await api.getNode(NODE);
  client = renewed;
  await api.getNode(NODE);
  assert.deepEqual(shown, ['old', 'old', 'renewed']);
});

test('redacts both the current and the previous token in error messages', async (t) => {
  const answer = status(500, 'InternalError', 'you sent first-token, or second-token');
  const { host } = await scriptedServer(t, answer, { protocol: 'h2' });
  let token = 'first-token';
  const api = clientOf(t, () => ({
    server: new URL(`https://${host}`),
    rejectUnauthorized: false,
    headers: { Authorization: `Bearer ${token}` },
  }));
  assert.match((await rejection(api.getNode(NODE))).message, /you sent …, or second-token/);
  token = 'second-token';
  assert.match((await rejection(api.getNode(NODE))).message, /you sent …, or …/);
});

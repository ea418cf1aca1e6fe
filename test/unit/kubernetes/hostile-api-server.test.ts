import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import type { RestApi } from '#shared/kubernetes/rest-api.ts';
import { line, NODE, node, POD, rejection, signal } from './builders.ts';
import { json, scriptedServer } from './scripted-server.ts';

/** The token that the clients of a scripted server with TLS send. */
const TOKEN = 'sesame';
const TLS = { protocol: 'h2' } as const;

const aWatch = (api: RestApi) =>
  Array.fromAsync(api.nodes.watch({ resourceVersion: '1', timeoutSeconds: 60, signal }));
/** A call of each kind that the service makes to an API server. */
const CALLS: Readonly<Record<string, (api: RestApi) => Promise<unknown>>> = {
  'a read': (api) => api.getNode(NODE),
  'a list': (api) => api.nodes.list({ signal }),
  'a watch': aWatch,
  'a delete': (api) => api.deletePod(POD, { uid: podUid('u') }),
};
const messageOf = async (call: Promise<unknown>) => (await rejection(call)).message;

describe('an API server that redirects its callers', () => {
  for (const protocol of ['h2', 'http/1.1 over TLS'] as const) {
    for (const code of [301, 302, 303, 307, 308]) {
      test(`is not followed, with or without credentials: ${code}, ${protocol}`, async (t) => {
        // This server, for example an instance metadata service, must receive no request.
        const other = await scriptedServer(t, node);
        const location = `http://${other.host}/latest/meta-data`;
        const redirect = json('', code, { location });
        const { api } = await scriptedServer(t, redirect, { protocol });
        for (const [what, call] of Object.entries(CALLS)) {
          const why = `its answer ${code} is not a Kubernetes API server's; check the server address`;
          assert.ok((await messageOf(call(api))).includes(why), what);
        }
        assert.equal(other.requests.length, 0);
      });
    }
  }
});

describe('an API server that echoes requests', () => {
  const status = (message: string) => ({
    kind: 'Status',
    code: 403,
    reason: `Forbidden ${message}`,
    message,
  });

  test('does not get credentials into a message, which is logged, stored, and shown', async (t) => {
    const { api } = await scriptedServer(
      t,
      (response, request) =>
        json(status(`headers were authorization: ${request.headers.authorization}`), 403)(response, request),
      TLS,
    );
    for (const [what, call] of Object.entries(CALLS)) {
      const message = await messageOf(call(api));
      assert.ok(!message.includes(TOKEN), `${what}: ${message}`);
      assert.match(message, /403 Forbidden .*headers were authorization: Bearer …/, what);
    }
  });

  test('does not get credentials into a message through a watch event', async (t) => {
    const { api } = await scriptedServer(
      t,
      (response, { headers }) => response.end(line('ERROR', status(String(headers.authorization)))),
      TLS,
    );
    assert.match(await messageOf(aWatch(api)), /403 Forbidden Bearer …/);
  });

  test('gets neither control characters nor long text into a message', async (t) => {
    const odd = '\u001b]0;owned\u0007\u001b[2J\r\n\u009b31mall is well\u202e';
    for (const answer of [
      json(status(odd), 403),
      json(status('x'.repeat(100_000)), 403),
      json(line(odd + 'x'.repeat(100_000), undefined)),
      json(line('ERROR', status(odd))),
    ]) {
      const { api } = await scriptedServer(t, answer, TLS);
      const message = await messageOf(aWatch(api));
      assert.doesNotMatch(message, /[\p{Cc}\p{Cf}]/u);
      assert.ok(message.length < 2_000, `${message.length} characters`);
    }
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import type { LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { line, rejection, signal } from './builders.ts';
import { json, scriptedServer, status } from './scripted-server.ts';

const node = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion } });
const ADDED = line('ADDED', node('n1', '6'));
const WATCH = { resourceVersion: '5', timeoutSeconds: 300, signal };

/** Returns the events of a watch, and the error that ended it. */
async function collect(events: AsyncIterable<WatchEvent<LiveNode>>) {
  const seen: string[] = [];
  try {
    for await (const event of events)
      seen.push(`${event.kind} ${'object' in event ? event.object.name : event.resourceVersion}`);
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return { seen, error };
  }
  return { seen, error: undefined };
}

test('reads a list page by page, the first page without a version', async (t) => {
  const { api, requests } = await scriptedServer(t, (response, request) =>
    json(
      request.url.includes('continue')
        ? { metadata: { resourceVersion: '9', continue: '' }, items: [node('n3', '3')] }
        : { metadata: { resourceVersion: '9', continue: 'a+b=' }, items: [node('n1', '1')] },
    )(response, request),
  );
  assert.deepEqual(await api.nodes.list({ limit: 2, signal }), {
    items: [{ name: 'n1', resourceVersion: '1', taints: [] }],
    resourceVersion: '9',
    continue: 'a+b=',
  });
  const last = await api.nodes.list({ limit: 2, continue: 'a+b=', signal });
  assert.equal(last.items[0]?.name, 'n3');
  assert.equal('continue' in last, false);
  assert.deepEqual(
    requests.map(({ url }) => url),
    ['/api/v1/nodes?limit=2', '/api/v1/nodes?limit=2&continue=a%2Bb%3D'],
  );
});

test('sends the pod selection and the minimum version of a list', async (t) => {
  const { api, requests } = await scriptedServer(t, json({ metadata: { resourceVersion: '9' }, items: [] }));
  const onNode = nodeName('n1');
  for (const notOlderThan of ['0', '7']) await api.pods.list({ onNode, notOlderThan, signal });
  assert.deepEqual(
    requests.map(({ url }) => url),
    [
      '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=0',
      '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=7&resourceVersionMatch=NotOlderThan',
    ],
  );
});

test('rejects an expired continue token with 410, and an aborted list', async (t) => {
  const expired = await scriptedServer(t, status(410, 'Expired', 'too old'));
  const error = await rejection(expired.api.nodes.list({ limit: 1, continue: 'x', signal }));
  assert.deepEqual([error.status, error.reason], [410, 'Expired']);
  const abort = new AbortController();
  const { api } = await scriptedServer(t, () => abort.abort());
  const aborted = await rejection(api.pods.list({ limit: 1, signal: abort.signal }));
  assert.match(aborted.message, /the call was aborted\.$/);
});

test('yields changes and bookmarks until the server ends the watch', async (t) => {
  const { api, requests } = await scriptedServer(t, (response) => {
    response.write(ADDED + line('MODIFIED', node('n1', '7')));
    response.write(line('DELETED', node('n1', '8')));
    response.end(line('BOOKMARK', { kind: 'Node', metadata: { resourceVersion: '99' } }));
  });
  const { seen, error } = await collect(api.nodes.watch(WATCH));
  assert.deepEqual(seen, ['upsert n1', 'upsert n1', 'delete n1', 'bookmark 99']);
  assert.equal(error, undefined);
  assert.equal(
    requests[0]?.url,
    '/api/v1/nodes?watch=1&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=300',
  );
  assert.equal(requests[0]?.headers['accept-encoding'], undefined);
});

test('starts a watch with the existing objects and marks their end', async (t) => {
  const { api, requests } = await scriptedServer(t, (response) => {
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    response.write(ADDED);
    response.write(line('BOOKMARK', { metadata: { resourceVersion: '7', annotations } }));
    response.end(line('BOOKMARK', { metadata: { resourceVersion: '8', annotations: {} } }));
  });
  const watch = api.nodes.watch({ initial: true, timeoutSeconds: 300, signal });
  const [, ...bookmarks] = await Array.fromAsync(watch);
  assert.deepEqual(bookmarks, [
    { kind: 'bookmark', resourceVersion: '7', initialEnd: true },
    { kind: 'bookmark', resourceVersion: '8' },
  ]);
  assert.equal(
    requests[0]?.url,
    '/api/v1/nodes?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300',
  );
});

test('watches the pods of one node, or skips pods of nodes that are not followed', async (t) => {
  const pod = (resourceVersion: string, on: string) => ({
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name: 'web-0',
      namespace: 'shop',
      uid: 'u1',
      resourceVersion,
      creationTimestamp: '2026-11-21T11:13:53Z',
    },
    spec: { nodeName: on },
  });
  const { api, requests } = await scriptedServer(t, (response) => {
    response.write(line('ADDED', pod('6', 'n1')) + line('ADDED', pod('7', 'n2')));
    response.end(line('BOOKMARK', { metadata: { resourceVersion: '8' } }));
  });
  const kinds = async (more: object) => {
    const events = await Array.fromAsync(api.pods.watch({ ...WATCH, ...more }));
    return events.map((event) => `${event.kind} ${'object' in event ? '' : event.resourceVersion}`.trim());
  };
  const follows = (name: string) => name === 'n2';
  assert.deepEqual(await kinds({ follows }), ['passed 6', 'upsert', 'bookmark 8']);
  assert.deepEqual(await kinds({ onNode: nodeName('n1') }), ['upsert', 'upsert', 'bookmark 8']);
  assert.match(requests[1]?.url ?? '', /&fieldSelector=spec\.nodeName%3Dn1&/);
});

test('abandons a watch without newlines before it fills the memory', async (t) => {
  const { api, host } = await scriptedServer(t, (response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  });
  const { error } = await collect(api.nodes.watch(WATCH));
  assert.equal(
    error?.message,
    `Cannot watch nodes at ${host}: it sent a line of more than 10 MiB, which no Kubernetes object needs.`,
  );
});

test('joins the pieces of an event, even when a character is cut', async (t) => {
  const labels = { 'topology.kubernetes.io/zone': 'Köln' };
  const bytes = Buffer.from(line('ADDED', { metadata: { name: 'n1', resourceVersion: '6', labels } }));
  const cut = bytes.indexOf('ö') + 1;
  const { api } = await scriptedServer(t, (response) => {
    response.write(bytes.subarray(0, cut), () => setImmediate(() => response.end(bytes.subarray(cut))));
  });
  const [event] = await Array.fromAsync(api.nodes.watch(WATCH));
  assert.equal(event?.kind === 'upsert' && event.object.zone, 'Köln');
});

for (const [what, answer, seen, failed] of [
  ['its version expired, by an answer', status(410, 'Expired', 'too old'), [], [410, 'Expired']],
  [
    'its version expired, by an event',
    json(ADDED + line('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' })),
    ['upsert n1'],
    [410, 'Expired'],
  ],
  ['an object has no name', json(line('ADDED', { metadata: {} })), [], [0, '']],
  ['it ends in half an event', json('{"type":"ADD'), [], [0, '']],
] as const) {
  test(`throws in a watch if ${what}`, async (t) => {
    const { api } = await scriptedServer(t, answer);
    const watched = await collect(api.nodes.watch(WATCH));
    assert.deepEqual(watched.seen, seen);
    assert.deepEqual([watched.error?.status, watched.error?.reason], failed);
  });
}

test('throws status 0 when the connection of a watch breaks', async (t) => {
  const { api } = await scriptedServer(t, (response) => {
    response.write(ADDED, () => response.socket?.resetAndDestroy());
  });
  assert.equal((await collect(api.nodes.watch(WATCH))).error?.status, 0);
});

for (const [how, ends] of [
  ['an aborted watch immediately', (abort: AbortController) => abort.abort()],
  ['a watch whose reader ends', () => 'break'],
] as const)
  test(`yields an event before the watch ends, ends ${how}, and closes its connection`, async (t) => {
    const abort = new AbortController();
    const closed = Promise.withResolvers<void>();
    const { api } = await scriptedServer(t, (response) => {
      once(response, 'close').then(() => closed.resolve());
      response.write(ADDED + line('ADDED', node('n2', '7')));
    });
    const seen: unknown[] = [];
    for await (const event of api.nodes.watch({ ...WATCH, signal: abort.signal })) {
      seen.push('object' in event && event.object.name);
      if (ends(abort)) break;
    }
    assert.deepEqual(seen, ['n1']);
    await closed.promise;
  });

test('ends an aborted watch immediately while it waits', async (t) => {
  const abort = new AbortController();
  const { api } = await scriptedServer(t, (response) => {
    response.flushHeaders();
    setImmediate(() => abort.abort());
  });
  const watch = api.nodes.watch({ ...WATCH, signal: abort.signal });
  assert.deepEqual(await collect(watch), { seen: [], error: undefined });
});

test('rejects a watch event of an unknown type and names the type', async (t) => {
  for (const [type, expected] of [
    ['{"toString":1}', '""'],
    ['"GONE\\n"', '"GONE\\u000a"'],
  ]) {
    const { api, host } = await scriptedServer(t, json(`{"type":${type},"object":{}}\n`));
    const { error } = await collect(api.nodes.watch(WATCH));
    const message = `Cannot watch nodes at ${host}: the watch sent an event of unknown type ${expected}.`;
    assert.equal(error?.message, message);
  }
});

test('truncates an error that repeats whole objects', async (t) => {
  const causes = Array.from({ length: 100 }, (_, n) => ({ reason: 'x', message: `${n}${'y'.repeat(400)}` }));
  const { api } = await scriptedServer(t, json({ kind: 'Status', message: 'no', details: { causes } }, 422));
  const { error } = await collect(api.nodes.watch(WATCH));
  assert.ok(error && error.message.length < 1_500);
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Transport } from '#shared/kubernetes/http/transport.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import { type Answer, json, scriptedServer, status } from './scripted-server.ts';

/** The NodeEvictions of a namespace at a server that gives this answer. */
async function objectsOf(t: TestContext, answer: Answer) {
  const { connection, requests } = await scriptedServer(t, answer);
  const transport = new Transport(connection);
  t.after(() => transport.close());
  const place = { group: 'taintward.dev/v1', resource: 'nodeevictions', namespace: 'taintward' };
  return { objects: new RestObjects(transport, place), requests };
}

const OBJECT = {
  apiVersion: 'taintward.dev/v1',
  kind: 'NodeEviction',
  metadata: { name: 'n1', resourceVersion: '17' },
};

test('removes an object only in the version that was read', async (t) => {
  const { objects, requests } = await objectsOf(t, json({ kind: 'Status', status: 'Success' }));
  await objects.remove('n1', '17');
  assert.deepEqual(
    requests.map(({ method, url, body }) => [method, url, JSON.parse(body).preconditions]),
    [['DELETE', '/apis/taintward.dev/v1/namespaces/taintward/nodeevictions/n1', { resourceVersion: '17' }]],
  );
});

test('replaces an object in its own version', async (t) => {
  const { objects, requests } = await objectsOf(t, json(OBJECT));
  assert.deepEqual(await objects.replace(OBJECT), OBJECT);
  assert.deepEqual(
    requests.map(({ method, body }) => [method, JSON.parse(body).metadata.resourceVersion]),
    [['PUT', '17']],
  );
});

for (const [code, reason] of [
  [404, 'NotFound'],
  [409, 'Conflict'],
] as const) {
  test(`neither removes nor replaces a deleted or changed object (${code}), without an error`, async (t) => {
    const { objects } = await objectsOf(t, status(code, reason, ''));
    assert.equal(await objects.remove('n1', '17'), undefined);
    assert.equal(await objects.replace(OBJECT), undefined);
  });
}

test('rejects a request for a kind that the server does not serve yet', async (t) => {
  const { objects } = await objectsOf(t, (response) => {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
  });
  await assert.rejects(objects.get('n1'), { name: 'ApiError', status: 404 });
  await assert.rejects(objects.remove('n1', '17'), { name: 'ApiError', status: 404 });
});

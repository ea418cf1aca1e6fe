import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Transport } from '#shared/kubernetes/http/transport.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import { type Answer, json, scriptedServer, status } from './scripted-server.ts';

/** The NodeEvictions of a namespace, at a server that answers so. */
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

test('an object is removed only in the version that was read', async (t) => {
  const { objects, requests } = await objectsOf(t, json({ kind: 'Status', status: 'Success' }));
  await objects.remove('n1', '17');
  assert.deepEqual(
    requests.map(({ method, url, body }) => [method, url, JSON.parse(body).preconditions]),
    [['DELETE', '/apis/taintward.dev/v1/namespaces/taintward/nodeevictions/n1', { resourceVersion: '17' }]],
  );
});

for (const [code, reason] of [
  [404, 'NotFound'],
  [409, 'Conflict'],
] as const) {
  test(`an object that is gone or was changed since (${code}) stays as it is, and nothing is wrong`, async (t) => {
    const { objects } = await objectsOf(t, status(code, reason, ''));
    assert.equal(await objects.remove('n1', '17'), undefined);
  });
}

test('an object is replaced in the version that it names', async (t) => {
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
  test(`an object that is gone or was changed since (${code}) is not replaced, and nothing is wrong`, async (t) => {
    const { objects } = await objectsOf(t, status(code, reason, ''));
    assert.equal(await objects.replace(OBJECT), undefined);
  });
}

test('a server that does not know the kind yet says nothing about an object', async (t) => {
  const { objects } = await objectsOf(t, (response) => {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
  });
  await assert.rejects(objects.get('n1'), { name: 'ApiError', status: 404 });
  await assert.rejects(objects.remove('n1', '17'), { name: 'ApiError', status: 404 });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:https';
import { describe, test } from 'node:test';
import { startApiServer } from '#simulator/api/server.ts';
import { parseJson, stringifyJson } from '#simulator/objects/json.ts';
import { aNode, aPod, aStore, inDefault, unscoped } from '../builders.ts';
import { ApiClient, AS_TABLE, at, each, servedCluster } from './api-client.ts';

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/namespaces/default/pods';

const cluster = servedCluster();

describe('the API server', () => {
  test('rejects callers without the token like the real server', async () => {
    for (const authorization of ['', 'Bearer wrong', `Basic ${cluster.server.token}`, cluster.server.token]) {
      const { code, body } = await cluster.client.get(NODES, { authorization });
      assert.equal(code, 401);
      assert.equal(at(body, 'reason'), 'Unauthorized');
    }
  });

  test('answers health checks without the token', async () => {
    for (const path of ['/readyz', '/livez', '/healthz']) {
      const { code, text } = await cluster.client.get(path, { authorization: '' });
      assert.deepEqual([code, text], [200, 'ok']);
    }
  });

  test('listens on the loopback interface over TLS with its own certificate only', async () => {
    assert.match(cluster.server.url, /^https:\/\/127\.0\.0\.1:[0-9]+$/);
    const [error] = await once(get(`${cluster.server.url}/readyz`), 'error');
    assert.match(String(error), /self-signed/);
  });

  test('allows everything to holders of the token in access reviews', async () => {
    const spec = { resourceAttributes: { verb: 'delete', resource: 'pods' } };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const { code, body } = await cluster.client.post(path, { spec });
    assert.equal(code, 201);
    assert.equal(at(body, 'status', 'allowed'), true);
  });
});

describe('discovery', () => {
  test('lists every resource and subresource', async () => {
    const { body } = await cluster.client.get('/api/v1');
    const ofPods = ['attach', 'binding', 'eviction', 'exec', 'log', 'portforward', 'status'];
    assert.deepEqual(each(at(body, 'resources'), 'name'), [
      ...['nodes', 'nodes/status', 'pods', ...ofPods.map((name) => `pods/${name}`)],
      ...['events', 'namespaces'],
    ]);
  });

  test('returns its version as the real server does', async () => {
    const { code, body } = await cluster.client.get('/version');
    assert.equal(code, 200);
    assert.deepEqual([at(body, 'major'), at(body, 'minor'), at(body, 'gitVersion')], ['1', '36', 'v1.36.3']);
  });

  const described = ['/api', '/apis', '/apis/authorization.k8s.io/v1', '/openapi/v3', '/openapi/v3/api/v1'];
  for (const path of described) {
    test(`answers ${path}`, async () => assert.equal((await cluster.client.get(path)).code, 200));
  }

  for (const path of [
    ...['/openapi/v2', '/apis/batch/v1', '/api/v1/deployments', '/apis/apps/v1/pods', '/api/v1/secrets'],
    ...[`${NODES}/a/b`, '/api/v1/pods/a', '/api/v1/nodes/', '/%'],
  ]) {
    test(`does not find ${path}`, async () => {
      const { code, body } = await cluster.client.get(path);
      assert.deepEqual([code, at(body, 'reason')], [404, 'NotFound']);
    });
  }
});

describe('objects', () => {
  test('are created, read, replaced, and deleted', async () => {
    const made = await cluster.client.post(NODES, aNode('node-1'));
    assert.equal(made.code, 201);
    const replaced = await cluster.client.call('PUT', `${NODES}/node-1`, {
      body: { ...Object(made.body), spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } },
    });
    assert.equal(replaced.code, 200);
    const { body } = await cluster.client.get(`${NODES}/node-1`);
    assert.deepEqual(body, replaced.body);
    const deleted = await cluster.client.delete(`${NODES}/node-1`);
    assert.deepEqual(
      [deleted.code, at(deleted.body, 'status'), at(deleted.body, 'details', 'name')],
      [200, 'Success', 'node-1'],
    );
    assert.equal((await cluster.client.get(`${NODES}/node-1`)).code, 404);
  });

  test('do not replace an object of the same name with another UID, with a conflict', async () => {
    const { body } = await cluster.client.post(NODES, aNode('node-1'));
    cluster.store.delete('nodes', unscoped('node-1'));
    cluster.store.create('nodes', '', aNode('node-1'));
    const metadata = { name: 'node-1', uid: at(body, 'metadata', 'uid') };
    const replaced = await cluster.client.call('PUT', `${NODES}/node-1`, { body: { metadata } });
    assert.deepEqual([replaced.code, at(replaced.body, 'reason')], [409, 'Conflict']);
  });

  test('are selected by field and label, in one namespace or all', async () => {
    cluster.store.create('namespaces', '', { metadata: { name: 'other' } });
    cluster.store.create('pods', 'default', aPod('a', { nodeName: 'node-1' }, { labels: { app: 'x' } }));
    cluster.store.create('pods', 'default', aPod('b', { nodeName: 'node-2' }, { labels: { app: 'x' } }));
    cluster.store.create('pods', 'other', aPod('c', { nodeName: 'node-1' }));
    const names = async (path: string) =>
      each(at((await cluster.client.get(path)).body, 'items'), 'metadata', 'name');
    assert.deepEqual(await names('/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1'), ['a', 'c']);
    assert.deepEqual(await names(`${PODS}?fieldSelector=spec.nodeName%3Dnode-1`), ['a']);
    assert.deepEqual(await names('/api/v1/pods?labelSelector=app%3Dx'), ['a', 'b']);
  });

  test('keep 64-bit integers exact in both directions', async () => {
    const tolerations = [
      { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 9223372036854775807n },
    ];
    const { text } = await cluster.client.post(PODS, stringifyJson(aPod('web', { tolerations })));
    assert.match(text, /"tolerationSeconds":9223372036854775807[,}]/);
  });
});

describe('a patch', () => {
  test('changes a node in each of the three formats', async () => {
    cluster.store.create('nodes', '', aNode('node-1'));
    const taints = [{ key: 'a', effect: 'NoExecute' }];
    const node = `${NODES}/node-1`;
    const added = await cluster.client.patch(node, 'strategic-merge', { spec: { taints } });
    assert.deepEqual(at(added.body, 'spec'), { taints });
    const removed = await cluster.client.patch(node, 'merge', { spec: { taints: null } });
    assert.deepEqual(at(removed.body, 'spec'), {});
    const again = await cluster.client.patch(node, 'json', [
      { op: 'add', path: '/spec/taints', value: taints },
    ]);
    assert.deepEqual(at(again.body, 'spec'), { taints });
  });

  test('makes the sender of taints their owner, by fieldManager or else by user agent', async () => {
    cluster.store.create('nodes', '', aNode('node-1'));
    const ownerAfter = async (method: string, query: string, agent: string | undefined, effect: string) => {
      const { body } = await cluster.client.call(method, `${NODES}/node-1${query}`, {
        body: { metadata: { name: 'node-1' }, spec: { taints: [{ key: 'a', effect }] } },
        type: method === 'PUT' ? 'application/json' : 'application/merge-patch+json',
        headers: agent === undefined ? {} : { 'user-agent': agent },
      });
      assert.equal(at(body, 'metadata', 'managedFields', 0, 'time'), '2026-11-21T12:00:00Z');
      return at(body, 'metadata', 'managedFields', 0, 'manager');
    };
    const named = await ownerAfter('PATCH', '?fieldManager=kubectl-taint', 'kubectl/v1', 'NoExecute');
    assert.equal(named, 'kubectl-taint');
    assert.equal(await ownerAfter('PUT', '', 'node-tool/v1.2 (linux)', 'NoSchedule'), 'node-tool');
    assert.equal(await ownerAfter('PATCH', '', 'a'.repeat(200), 'NoExecute'), 'a'.repeat(128));
    assert.equal(await ownerAfter('PUT', '', undefined, 'NoSchedule'), 'unknown');
  });
});

describe('a delete', () => {
  test('answers with the pod, terminating or removed', async () => {
    cluster.store.create('pods', 'default', aPod('web', { nodeName: 'node-1' }));
    const marked = await cluster.client.delete(`${PODS}/web`, { kind: 'DeleteOptions', apiVersion: 'v1' });
    assert.equal(at(marked.body, 'metadata', 'deletionGracePeriodSeconds'), 30);
    const gone = await cluster.client.delete(`${PODS}/web?gracePeriodSeconds=0`);
    assert.deepEqual([gone.code, at(gone.body, 'kind')], [200, 'Pod']);
    assert.equal((await cluster.client.delete(`${PODS}/web`)).code, 404);
  });
});

describe('an answer', () => {
  for (const [name, path] of [
    ['of a list', NODES],
    ['of a watch', `${NODES}?watch=1`],
    ['that refuses', `${NODES}/nowhere`],
  ] as const) {
    test(`${name} has a Date header`, async () => {
      const { headers } = await cluster.client.open(path);
      const date = Date.parse(headers.date ?? '');
      assert.ok(Math.abs(Date.now() - date) < 60_000, String(headers.date));
    });
  }
});

describe('an invalid request', () => {
  test('is rejected with the status of the real server', async () => {
    cluster.store.create('nodes', '', aNode('node-1'));
    const wrong: [string, string, object | string | undefined, string | undefined, number][] = [
      ['POST', NODES, '{"kind":', undefined, 400],
      ['POST', NODES, undefined, undefined, 400],
      ['POST', NODES, 'kind: Node', 'application/yaml', 415],
      ['DELETE', `${NODES}/node-1`, 'k8s\0', 'application/vnd.kubernetes.protobuf', 400],
      ['POST', NODES, 'node', 'application/vnd.kubernetes.protobuf', 400],
      ['PATCH', `${NODES}/node-1`, {}, 'application/json', 415],
      ['PATCH', `${NODES}/node-1`, undefined, 'application/merge-patch+json', 400],
      ['PUT', `${NODES}/node-1`, aNode('node-2'), undefined, 400],
      ['PUT', `${NODES}/nowhere`, aNode('nowhere'), undefined, 404],
      ['PUT', NODES, {}, undefined, 405],
      ['POST', `${NODES}/node-1`, {}, undefined, 405],
      ['DELETE', NODES, undefined, undefined, 405],
      ['DELETE', '/api/v1/namespaces/default', undefined, undefined, 405],
      ['POST', '/version', {}, undefined, 405],
      ['POST', NODES, 'x'.repeat(3 * 1024 * 1024 + 1), undefined, 413],
      ['GET', `${NODES}?limit=x`, undefined, undefined, 400],
      ['GET', `${NODES}?fieldSelector=spec.podCIDR%3Dx`, undefined, undefined, 400],
      ['PATCH', `${NODES}/node-1?dryRun=Some`, {}, 'application/merge-patch+json', 422],
      ['DELETE', `${NODES}/node-1`, { dryRun: ['Some'] }, undefined, 422],
    ];
    for (const [method, path, body, type, code] of wrong) {
      const answer = await cluster.client.call(method, path, {
        ...(body === undefined ? {} : { body }),
        ...(type === undefined ? {} : { type }),
      });
      assert.equal(answer.code, code, `${method} ${path} ${answer.text}`);
      assert.equal(at(answer.body, 'kind'), 'Status');
      assert.equal(at(answer.body, 'code'), code);
    }
    assert.equal((await cluster.client.get(NODES, { accept: 'text/html' })).code, 406);
  });

  test('is answered without details of an internal error, and the server continues', async () => {
    const events: string[] = [];
    const failing = aStore({
      save: ({ resource }) => {
        if (resource === 'nodes') throw new Error('secret path');
      },
    });
    const other = await startApiServer(failing, { error: (event) => events.push(event) });
    const { code, text } = await new ApiClient(other).post(NODES, aNode('node-1'));
    assert.equal(code, 500);
    assert.ok(!text.includes('secret'));
    assert.deepEqual(events, ['simulated-cluster.request-failed']);
    assert.equal((await new ApiClient(other).get(NODES)).code, 200);
    await other.close();
  });
});

describe('a table', () => {
  const cells = (body: unknown) => each(at(body, 'rows'), 'cells');

  test('shows pods as kubectl prints them', async () => {
    cluster.store.create('pods', 'default', aPod('web', { nodeName: 'node-1' }));
    cluster.store.create('pods', 'default', aPod('db', { nodeName: 'node-1' }));
    cluster.store.delete('pods', inDefault('db'));
    const { body } = await cluster.client.get(PODS, AS_TABLE);
    assert.equal(at(body, 'kind'), 'Table');
    assert.deepEqual(cells(body), [
      ['db', '0/1', 'Terminating', '0', '0s', '<none>', 'node-1', '<none>', '<none>'],
      ['web', '0/1', 'Pending', '0', '0s', '<none>', 'node-1', '<none>', '<none>'],
    ]);
    assert.equal(at(body, 'rows', 0, 'object', 'kind'), 'PartialObjectMetadata');
  });

  test('shows nodes, Events and namespaces', async () => {
    const conditions = [{ type: 'Ready', status: 'True' }];
    const status = { conditions, nodeInfo: { kubeletVersion: 'v1.36.3' } };
    cluster.store.create('nodes', '', { ...aNode('node-1', { unschedulable: true }), status });
    cluster.store.create('events', 'default', {
      metadata: { name: 'e' },
      involvedObject: { kind: 'Pod', namespace: 'default', name: 'web' },
      type: 'Normal',
      reason: 'TaintManagerEviction',
      message: 'Marking for deletion Pod default/web',
      lastTimestamp: '2026-11-21T11:55:30Z',
    });
    const [node] = cells((await cluster.client.get(NODES, AS_TABLE)).body);
    const shown = ['node-1', 'Ready,SchedulingDisabled', '<none>', '0s', 'v1.36.3'];
    assert.deepEqual(each(node).slice(0, 5), shown);
    const [event] = cells((await cluster.client.get('/api/v1/events', AS_TABLE)).body);
    assert.deepEqual(each(event).slice(0, 4), ['4m30s', 'Normal', 'TaintManagerEviction', 'pod/web']);
    const namespaces = cells((await cluster.client.get('/api/v1/namespaces', AS_TABLE)).body);
    assert.deepEqual(namespaces, [['default', 'Active', '0s']]);
  });
});

describe('a watch', () => {
  const line = (event: unknown) => {
    const metadata = at(event, 'object', 'metadata');
    return `${at(event, 'type')} ${at(metadata, 'name') ?? ''} ${at(metadata, 'resourceVersion')}`;
  };

  test('sends nothing at its end without bookmarks', async () => {
    const lines: string[] = [];
    const path = `${NODES}?watch=true&resourceVersion=1&timeoutSeconds=1`;
    for await (const event of cluster.client.watch(path)) lines.push(line(event));
    assert.deepEqual(lines, []);
  });

  test('starts with the existing objects if it has no version', async () => {
    cluster.store.create('nodes', '', aNode('node-1'));
    for (const version of ['', '&resourceVersion=0']) {
      const { value } = await cluster.client.watch(`${NODES}?watch=1${version}`).next();
      assert.equal(line(value), 'ADDED node-1 2');
    }
  });

  test('sends rows to kubectl, with the columns in the first row only', async () => {
    cluster.store.create('nodes', '', aNode('node-1'));
    cluster.store.create('nodes', '', aNode('node-2'));
    const { text } = await cluster.client.get(`${NODES}?watch=1&timeoutSeconds=1`, AS_TABLE);
    const [first, second] = text.trim().split('\n').map(parseJson);
    assert.equal(each(at(first, 'object', 'columnDefinitions')).length, 10);
    assert.equal(at(second, 'object', 'columnDefinitions'), null);
    assert.equal(at(second, 'object', 'rows', 0, 'cells', 0), 'node-2');
  });

  test('is closed if its client does not read, instead of unlimited buffering', async () => {
    const unread = await cluster.client.open(`${NODES}?watch=1`);
    const cut = once(unread, 'error');
    cluster.store.create('nodes', '', aNode('node-1'));
    for (let n = 0; n < 100; n += 1) {
      const annotations = { big: `${n}`.padEnd(1024 * 1024) };
      cluster.store.update('nodes', unscoped('node-1'), 'main', (node) => ({
        ...node,
        metadata: { ...node.metadata, annotations },
      }));
    }
    unread.resume();
    const [error] = await cut;
    assert.match(String(error), /aborted/);
    const { code } = await cluster.client.get(NODES);
    assert.equal(code, 200);
  });

  test('ends when the server closes', async () => {
    cluster.store.create('nodes', '', aNode('node-1'));
    const watch = cluster.client.watch(`${NODES}?watch=1`);
    await watch.next();
    await cluster.server.close();
    await assert.rejects(watch.next(), /aborted|ECONNRESET/);
    cluster.server = await startApiServer(cluster.store);
  });
});

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { aPod, inDefault, podsOf } from '../builders.ts';
import { AS_TABLE, at, each, servedCluster } from './api-client.ts';

const PODS = '/api/v1/namespaces/default/pods';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

const cluster = servedCluster();

const web = (spec: object = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: { replicas: 3, ...podsOf('web'), ...spec },
});

describe('a workload', () => {
  test('is created with the defaults of the real server', async () => {
    const { code, body } = await cluster.client.post(DEPLOYMENTS, web());
    assert.equal(code, 201);
    assert.deepEqual(at(body, 'spec', 'strategy'), {
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' },
    });
    assert.equal(at(body, 'spec', 'template', 'spec', 'containers', 0, 'imagePullPolicy'), 'IfNotPresent');
    assert.equal(at(body, 'metadata', 'generation'), 1);
  });

  test('is rejected if its selector does not match its labels', async () => {
    const other = web({ selector: { matchLabels: { app: 'other' } } });
    const { code, body } = await cluster.client.post(DEPLOYMENTS, other);
    assert.equal(code, 422);
    assert.equal(at(body, 'details', 'causes', 0, 'field'), 'spec.template.metadata.labels');
  });

  test('rejects a change of its selector', async () => {
    cluster.store.create('deployments', 'default', web());
    const patch = { spec: podsOf('other') };
    const { code, body } = await cluster.client.patch(`${DEPLOYMENTS}/web`, 'merge', patch);
    assert.deepEqual([code, at(body, 'details', 'causes', 0, 'field')], [422, 'spec.selector']);
  });

  test('has a scale subresource', async () => {
    cluster.store.create('deployments', 'default', web());
    const path = `${DEPLOYMENTS}/web/scale`;
    const scaleTo = (replicas: number) => cluster.client.patch(path, 'merge', { spec: { replicas } });
    const scale = await cluster.client.get(path);
    assert.deepEqual(at(scale.body, 'status'), { replicas: 0, selector: 'app=web' });
    const { code, body } = await scaleTo(7);
    assert.deepEqual([code, at(body, 'kind'), at(body, 'spec')], [200, 'Scale', { replicas: 7 }]);
    assert.equal(cluster.store.get('deployments', inDefault('web')).spec.replicas, 7);
    assert.equal((await cluster.client.call('PUT', path, { body: scale.body })).code, 409);
    assert.equal((await scaleTo(-1)).code, 422);
  });

  test('is printed as by kubectl', async () => {
    cluster.store.create('deployments', 'default', web());
    const { body } = await cluster.client.get(DEPLOYMENTS, AS_TABLE);
    const cells = ['web', '0/3', 0, 0, '0s', 'main', 'example.com/main:1', 'app=web'];
    assert.deepEqual(at(body, 'rows', 0, 'cells'), cells);
  });

  test('keeps its dependents when orphaned', async () => {
    const { uid } = cluster.store.create('deployments', 'default', web()).metadata;
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid, controller: true };
    cluster.store.create('replicasets', 'default', {
      metadata: { name: 'web-1', ownerReferences: [owner] },
      spec: podsOf('web'),
    });
    await cluster.client.delete(`${DEPLOYMENTS}/web`, { propagationPolicy: 'Orphan' });
    assert.deepEqual(cluster.store.get('replicasets', inDefault('web-1')).metadata.ownerReferences, []);
  });

  test('accepts only Background or Orphan deletion and reports that', async () => {
    cluster.store.create('deployments', 'default', web());
    const { code, body } = await cluster.client.delete(`${DEPLOYMENTS}/web`, {
      propagationPolicy: 'Foreground',
    });
    assert.equal(code, 400);
    assert.match(String(at(body, 'message')), /propagationPolicy: must be Background or Orphan/);
  });

  test('is answered but not stored in a dry run', async () => {
    const { code, body } = await cluster.client.post(`${DEPLOYMENTS}?dryRun=All`, web());
    assert.deepEqual([code, at(body, 'spec', 'revisionHistoryLimit')], [201, 10]);
    assert.equal(cluster.store.find('deployments', inDefault('web')), undefined);
  });
});

test('rejects server-side apply and names the accepted media types', async () => {
  const { code, body } = await cluster.client.call('PATCH', `${DEPLOYMENTS}/web?fieldManager=me`, {
    body: web(),
    type: 'application/apply-patch+yaml',
  });
  assert.equal(code, 415);
  const accepted = /accepted media types include: application\/strategic-merge-patch/;
  assert.match(String(at(body, 'message')), accepted);
});

describe('an eviction', () => {
  const evict = (more: object = {}, path = `${PODS}/web-0/eviction`) => {
    const metadata = { name: 'web-0', namespace: 'default' };
    return cluster.client.post(path, { apiVersion: 'policy/v1', kind: 'Eviction', metadata, ...more });
  };

  beforeEach(() => {
    cluster.store.create(
      'pods',
      'default',
      aPod('web-0', { nodeName: 'node-1' }, { labels: { app: 'web' } }),
    );
    cluster.store.update('pods', inDefault('web-0'), 'status', (pod) => ({
      ...pod,
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    }));
  });

  test('is answered with success and makes the pod terminate', async () => {
    const { code, body } = await evict({ deleteOptions: { gracePeriodSeconds: 5 } });
    assert.deepEqual([code, at(body, 'status')], [201, 'Success']);
    assert.equal(cluster.store.get('pods', inDefault('web-0')).metadata.deletionGracePeriodSeconds, 5);
  });

  test('keeps the pod in a dry run, by its options or by the request', async () => {
    assert.equal((await evict({ deleteOptions: { dryRun: ['All'] } })).code, 201);
    assert.equal((await evict({}, `${PODS}/web-0/eviction?dryRun=All`)).code, 201);
    assert.equal(cluster.store.get('pods', inDefault('web-0')).metadata.deletionTimestamp, undefined);
  });

  test('is rejected for another name, a missing pod, or another kind', async () => {
    assert.equal((await evict({ metadata: { name: 'other' } })).code, 400);
    assert.equal((await evict({ kind: 'Pod' })).code, 400);
    assert.equal((await evict({ metadata: { name: 'none' } }, `${PODS}/none/eviction`)).code, 404);
    assert.equal((await cluster.client.get(`${PODS}/web-0/eviction`)).code, 405);
  });
});

describe('a request that only a container could answer', () => {
  for (const [name, method] of [
    ['log', 'GET'],
    ['exec', 'POST'],
    ['attach', 'GET'],
    ['portforward', 'POST'],
  ] as const) {
    test(`is rejected in one sentence: ${name}`, async () => {
      cluster.store.create('pods', 'default', aPod('web'));
      const { code, body } = await cluster.client.call(method, `${PODS}/web/${name}`);
      assert.equal(code, 405);
      assert.match(String(at(body, 'message')), /^the simulated cluster runs no containers: .* "web"$/);
      assert.equal((await cluster.client.call(method, `${PODS}/none/${name}`)).code, 404);
    });
  }
});

describe("the server's description of its API", () => {
  test('lists the groups of all kinds, and subresources of other groups', async () => {
    const groups = await cluster.client.get('/apis');
    assert.deepEqual(each(at(groups.body, 'groups'), 'name'), ['apps', 'policy', 'authorization.k8s.io']);
    const { body } = await cluster.client.get('/api/v1');
    const resources = at(body, 'resources');
    const eviction = Array.isArray(resources) && resources.find(({ name }) => name === 'pods/eviction');
    const found = [at(eviction, 'group'), at(eviction, 'version'), at(eviction, 'kind')];
    assert.deepEqual(found, ['policy', 'v1', 'Eviction']);
  });

  test('makes kubectl send manifests without client-side validation', async () => {
    const { body } = await cluster.client.get('/openapi/v3/apis/apps/v1');
    const deployment = at(body, 'paths', '/apis/apps/v1/namespaces/{namespace}/deployments/{name}', 'patch');
    assert.equal(at(deployment, 'parameters', 0, 'name'), 'fieldValidation');
  });

  test('allows everything in a rules review', async () => {
    const { code, body } = await cluster.client.post(
      '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
      {},
    );
    assert.equal(code, 201);
    const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
    assert.deepEqual(at(body, 'status', 'resourceRules'), [everything]);
  });
});

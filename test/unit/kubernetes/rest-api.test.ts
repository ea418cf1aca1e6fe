import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { Clock } from '#shared/time/clock.ts';
import { systemClock } from '#shared/time/clock.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { type Answer, json, type Received, scriptedServer, status } from './scripted-server.ts';

const POD = { namespace: 'shop', name: 'web-0' };
const UID = podUid('7d1f');
const NOW = Date.UTC(2026, 10, 21, 11, 13, 53, 789);
const EVENT: PodEvent = {
  pod: POD,
  key: 'evicted/7d1f',
  type: 'Normal',
  reason: 'TaintManagerEviction',
  message: 'Marking for deletion Pod shop/web-0',
};

const podJson = (name: string) => ({
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, creationTimestamp: '2026-11-21T11:00:00Z' },
  spec: { nodeName: 'n1' },
});

const urlsOf = (requests: readonly Received[]) => requests.map(({ url }) => url);

const rejection = async (call: Promise<unknown>): Promise<ApiError> => {
  const error = await call.then(
    () => assert.fail('should have rejected'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
};

test('marks a pod by a strategic merge patch of its status, as the built-in controller does', async (t) => {
  const { api, requests } = await scriptedServer(t, json(podJson('web-0')));
  const marked = await api.markDisrupted({ ...POD, generation: 3 }, UID, NOW);
  assert.equal(marked.uid, 'uid-web-0');
  const [request] = requests;
  assert.equal(`${request?.method} ${request?.url}`, 'PATCH /api/v1/namespaces/shop/pods/web-0/status');
  assert.equal(request?.headers['content-type'], 'application/strategic-merge-patch+json');
  assert.equal(request?.headers['impersonate-user'], 'sesame');
  assert.deepEqual(JSON.parse(request?.body ?? ''), {
    metadata: { uid: '7d1f' },
    status: {
      conditions: [
        {
          type: 'DisruptionTarget',
          observedGeneration: 3,
          status: 'True',
          lastTransitionTime: '2026-11-21T11:13:53Z',
          reason: 'DeletionByTaintManager',
          message: 'Taint manager: deleting due to NoExecute taint',
        },
      ],
    },
  });
});

test("marks under the installation's own name and detects other installations", async (t) => {
  const others = [{ manager: 'taintward-theirs', time: '2100-01-01T00:00:00Z' }];
  const marked = podJson('web-0');
  const metadata = { ...marked.metadata, managedFields: others };
  const { requests, connection } = await scriptedServer(t, json({ ...marked, metadata }));
  const api = new RestApi(connection, systemClock, 'ours');
  t.after(() => api.close());
  await api.markDisrupted(POD, UID, NOW);
  assert.deepEqual(urlsOf(requests), [
    '/api/v1/namespaces/shop/pods/web-0/status?fieldManager=taintward-ours',
  ]);
  await api.getPod(POD);
  assert.deepEqual([api.takeRival(), api.takeRival()], ['theirs', undefined]);
});

test('detects another installation by its evicted pods in a list', async (t) => {
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }];
  const pod = (manager: string, more: object) => {
    const { metadata, ...rest } = podJson('web-0');
    const managedFields = [{ manager, time: '2100-01-01T00:00:00Z' }];
    return { ...rest, metadata: { ...metadata, managedFields, ...more }, status: { conditions } };
  };
  const deletionTimestamp = '2100-01-01T00:00:30Z';
  const items = [
    pod('taintward-theirs', { deletionTimestamp }),
    pod('taintward-ours', { deletionTimestamp }),
  ];
  const { connection } = await scriptedServer(t, json({ metadata: { resourceVersion: '1' }, items }));
  const api = new RestApi(connection, systemClock, 'ours');
  t.after(() => api.close());
  await api.pods.list({ signal: new AbortController().signal });
  assert.equal(api.lastRival?.installation, 'theirs');
});

test('omits observedGeneration if the server counts no generations', async (t) => {
  const { api, requests } = await scriptedServer(t, json(podJson('web-0')));
  await api.markDisrupted(POD, UID, NOW);
  assert.doesNotMatch(requests[0]?.body ?? '', /observedGeneration/);
});

test('deletes a pod with exactly the given preconditions', async (t) => {
  const { api, requests } = await scriptedServer(t, json({}));
  await api.deletePod(POD, { uid: UID });
  await api.deletePod(POD, { uid: UID, resourceVersion: '42' });
  const [request] = requests;
  assert.equal(`${request?.method} ${request?.url}`, 'DELETE /api/v1/namespaces/shop/pods/web-0');
  assert.deepEqual(
    requests.map(({ body }) => JSON.parse(body)),
    [{ uid: '7d1f' }, { uid: '7d1f', resourceVersion: '42' }].map((preconditions) => ({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions,
    })),
  );
});

test('reports a patch with a stale UID as a conflict although the server calls it invalid', async (t) => {
  const { api } = await scriptedServer(
    t,
    status(422, 'Invalid', 'Pod "web-0" is invalid: metadata.uid: Invalid value: "7d1f": field is immutable'),
  );
  const error = await rejection(api.markDisrupted(POD, UID, NOW));
  assert.equal(error.status, 409);
});

test('reports a patch that is invalid for another reason as invalid', async (t) => {
  const { api } = await scriptedServer(t, status(422, 'Invalid', 'status.conditions: Invalid value'));
  const error = await rejection(api.markDisrupted(POD, UID, NOW));
  assert.equal(error.status, 422);
});

test('reports a delete with another UID as a conflict', async (t) => {
  const { api } = await scriptedServer(
    t,
    status(409, 'Conflict', 'the UID in the precondition (7d1f) does not match the UID in record (99)'),
  );
  assert.equal((await rejection(api.deletePod(POD, { uid: UID }))).status, 409);
});

test('evicts a pod by the Eviction API with the preconditions of a delete', async (t) => {
  const { api, requests } = await scriptedServer(t, json({}, 201));
  const preconditions = { uid: UID, resourceVersion: '42' };
  assert.deepEqual(await api.evictPod(POD, preconditions), { kind: 'evicted' });
  const [request] = requests;
  assert.equal(`${request?.method} ${request?.url}`, 'POST /api/v1/namespaces/shop/pods/web-0/eviction');
  assert.deepEqual(JSON.parse(request?.body ?? ''), {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: POD,
    deleteOptions: { preconditions },
  });
});

describe('an eviction', () => {
  const tooMany = (details: object) =>
    json(
      { kind: 'Status', code: 429, reason: 'TooManyRequests', message: 'Cannot evict pod.', details },
      429,
    );

  test('is blocked by a disruption budget and names the budget', async (t) => {
    const cause = { reason: 'DisruptionBudget', message: 'The disruption budget b needs 1 healthy pods' };
    const { api, host } = await scriptedServer(t, tooMany({ causes: [cause] }));
    assert.deepEqual(await api.evictPod(POD, { uid: UID }), {
      kind: 'blocked',
      by: 'budget',
      reason: `Cannot create pods/eviction shop/web-0 at ${host}: 429 TooManyRequests; Cannot evict pod; The disruption budget b needs 1 healthy pods.`,
    });
  });

  test('is blocked by a webhook and names the webhook', async (t) => {
    const denied = 'admission webhook "x.example.com" denied the request: it is being moved';
    const { api, host } = await scriptedServer(t, json({ kind: 'Status', code: 429, message: denied }, 429));
    assert.deepEqual(await api.evictPod(POD, { uid: UID }), {
      kind: 'blocked',
      by: 'admission',
      reason: `Cannot create pods/eviction shop/web-0 at ${host}: 429; ${denied}.`,
    });
  });

  test('is rejected by a busy server like any other call', async (t) => {
    const { api } = await scriptedServer(t, tooMany({ retryAfterSeconds: 1 }));
    const error = await rejection(api.evictPod(POD, { uid: UID }));
    assert.deepEqual([error.status, error.retryAfterSeconds], [429, 1]);
  });

  test("is not blocked if a webhook can't be called", async (t) => {
    const { api } = await scriptedServer(t, status(500, 'InternalError', 'failed calling webhook "x"'));
    assert.equal((await rejection(api.evictPod(POD, { uid: UID }))).status, 500);
  });

  test('names the missing permission', async (t) => {
    const { api } = await scriptedServer(t, status(403, 'Forbidden', 'pods "web-0" is forbidden'));
    const { message } = await rejection(api.evictPod(POD, { uid: UID }));
    assert.match(message, /; grant these credentials the verb create on pods\/eviction\.$/);
  });
});

test('does not treat a foreign 404 page as a deleted pod', async (t) => {
  const { api, host } = await scriptedServer(t, json('404 page not found', 404));
  const error = await rejection(api.deletePod(POD, { uid: UID }));
  assert.equal(error.status, 0);
  assert.equal(
    error.message,
    `Cannot delete pods shop/web-0 at ${host}: its answer 404 is not a Kubernetes API server's; check the server address.`,
  );
  await assert.rejects(api.getPod(POD), ApiError);
});

test('reports a kind that the server does not serve as absent', async (t) => {
  const { api } = await scriptedServer(t, json('404 page not found\n', 404));
  assert.equal(await api.getTakeover(), undefined);
  const forbidden = await scriptedServer(t, status(403, 'Forbidden', 'no'));
  assert.equal(await forbidden.api.getTakeover(), undefined);
  const failing = await scriptedServer(t, status(500, 'InternalError', 'etcd is away'));
  assert.equal((await rejection(failing.api.getTakeover())).status, 500);
});

test('tries taints by a dry-run server-side apply of a node with a reserved name', async (t) => {
  const taints = [{ key: 'a', effect: 'NoExecute', timeAdded: '2026-11-21T11:13:53Z' }];
  const { api, requests } = await scriptedServer(
    t,
    json({ metadata: { name: 'any' }, spec: { taints } }, 201),
  );
  const timeAdded = Date.UTC(2026, 10, 21, 11, 13, 53);
  const asked = [{ key: 'a', effect: 'NoExecute', timeAdded }];
  assert.deepEqual(await api.tryTaints(asked), asked);
  const [request] = requests;
  assert.equal(
    `${request?.method} ${request?.url}`,
    'PATCH /api/v1/nodes/taintward-takeover-proof?dryRun=All&fieldManager=taintward-takeover-proof&force=true',
  );
  assert.equal(request?.headers['content-type'], 'application/apply-patch+yaml');
});

test('returns undefined for objects that the API server does not find', async (t) => {
  const { api } = await scriptedServer(t, status(404, 'NotFound', 'not found'));
  assert.equal(await api.getNode(nodeName('n1')), undefined);
  assert.equal(await api.getPod(POD), undefined);
  assert.equal(await api.getNodeLease(nodeName('n1')), undefined);
});

test('reads replicas from the field of each kind', async (t) => {
  const object = { spec: { replicas: 3, parallelism: 4 }, status: { desiredNumberScheduled: 5 } };
  const { api, requests } = await scriptedServer(t, json(object));
  const read: unknown[] = [];
  for (const kind of ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job', 'ReplicationController'])
    read.push(await api.getReplicas({ namespace: 'shop', kind, name: 'web' }));
  assert.deepEqual(read, [3, 3, 3, 5, 4, 3]);
  assert.deepEqual(
    requests.map(({ url }) => url),
    [
      ...['deployments', 'replicasets', 'statefulsets', 'daemonsets'].map(
        (kind) => `/apis/apps/v1/namespaces/shop/${kind}/web`,
      ),
      ...['/apis/batch/v1/namespaces/shop/jobs/web', '/api/v1/namespaces/shop/replicationcontrollers/web'],
    ],
  );
});

test('returns no replicas for objects without a number, and sends no request for kinds without replicas', async (t) => {
  const { api, requests } = await scriptedServer(t, json({ spec: { replicas: '3' } }));
  assert.equal(await api.getReplicas({ namespace: 'shop', kind: 'Deployment', name: 'web' }), undefined);
  assert.equal(await api.getReplicas({ namespace: 'shop', kind: 'constructor', name: 'web' }), undefined);
  assert.equal(requests.length, 1);
});

describe('the Lease of a node', () => {
  const leaseJson = (spec: object) => ({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec });
  const SERVED = { renewTime: '2026-01-01T00:00:20.123456Z', leaseDurationSeconds: 40 };

  test("is read by name as of the server's clock, regardless of the local clock", async (t) => {
    const { api, requests } = await scriptedServer(t, (response, request) => {
      response.setHeader('Date', 'Thu, 01 Jan 2026 00:00:30 GMT');
      json(leaseJson(SERVED))(response, request);
    });
    const { asOf = 0, ...lease } = (await api.getNodeLease(nodeName('n1'))) ?? {};
    assert.deepEqual(lease, { renewedAt: Date.UTC(2026, 0, 1, 0, 0, 20, 123), durationMs: 40_000 });
    // The Date header has whole seconds, and time passed while the answer was read.
    assert.ok(Math.abs(asOf - Date.UTC(2026, 0, 1, 0, 0, 30)) < 1000, new Date(asOf).toISOString());
    assert.deepEqual(
      requests.map(({ url }) => url),
      ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1'],
    );
  });

  test('omits fields that are absent or invalid', async (t) => {
    for (const spec of [
      {},
      { renewTime: 'soon', leaseDurationSeconds: '40' },
      { renewTime: 7, leaseDurationSeconds: 0 },
      { renewTime: null, leaseDurationSeconds: -40 },
    ]) {
      const { api } = await scriptedServer(t, json(leaseJson(spec)));
      const { asOf: _asOf, ...lease } = (await api.getNodeLease(nodeName('n1'))) ?? {};
      assert.deepEqual(lease, {}, JSON.stringify(spec));
    }
  });

  test('is rejected with the name of the missing permission', async (t) => {
    const { api } = await scriptedServer(t, status(403, 'Forbidden', 'leases "n1" is forbidden'));
    const error = await rejection(api.getNodeLease(nodeName('n1')));
    assert.equal(error.status, 403);
    assert.match(error.message, /; grant these credentials the verb get on leases\.$/);
  });
});

test('reads a node and a pod by name, without a resource version', async (t) => {
  const { api, requests } = await scriptedServer(t, (response, request) =>
    json(request.url.includes('/nodes/') ? { metadata: { name: 'n1', resourceVersion: '7' } } : podJson('a'))(
      response,
      request,
    ),
  );
  assert.deepEqual(await api.getNode(nodeName('n1')), { name: 'n1', resourceVersion: '7', taints: [] });
  assert.equal((await api.getPod(POD))?.uid, 'uid-a');
  assert.deepEqual(urlsOf(requests), ['/api/v1/nodes/n1', '/api/v1/namespaces/shop/pods/web-0']);
});

describe('the pods of a node', () => {
  const refs = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ namespace: 'shop', name: `web-${index}` }));
  const list = '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1';

  /** A server that gives this answer when it is asked for its version. */
  const server = (t: TestContext, version: Answer, clock?: Clock) =>
    scriptedServer(
      t,
      (response, request) => {
        const name = request.url.split('/').at(-1) ?? '';
        if (request.url === '/version') version(response, request);
        else if (request.url === list)
          json({ items: [podJson('web-0'), podJson('web-9')] })(response, request);
        else if (name === 'web-1') status(404, 'NotFound', 'not found')(response, request);
        else json(podJson(name))(response, request);
      },
      { ...(clock ? { clock } : {}) },
    );

  test('are read one by one if they are few, whatever the version, and missing pods are omitted', async (t) => {
    const { api, requests } = await server(t, json({ major: '1', minor: '36' }));
    const pods = await api.podsOnNode(nodeName('n1'), refs(3));
    assert.deepEqual(
      pods.map(({ name }) => name),
      ['web-0', 'web-2'],
    );
    assert.equal(requests.length, 3);
  });

  for (const minor of ['31', '31+', '36']) {
    test(`are listed in one request if they are many and the server has version 1.${minor}`, async (t) => {
      const { api, requests } = await server(t, json({ major: '1', minor }));
      const pods = await api.podsOnNode(nodeName('n1'), refs(4));
      assert.deepEqual(
        pods.map(({ name }) => name),
        ['web-0', 'web-9'],
      );
      assert.deepEqual(urlsOf(requests), ['/version', list]);
    });
  }

  for (const [what, version] of [
    ['before 1.31', json({ major: '1', minor: '30+' })],
    ['that nobody can read', json({ major: 'one' })],
    ['that it does not tell', status(403, 'Forbidden', 'no')],
  ] as const) {
    test(`are read one by one from a server of a version ${what}, if they are many`, async (t) => {
      const { api, requests } = await server(t, version);
      const pods = await api.podsOnNode(nodeName('n1'), refs(5));
      assert.equal(pods.length, 4);
      assert.deepEqual(
        urlsOf(requests).filter((url) => url === list),
        [],
      );
    });
  }

  test('need the version once an hour', async (t) => {
    const clock = new DrivenClock(NOW);
    const { api, requests } = await server(t, json({ major: '1', minor: '36' }), clock);
    const ask = () => api.podsOnNode(nodeName('n1'), refs(4));
    const asked = () => requests.filter(({ url }) => url === '/version').length;
    await Promise.all([ask(), ask()]);
    await clock.advanceTo(NOW + 59 * 60_000);
    await ask();
    assert.equal(asked(), 1);
    await clock.advanceTo(NOW + 60 * 60_000);
    await ask();
    assert.equal(asked(), 2);
  });

  test('need the version again a minute after a failed request', async (t) => {
    const clock = new DrivenClock(NOW);
    let away = true;
    const { api, requests } = await server(
      t,
      (response, request) =>
        (away ? status(503, '', 'later') : json({ major: '1', minor: '36' }))(response, request),
      clock,
    );
    await api.podsOnNode(nodeName('n1'), refs(4));
    away = false;
    await api.podsOnNode(nodeName('n1'), refs(4));
    await clock.advanceTo(NOW + 60_000);
    await api.podsOnNode(nodeName('n1'), refs(4));
    assert.equal(urlsOf(requests).filter((url) => url === list).length, 1);
  });
});

test('writes an Event as the built-in controller does', async (t) => {
  const { api, requests } = await scriptedServer(t, json({}, 201));
  await api.createEvent(EVENT, NOW);
  const [request] = requests;
  assert.equal(`${request?.method} ${request?.url}`, 'POST /api/v1/namespaces/shop/events');
  const { metadata, ...event } = JSON.parse(request?.body ?? '');
  assert.equal(metadata.namespace, 'shop');
  assert.match(metadata.name, /^web-0\.[0-9a-f]{16}$/);
  assert.deepEqual(event, {
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0', apiVersion: 'v1' },
    reason: 'TaintManagerEviction',
    message: 'Marking for deletion Pod shop/web-0',
    source: { component: 'taint-eviction-controller' },
    firstTimestamp: '2026-11-21T11:13:53Z',
    lastTimestamp: '2026-11-21T11:13:53Z',
    count: 1,
    type: 'Normal',
    eventTime: null,
    reportingComponent: 'taint-eviction-controller',
    reportingInstance: '',
  });
});

test('derives one Event name per key, of at most 253 characters', async (t) => {
  const { api, requests } = await scriptedServer(t, json({}, 201));
  const long = { ...EVENT, pod: { namespace: 'shop', name: `${'a'.repeat(235)}.${'b'.repeat(17)}` } };
  await api.createEvent(EVENT, NOW);
  await api.createEvent(EVENT, NOW + 5000);
  await api.createEvent({ ...EVENT, key: 'cancelled/7d1f' }, NOW);
  await api.createEvent(long, NOW);
  const [first, again, other, cut] = requests.map(({ body }) => JSON.parse(body).metadata.name as string);
  assert.equal(again, first);
  assert.notEqual(other, first);
  assert.match(cut ?? '', /^a{235}\.[0-9a-f]{16}$/);
});

test('treats an existing Event as posted', async (t) => {
  const { api } = await scriptedServer(t, status(409, 'AlreadyExists', 'events "x" already exists'));
  await api.createEvent(EVENT, NOW);
});

test('rejects an Event in a terminating namespace without advising to grant permissions', async (t) => {
  const { api, host } = await scriptedServer(
    t,
    json(
      {
        ...{ kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 403, reason: 'Forbidden' },
        message: 'unable to create new content in namespace shop because it is being terminated',
        details: {
          causes: [
            {
              reason: 'NamespaceTerminating',
              message: 'namespace shop is being terminated',
              field: 'metadata.namespace',
            },
          ],
        },
      },
      403,
    ),
  );
  const error = await rejection(api.createEvent(EVENT, NOW));
  assert.equal(error.status, 403);
  assert.equal(
    error.message,
    `Cannot create events in shop at ${host}: 403 Forbidden; unable to create new content in namespace shop because it is being terminated; namespace shop is being terminated.`,
  );
});

test('names rejected credentials and obtains new ones', async (t) => {
  const { api, host, forgotten } = await scriptedServer(t, status(401, 'Unauthorized', 'Unauthorized'));
  const error = await rejection(api.getNode(nodeName('n1')));
  assert.equal(error.status, 401);
  assert.equal(
    error.message,
    `Cannot get nodes n1 at ${host}: 401 Unauthorized; the credentials were rejected (an expired token?): renew them.`,
  );
  assert.equal(forgotten(), 1);
});

test('names a missing permission by verb and resource', async (t) => {
  const { api } = await scriptedServer(t, status(403, 'Forbidden', 'pods "web-0" is forbidden'));
  const error = await rejection(api.markDisrupted(POD, UID, NOW));
  assert.equal(error.status, 403);
  assert.match(
    error.message,
    /; pods "web-0" is forbidden; grant these credentials the verb patch on pods\/status\.$/,
  );
});

test("keeps the status of a proxy's error and omits its page from the message", async (t) => {
  const { api } = await scriptedServer(t, json('<html>token=sesame</html>', 502));
  const error = await rejection(api.deletePod(POD, { uid: UID }));
  assert.equal(error.status, 502);
  assert.doesNotMatch(error.message, /sesame/);
});

test('rejects an answer that is not JSON', async (t) => {
  const { api } = await scriptedServer(t, json('<html>please log in</html>'));
  const error = await rejection(api.getNode(nodeName('n1')));
  assert.equal(error.status, 0);
  assert.match(error.message, /is not JSON/);
});

test('reports an unreachable server as status 0 with the cause', async (t) => {
  const { api, host } = await scriptedServer(t, (response) => response.destroy());
  const reset = await rejection(api.getNode(nodeName('n1')));
  assert.equal(reset.status, 0);
  assert.equal(reset.message, `Cannot get nodes n1 at ${host}: the connection was reset (ECONNRESET).`);

  const nobody = new RestApi({
    host: '127.0.0.1:1',
    requestOptions: async () => ({ server: new URL('http://127.0.0.1:1'), headers: {} }),
  });
  const refused = await rejection(nobody.getNode(nodeName('n1')));
  assert.equal(refused.status, 0);
  assert.match(refused.message, /the connection was refused; .* \(ECONNREFUSED\)\.$/);
});

test('names an unusable client certificate', async () => {
  const api = new RestApi({
    host: '127.0.0.1:1',
    requestOptions: async () => ({
      server: new URL('https://127.0.0.1:1'),
      headers: {},
      cert: 'sesame',
      key: 'sesame',
    }),
  });
  const error = await rejection(api.getNode(nodeName('n1')));
  assert.equal(
    error.message,
    'Cannot get nodes n1 at 127.0.0.1:1: the client certificate or its key is not in PEM form; replace it (ERR_OSSL_PEM_NO_START_LINE).',
  );
});

test("rejects with the error of credentials that can't be obtained", async () => {
  const api = new RestApi({
    host: '127.0.0.1:1',
    requestOptions: () => Promise.reject(new Error('The plugin is not installed.')),
  });
  const error = await rejection(api.getNode(nodeName('n1')));
  assert.equal(error.message, 'Cannot get nodes n1 at 127.0.0.1:1: The plugin is not installed.');
});

describe('what identifies a cluster', () => {
  const nodes = {
    metadata: { resourceVersion: '1' },
    items: [{ metadata: { uid: 'n1' } }, { metadata: {} }],
  };
  const served =
    (system: Answer, listed: Answer): Answer =>
    (response, request) =>
      (request.url.startsWith('/api/v1/nodes') ? listed : system)(response, request);
  const forbidden = status(403, 'Forbidden', 'no');
  const uidsOf = async (t: TestContext, system: Answer, listed: Answer) => {
    const { api, requests } = await scriptedServer(t, served(system, listed));
    return { uids: await api.uids(), requests };
  };

  test('is the UID of kube-system, and those of the first nodes', async (t) => {
    const { uids, requests } = await uidsOf(t, json({ metadata: { uid: 's1' } }), json(nodes));
    assert.deepEqual(uids, { system: 's1', nodes: ['n1'] });
    assert.deepEqual(requests.map(({ url }) => url).sort(), [
      '/api/v1/namespaces/kube-system',
      '/api/v1/nodes?limit=10',
    ]);
  });

  test('leaves out what the credentials may not read, and a namespace that does not exist', async (t) => {
    assert.deepEqual((await uidsOf(t, forbidden, json(nodes))).uids, { nodes: ['n1'] });
    assert.deepEqual((await uidsOf(t, status(404, 'NotFound', 'no'), forbidden)).uids, { nodes: [] });
  });

  test('is unknown while the server fails', async (t) => {
    const { api } = await scriptedServer(t, served(status(500, 'InternalError', 'no'), json(nodes)));
    assert.equal((await rejection(api.uids())).status, 500);
  });
});

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';
import { NODE, NOW, node, POD, rejection, signal, UID } from './builders.ts';
import { type Answer, clientOf, json, type Received, scriptedServer, status } from './scripted-server.ts';

const EVENT: PodEvent = {
  pod: POD,
  key: 'evicted/7d1f',
  type: 'Normal',
  reason: 'TaintManagerEviction',
  message: 'Marking for deletion Pod shop/web-0',
};

const podJson = (name: string, metadata: object = {}) => ({
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-${name}`,
    creationTimestamp: '2026-11-21T11:00:00Z',
    ...metadata,
  },
  spec: { nodeName: 'n1' },
});

const urlsOf = (requests: readonly Received[]) => requests.map(({ url }) => url);

/** Returns the request of a call that is answered so: its method and URL, its media type, and its body. */
async function requestOf(t: TestContext, answer: Answer, call: (api: RestApi) => Promise<unknown>) {
  const { api, requests } = await scriptedServer(t, answer);
  const result = await call(api);
  const [{ method, url, headers, body } = { method: '', url: '', headers: {}, body: '' }] = requests;
  return { line: `${method} ${url}`, type: headers['content-type'], body: JSON.parse(body), result };
}

test('marks a pod by a strategic merge patch of its status, as the built-in controller does', async (t) => {
  const { api, requests } = await scriptedServer(t, json(podJson('web-0')));
  assert.equal((await api.markDisrupted({ ...POD, generation: 3 }, UID, NOW)).uid, 'uid-web-0');
  const [request] = requests;
  assert.equal(`${request?.method} ${request?.url}`, 'PATCH /api/v1/namespaces/shop/pods/web-0/status');
  assert.equal(request?.headers['content-type'], 'application/strategic-merge-patch+json');
  assert.equal(request?.headers['impersonate-user'], 'sesame');
  const condition = {
    type: 'DisruptionTarget',
    observedGeneration: 3,
    status: 'True',
    lastTransitionTime: '2026-11-21T11:13:53Z',
    reason: 'DeletionByTaintManager',
    message: 'Taint manager: deleting due to NoExecute taint',
  };
  const patch = { metadata: { uid: '7d1f' }, status: { conditions: [condition] } };
  assert.deepEqual(JSON.parse(request?.body ?? ''), patch);
  // A server that counts no generations.
  await api.markDisrupted(POD, UID, NOW);
  const { observedGeneration: _, ...unobserved } = condition;
  assert.deepEqual(JSON.parse(requests[1]?.body ?? '').status.conditions, [unobserved]);
});

describe('an installation', () => {
  const ours = async (t: TestContext, answer: Answer) => {
    const { connection, requests } = await scriptedServer(t, answer);
    const api = new RestApi(connection, systemClock, 'ours');
    t.after(() => api.close());
    return { api, requests };
  };
  const markedBy = (manager: string, more: object = {}) =>
    podJson('web-0', { managedFields: [{ manager, time: '2100-01-01T00:00:00Z' }], ...more });

  test('marks under its own name and detects other installations', async (t) => {
    const { api, requests } = await ours(t, json(markedBy('taintward-theirs')));
    await api.markDisrupted(POD, UID, NOW);
    assert.deepEqual(urlsOf(requests), [
      '/api/v1/namespaces/shop/pods/web-0/status?fieldManager=taintward-ours',
    ]);
    await api.getPod(POD);
    assert.deepEqual([api.takeRival(), api.takeRival()], ['theirs', undefined]);
  });

  test('detects another one by its evicted pods in a list', async (t) => {
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }];
    const items = ['taintward-theirs', 'taintward-ours'].map((manager) => ({
      ...markedBy(manager, { deletionTimestamp: '2100-01-01T00:00:30Z' }),
      status: { conditions },
    }));
    const { api } = await ours(t, json({ metadata: { resourceVersion: '1' }, items }));
    await api.pods.list({ signal });
    assert.equal(api.lastRival?.installation, 'theirs');
  });
});

for (const preconditions of [{ uid: UID }, { uid: UID, resourceVersion: '42' }]) {
  const how = Object.keys(preconditions).join(' and ');

  test(`deletes a pod with exactly the given preconditions: ${how}`, async (t) => {
    const request = await requestOf(t, json({}), (api) => api.deletePod(POD, preconditions));
    assert.equal(request.line, 'DELETE /api/v1/namespaces/shop/pods/web-0');
    assert.deepEqual(request.body, { apiVersion: 'v1', kind: 'DeleteOptions', preconditions });
  });

  test(`evicts a pod by the Eviction API with the preconditions of a delete: ${how}`, async (t) => {
    const request = await requestOf(t, json({}, 201), (api) => api.evictPod(POD, preconditions));
    assert.equal(request.line, 'POST /api/v1/namespaces/shop/pods/web-0/eviction');
    assert.deepEqual(request.body, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: POD,
      deleteOptions: { preconditions },
    });
    assert.deepEqual(request.result, { kind: 'evicted' });
  });
}

const mark = (api: RestApi) => api.markDisrupted(POD, UID, NOW);
const remove = (api: RestApi) => api.deletePod(POD, { uid: UID });
const evict = (api: RestApi) => api.evictPod(POD, { uid: UID });
const get = (api: RestApi) => api.getNode(NODE);
const post = (api: RestApi) => api.createEvent(EVENT, NOW);

const FORBIDDEN = status(403, 'Forbidden', 'it is forbidden');
const tooMany = (details: object) =>
  json({ kind: 'Status', code: 429, reason: 'TooManyRequests', message: 'Cannot evict pod.', details }, 429);
const TERMINATING = json(
  {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code: 403,
    reason: 'Forbidden',
    message: 'unable to create new content in namespace shop because it is being terminated',
    details: {
      causes: [{ reason: 'NamespaceTerminating', message: 'namespace shop is being terminated' }],
    },
  },
  403,
);

/** Tests that a call that is answered so is rejected with this status and message. */
function rejects(
  what: string,
  call: (api: RestApi) => Promise<unknown>,
  answer: Answer,
  [code, message]: readonly [code: number, message: RegExp],
): void {
  test(what, async (t) => {
    const { api, host, forgotten } = await scriptedServer(t, answer);
    const error = await rejection(call(api));
    assert.equal(error.status, code);
    assert.match(error.message.replace(host, 'HOST'), message);
    assert.equal(error.retryAfterSeconds, code === 429 ? 1 : undefined);
    // Rejected credentials are obtained again.
    assert.equal(forgotten(), code === 401 ? 1 : 0);
  });
}

const stale = status(422, 'Invalid', 'Pod "web-0" is invalid: metadata.uid: Invalid value: "7d1f"');
rejects('reports a patch with a stale UID as a conflict although the server calls it invalid', mark, stale, [
  409,
  /metadata\.uid/,
]);
const invalid = status(422, 'Invalid', 'status.conditions: Invalid value');
rejects('reports a patch that is invalid for another reason as invalid', mark, invalid, [422, /conditions/]);
const replaced = status(409, 'Conflict', 'the UID in the precondition (7d1f) does not match');
rejects('reports a delete with another UID as a conflict', remove, replaced, [409, /does not match\.$/]);

const busy = tooMany({ retryAfterSeconds: 1 });
rejects('rejects an eviction by a busy server like any other call', evict, busy, [429, /Cannot evict pod/]);
const uncalled = status(500, 'InternalError', 'failed calling webhook "x"');
rejects("rejects an eviction whose webhook can't be called", evict, uncalled, [500, /webhook "x"/]);

for (const [right, call] of [
  ['create on pods/eviction', evict],
  ['patch on pods/status', mark],
  ['get on leases', (api: RestApi) => api.getNodeLease(NODE)],
] as const) {
  const message = new RegExp(`; it is forbidden; grant these credentials the verb ${right}\\.$`);
  rejects(`names a missing permission: ${right}`, call, FORBIDDEN, [403, message]);
}
rejects(
  'rejects an Event in a terminating namespace without advising to grant permissions',
  post,
  TERMINATING,
  [
    403,
    /^Cannot create events in shop at HOST: 403 Forbidden; unable to create new content in namespace shop because it is being terminated; namespace shop is being terminated\.$/,
  ],
);

const foreign = json('404 page not found', 404);
rejects('does not treat a foreign 404 page as a deleted pod', remove, foreign, [
  0,
  /^Cannot delete pods shop\/web-0 at HOST: its answer 404 is not a Kubernetes API server's; check the server address\.$/,
]);
rejects('does not treat a foreign 404 page as a missing pod', (api) => api.getPod(POD), foreign, [0, /404/]);
const failing = status(500, 'InternalError', 'etcd is away');
rejects('does not treat a failure as a missing takeover', (api) => api.getTakeover(), failing, [500, /etcd/]);
const page = json('<html>token=sesame</html>', 502);
rejects("keeps the status of a proxy's error and omits its page", remove, page, [502, /^((?!sesame).)*$/]);
rejects('rejects an answer that is not JSON', get, json('<html>log in</html>'), [0, /is not JSON/]);
rejects('names rejected credentials', get, status(401, 'Unauthorized', 'Unauthorized'), [
  401,
  /^Cannot get nodes n1 at HOST: 401 Unauthorized; the credentials were rejected \(an expired token\?\): renew them\.$/,
]);
rejects('reports an unreachable server as status 0 with the cause', get, (response) => response.destroy(), [
  0,
  /^Cannot get nodes n1 at HOST: the connection was reset \(ECONNRESET\)\.$/,
]);

for (const [what, access, message] of [
  [
    'names a server that refuses connections',
    { server: new URL('http://127.0.0.1:1'), headers: {} },
    /the connection was refused; .* \(ECONNREFUSED\)\.$/,
  ],
  [
    'names an unusable client certificate',
    { server: new URL('https://127.0.0.1:1'), headers: {}, cert: 'sesame', key: 'sesame' },
    /^Cannot get nodes n1 at 127\.0\.0\.1:1: the client certificate or its key is not in PEM form; replace it \(ERR_OSSL_PEM_NO_START_LINE\)\.$/,
  ],
] as const)
  test(what, async (t) => {
    const error = await rejection(get(clientOf(t, () => access)));
    assert.equal(error.status, 0);
    assert.match(error.message, message);
  });

describe('an eviction is blocked', () => {
  const cause = { reason: 'DisruptionBudget', message: 'The disruption budget b needs 1 healthy pods' };
  const denied = 'admission webhook "x.example.com" denied the request: it is being moved';
  for (const [caller, answer, reason] of [
    ['budget', tooMany({ causes: [cause] }), `429 TooManyRequests; Cannot evict pod; ${cause.message}.`],
    ['admission', json({ kind: 'Status', code: 429, message: denied }, 429), `429; ${denied}.`],
  ] as const)
    test(`by ${caller}, which the reason names`, async (t) => {
      const { api, host } = await scriptedServer(t, answer);
      const prefix = `Cannot create pods/eviction shop/web-0 at ${host}: `;
      assert.deepEqual(await evict(api), { kind: 'blocked', by: caller, reason: prefix + reason });
    });
});

test('reports a kind that the server does not serve, or that is forbidden, as absent', async (t) => {
  for (const answer of [json('404 page not found\n', 404), FORBIDDEN]) {
    const { api } = await scriptedServer(t, answer);
    assert.equal(await api.getTakeover(), undefined);
  }
});

test('tries taints by a dry-run server-side apply of a node with a reserved name', async (t) => {
  const taints = [{ key: 'a', effect: 'NoExecute', timeAdded: '2026-11-21T11:13:53Z' }];
  const tried = [{ key: 'a', effect: 'NoExecute', timeAdded: Date.UTC(2026, 10, 21, 11, 13, 53) }];
  const made = json({ metadata: { name: 'any' }, spec: { taints } }, 201);
  const { line, type, result } = await requestOf(t, made, (api) => api.tryTaints(tried));
  assert.deepEqual(result, tried);
  assert.equal(
    line,
    'PATCH /api/v1/nodes/taintward-takeover-proof?dryRun=All&fieldManager=taintward-takeover-proof&force=true',
  );
  assert.equal(type, 'application/apply-patch+yaml');
});

test('reads replicas from the field of each kind', async (t) => {
  const object = { spec: { replicas: 3, parallelism: 4 }, status: { desiredNumberScheduled: 5 } };
  const { api, requests } = await scriptedServer(t, json(object));
  const read: unknown[] = [];
  for (const kind of ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job', 'ReplicationController'])
    read.push(await api.getReplicas({ namespace: 'shop', kind, name: 'web' }));
  assert.deepEqual(read, [3, 3, 3, 5, 4, 3]);
  assert.deepEqual(urlsOf(requests), [
    ...['deployments', 'replicasets', 'statefulsets', 'daemonsets'].map(
      (kind) => `/apis/apps/v1/namespaces/shop/${kind}/web`,
    ),
    ...['/apis/batch/v1/namespaces/shop/jobs/web', '/api/v1/namespaces/shop/replicationcontrollers/web'],
  ]);
});

test('returns no replicas for objects without a number, and sends no request for kinds without replicas', async (t) => {
  const { api, requests } = await scriptedServer(t, json({ spec: { replicas: '3' } }));
  assert.equal(await api.getReplicas({ namespace: 'shop', kind: 'Deployment', name: 'web' }), undefined);
  assert.equal(await api.getReplicas({ namespace: 'shop', kind: 'constructor', name: 'web' }), undefined);
  assert.equal(requests.length, 1);
});

describe('the Lease of a node', () => {
  const leaseOf = async (t: TestContext, spec: object, headers = {}) => {
    const { api, requests } = await scriptedServer(t, json({ spec }, 200, headers));
    const { asOf = 0, ...lease } = (await api.getNodeLease(NODE)) ?? {};
    return { asOf, lease, requests };
  };

  test("is read by name as of the server's clock, regardless of the local clock", async (t) => {
    const spec = { renewTime: '2026-01-01T00:00:20.123456Z', leaseDurationSeconds: 40 };
    const { asOf, lease, requests } = await leaseOf(t, spec, { Date: 'Thu, 01 Jan 2026 00:00:30 GMT' });
    assert.deepEqual(lease, { renewedAt: Date.UTC(2026, 0, 1, 0, 0, 20, 123), durationMs: 40_000 });
    // The Date header has whole seconds, and time passed while the answer was read.
    assert.ok(Math.abs(asOf - Date.UTC(2026, 0, 1, 0, 0, 30)) < 1000, new Date(asOf).toISOString());
    assert.deepEqual(urlsOf(requests), ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1']);
  });

  test('omits fields that are absent or invalid', async (t) => {
    for (const spec of [
      {},
      { renewTime: 'soon', leaseDurationSeconds: '40' },
      { renewTime: 7, leaseDurationSeconds: 0 },
      { renewTime: null, leaseDurationSeconds: -40 },
    ])
      assert.deepEqual((await leaseOf(t, spec)).lease, {}, JSON.stringify(spec));
  });
});

test('reads a node and a pod by name, without a resource version', async (t) => {
  const { api, requests } = await scriptedServer(t, (response, request) =>
    (request.url.includes('/nodes/') ? node : json(podJson('a')))(response, request),
  );
  assert.equal((await api.getNode(NODE))?.name, 'n1');
  assert.equal((await api.getPod(POD))?.uid, 'uid-a');
  assert.deepEqual(urlsOf(requests), ['/api/v1/nodes/n1', '/api/v1/namespaces/shop/pods/web-0']);
});

describe('the pods of a node', () => {
  const LIST = '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1';
  const CURRENT = json({ major: '1', minor: '36' });

  /** A server that gives this answer when it is asked for its version. */
  async function server(t: TestContext, version: Answer) {
    const answer: Answer = (response, request) => {
      const name = request.url.split('/').at(-1) ?? '';
      if (request.url === '/version') version(response, request);
      else if (request.url === LIST) json({ items: [podJson('web-0'), podJson('web-9')] })(response, request);
      else if (name === 'web-1') status(404, 'NotFound', 'not found')(response, request);
      else json(podJson(name))(response, request);
    };
    const { api, requests } = await scriptedServer(t, answer);
    const ask = async (count: number) => {
      const refs = Array.from({ length: count }, (_, index) => ({ namespace: 'shop', name: `web-${index}` }));
      return (await api.podsOnNode(NODE, refs)).map(({ name }) => name);
    };
    const countOf = (path: string) => requests.filter(({ url }) => url === path).length;
    return { api, ask, countOf, requests };
  }

  test('are read one by one if they are few, whatever the version, and missing pods are omitted', async (t) => {
    const { ask, requests } = await server(t, CURRENT);
    assert.deepEqual(await ask(3), ['web-0', 'web-2']);
    assert.equal(requests.length, 3);
  });

  for (const minor of ['31', '31+', '36']) {
    test(`are listed in one request if they are many and the server has version 1.${minor}`, async (t) => {
      const { ask, requests } = await server(t, json({ major: '1', minor }));
      assert.deepEqual(await ask(4), ['web-0', 'web-9']);
      assert.deepEqual(urlsOf(requests), ['/version', LIST]);
    });
  }

  for (const [what, version] of [
    ['before 1.31', json({ major: '1', minor: '30+' })],
    ['that nobody can read', json({ major: 'one' })],
    ['that it does not tell', FORBIDDEN],
  ] as const) {
    test(`are read one by one from a server of a version ${what}, if they are many`, async (t) => {
      const { ask, countOf } = await server(t, version);
      assert.equal((await ask(5)).length, 4);
      await ask(5);
      assert.deepEqual([countOf('/version'), countOf(LIST)], [1, 0]);
    });
  }

  test('need no request for the version after a ping', async (t) => {
    const { api, ask, countOf } = await server(t, CURRENT);
    await api.ping();
    await ask(4);
    await ask(4);
    assert.deepEqual([countOf('/version'), countOf(LIST)], [1, 2]);
  });

  test('need the version once for several nodes at the same time', async (t) => {
    const { ask, countOf } = await server(t, CURRENT);
    await Promise.all([ask(4), ask(4), ask(4)]);
    assert.deepEqual([countOf('/version'), countOf(LIST)], [1, 3]);
  });

  test('need the version again after a failed request', async (t) => {
    let version = status(503, '', 'later');
    const { ask, countOf } = await server(t, (...of) => version(...of));
    await ask(4);
    assert.equal(countOf(LIST), 0);
    version = CURRENT;
    await ask(4);
    assert.equal(countOf(LIST), 1);
  });

  test('are listed as the last ping found the server, which was upgraded', async (t) => {
    let minor = '30';
    const { api, ask, countOf } = await server(t, (...of) => json({ major: '1', minor })(...of));
    await ask(4);
    minor = '31';
    await api.ping();
    await ask(4);
    assert.equal(countOf(LIST), 1);
  });
});

test('writes an Event as the built-in controller does', async (t) => {
  const { line, body } = await requestOf(t, json({}, 201), post);
  assert.equal(line, 'POST /api/v1/namespaces/shop/events');
  const { metadata, ...event } = body;
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

test('derives an Event name of at most 253 characters', async (t) => {
  const pod = { namespace: 'shop', name: `${'a'.repeat(235)}.${'b'.repeat(17)}` };
  const { body } = await requestOf(t, json({}, 201), (api) => api.createEvent({ ...EVENT, pod }, NOW));
  assert.match(body.metadata.name, /^a{235}\.[0-9a-f]{16}$/);
});

describe('what identifies a cluster', () => {
  const nodes = json({
    metadata: { resourceVersion: '1' },
    items: [{ metadata: { uid: 'n1' } }, { metadata: {} }],
  });
  const identified = (t: TestContext, system: Answer, listed: Answer) =>
    scriptedServer(t, (response, request) =>
      (request.url.startsWith('/api/v1/nodes') ? listed : system)(response, request),
    );

  test('is the UID of kube-system, and those of the first nodes', async (t) => {
    const { api, requests } = await identified(t, json({ metadata: { uid: 's1' } }), nodes);
    assert.deepEqual(await api.uids(), { system: 's1', nodes: ['n1'] });
    assert.deepEqual(urlsOf(requests).sort(), ['/api/v1/namespaces/kube-system', '/api/v1/nodes?limit=10']);
  });

  test('leaves out what the credentials may not read, and a namespace that does not exist', async (t) => {
    const unread = await identified(t, FORBIDDEN, nodes);
    assert.deepEqual(await unread.api.uids(), { nodes: ['n1'] });
    const missing = await identified(t, status(404, 'NotFound', 'no'), FORBIDDEN);
    assert.deepEqual(await missing.api.uids(), { nodes: [] });
  });

  test('is unknown while the server fails', async (t) => {
    const { api } = await identified(t, status(500, 'InternalError', 'no'), nodes);
    assert.equal((await rejection(api.uids())).status, 500);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import {
  isRequired,
  missingPermissions,
  NEEDED_PERMISSIONS,
  neededUnder,
  nodeLeaseHint,
  OBSERVE_PERMISSIONS,
  permissionsNeededBy,
  permissionText,
  preflight,
  requiredUnder,
} from '#shared/kubernetes/permissions.ts';
import { parsePolicyDocument } from '#shared/state/policy-document.ts';
import { type Answer, json, scriptedServer, status } from './scripted-server.ts';

/** Allows all except these, each `verb resource` or `verb resource/subresource`. */
const allowAllBut =
  (...refused: string[]): Answer =>
  (response, request) => {
    const { verb, resource, subresource } = JSON.parse(request.body).spec.resourceAttributes;
    const right = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`;
    json({ status: { allowed: !refused.includes(right) } }, 201)(response, request);
  };

test('checks the required permissions in all namespaces and passes if none is missing', async (t) => {
  const { api, requests } = await scriptedServer(t, allowAllBut());
  await preflight(api, NEEDED_PERMISSIONS);
  assert.equal(requests.length, NEEDED_PERMISSIONS.length);
  for (const { url, method, body } of requests) {
    assert.equal(`${method} ${url}`, 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews');
    assert.equal('namespace' in JSON.parse(body).spec.resourceAttributes, false);
  }
});

test('lists missing permissions in order', async (t) => {
  const { api, host } = await scriptedServer(t, allowAllBut('patch pods/status', 'watch nodes'));
  assert.deepEqual(await missingPermissions(api, NEEDED_PERMISSIONS), ['watch nodes', 'patch pods/status']);
  await assert.rejects(preflight(api, NEEDED_PERMISSIONS), {
    name: 'ApiError',
    status: 403,
    message: `The credentials for ${host} lack permissions: grant them, in all namespaces unless one is named: watch nodes, patch pods/status.`,
  });
});

test('reports rejected credentials as such, not as missing permissions', async (t) => {
  const { api } = await scriptedServer(t, status(401, 'Unauthorized', 'Unauthorized'));
  await assert.rejects(preflight(api, NEEDED_PERMISSIONS), /the credentials were rejected/);
});

test('resolves with the refusal if the credentials may not ask for their permissions', async (t) => {
  const { api } = await scriptedServer(t, status(403, 'no selfsubjectaccessreviews for you', 'Forbidden'));
  assert.match(String(await preflight(api, NEEDED_PERMISSIONS)), /no selfsubjectaccessreviews for you/);
});

test('requires only permissions to read in observe mode', async (t) => {
  const changes = ['delete pods', 'patch pods/status', 'create events'];
  const { api } = await scriptedServer(t, allowAllBut(...changes));
  assert.equal(await preflight(api, OBSERVE_PERMISSIONS), undefined);
  assert.deepEqual(await missingPermissions(api, NEEDED_PERMISSIONS), changes);
  const lacking = await scriptedServer(t, allowAllBut('get pods'));
  await assert.rejects(preflight(lacking.api, OBSERVE_PERMISSIONS), /: get pods\.$/);
});

test('checks the permission to read node Leases in their namespace, explains its use, and does not require it', async (t) => {
  const { api, requests } = await scriptedServer(t, allowAllBut());
  assert.equal(await nodeLeaseHint(api), undefined);
  assert.deepEqual(JSON.parse(requests[0]?.body ?? '').spec.resourceAttributes, {
    verb: 'get',
    resource: 'leases',
    subresource: '',
    group: 'coordination.k8s.io',
    namespace: 'kube-node-lease',
  });
  const lacking = await scriptedServer(t, allowAllBut('get leases'));
  const hint = await nodeLeaseHint(lacking.api);
  assert.match(String(hint), /^Grant get leases in kube-node-lease \(cdk\/rbac\/evict\)/);
  await preflight(lacking.api, NEEDED_PERMISSIONS);
});

describe('permissions that the credentials lack', () => {
  const RIGHTS = [
    { verb: 'watch', resource: 'nodes' },
    { verb: 'list', resource: 'pods' },
  ] as const;
  const rule = (verbs: readonly string[], resources: readonly string[], more = {}) => ({
    verbs,
    apiGroups: [''],
    resources,
    ...more,
  });
  const FULL = [rule(['list', 'watch'], ['nodes', 'pods'])];
  /** Lists these rules, and grants watches besides, as a webhook does. */
  const listing =
    (...resourceRules: readonly object[]): Answer =>
    (response, request) =>
      (request.url.endsWith('/selfsubjectrulesreviews')
        ? json({ status: { resourceRules, incomplete: true } }, 201)
        : allowAllBut('list pods'))(response, request);

  test('are reviewed by one request if rules grant them', async (t) => {
    for (const rules of [FULL, [rule(['*'], ['*'], { apiGroups: ['*'] })]]) {
      const { api, requests } = await scriptedServer(t, listing(...rules));
      assert.deepEqual(await api.lacking(RIGHTS), []);
      assert.deepEqual(
        requests.map(({ url, body }) => [url, JSON.parse(body).spec]),
        [['/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { namespace: 'kube-node-lease' }]],
      );
    }
  });

  test('are those that no rule grants for all names, and that are denied one by one', async (t) => {
    for (const rules of [
      [],
      [rule(['get', 'list'], ['nodes'])],
      [rule(['watch'], ['pods'])],
      [rule(['list', 'watch'], ['nodes', 'pods'], { resourceNames: ['x'] })],
      [rule(['list', 'watch'], ['nodes', 'pods'], { apiGroups: ['metrics.k8s.io'] })],
    ]) {
      const { api, requests } = await scriptedServer(t, listing(...rules));
      assert.deepEqual(await api.lacking(RIGHTS), [RIGHTS[1]]);
      assert.equal(requests.length, 3);
    }
  });

  test('are reviewed one by one if the credentials may not list their rules', async (t) => {
    const denied = status(403, 'no rules for you', 'Forbidden');
    const { api } = await scriptedServer(t, (response, request) =>
      (request.url.endsWith('rulesreviews') ? denied : allowAllBut('list pods'))(response, request),
    );
    assert.deepEqual(await api.lacking(RIGHTS), [RIGHTS[1]]);
    const neither = await scriptedServer(t, denied);
    await assert.rejects(neither.api.lacking(RIGHTS), { status: 403 });
  });
});

test('pings an API server at a path that audit policies leave out', async (t) => {
  const { api, requests } = await scriptedServer(t, json({ major: '1', minor: '36' }));
  await api.ping();
  assert.deepEqual(
    requests.map(({ method, url }) => `${method} ${url}`),
    ['GET /version'],
  );
});

describe('a policy whose include names namespaces', () => {
  const policy = parsePolicyDocument(
    'mode: enforce\nmethod: evict\ninclude: [{namespaces: [a]}, {namespaces: [b, a], labels: {matchLabels: {x: y}}}]\n',
  );
  /** Returns a review by what is granted, as `verb resource` or `verb resource in namespace`. */
  const granted = (...rights: readonly string[]) => ({
    allowed: async (right: Permission) => rights.includes(permissionText(right)),
  });
  const FOLLOW = ['list nodes', 'watch nodes', 'list pods', 'watch pods', 'get nodes', 'get pods'];
  const inBoth = (right: string) => [`${right} in a`, `${right} in b`];
  const EVICT = ['delete pods', 'patch pods/status'];

  test('needs permissions to write in these namespaces only', async () => {
    const rights = [...FOLLOW, ...EVICT.flatMap(inBoth)];
    assert.deepEqual(await missingPermissions(granted(...rights), requiredUnder(policy)), []);
    assert.deepEqual(await missingPermissions(granted(...FOLLOW, ...EVICT), requiredUnder(policy)), []);
  });

  test('names each namespace where a permission is missing', async () => {
    const rights = [...FOLLOW, ...EVICT, ...inBoth('delete pods')].filter((right) => right !== 'delete pods');
    const lacking = granted(...rights.filter((right) => right !== 'delete pods in b'));
    assert.deepEqual(await missingPermissions(lacking, requiredUnder(policy)), ['delete pods in b']);
    const [needed] = permissionsNeededBy(policy);
    const evicting = granted('create pods/eviction in a');
    const missing = await missingPermissions(evicting, needed?.permissions ?? []);
    assert.deepEqual(missing, ['create pods/eviction in b']);
  });

  test('needs permissions to read in the whole cluster', async () => {
    const rights = granted(...FOLLOW.flatMap(inBoth));
    const needed = neededUnder(policy, OBSERVE_PERMISSIONS);
    assert.deepEqual(await missingPermissions(rights, needed), FOLLOW);
  });
});

test('needs permissions in all namespaces if an entry of include selects pods anywhere, or by a pattern', async () => {
  for (const entry of [
    '{labels: {matchLabels: {x: y}}}',
    '{namespaces: [team-*]}',
    '{namespaces: [b, team-*]}',
  ]) {
    const policy = parsePolicyDocument(`mode: enforce\ninclude: [{namespaces: [a]}, ${entry}]\n`);
    const missing = await missingPermissions({ allowed: async () => false }, requiredUnder(policy));
    assert.deepEqual(missing, NEEDED_PERMISSIONS.filter(isRequired).map(permissionText), entry);
  }
});

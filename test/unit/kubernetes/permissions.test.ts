import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  missingPermissions,
  NEEDED_PERMISSIONS,
  nodeLeaseHint,
  OBSERVE_PERMISSIONS,
  preflight,
} from '#shared/kubernetes/permissions.ts';
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
  await preflight(api);
  assert.equal(requests.length, NEEDED_PERMISSIONS.length);
  for (const { url, method, body } of requests) {
    assert.equal(`${method} ${url}`, 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews');
    assert.equal('namespace' in JSON.parse(body).spec.resourceAttributes, false);
  }
});

test('lists missing permissions in order', async (t) => {
  const { api, host } = await scriptedServer(t, allowAllBut('patch pods/status', 'watch nodes'));
  assert.deepEqual(await missingPermissions(api, NEEDED_PERMISSIONS), ['watch nodes', 'patch pods/status']);
  await assert.rejects(preflight(api), {
    name: 'ApiError',
    status: 403,
    message: `The credentials for ${host} lack permissions: grant them in all namespaces watch nodes, patch pods/status.`,
  });
});

test('reports rejected credentials as such, not as missing permissions', async (t) => {
  const { api } = await scriptedServer(t, status(401, 'Unauthorized', 'Unauthorized'));
  await assert.rejects(preflight(api), /the credentials were rejected/);
});

test('resolves with the refusal if the credentials may not ask for their permissions', async (t) => {
  const { api } = await scriptedServer(t, status(403, 'no selfsubjectaccessreviews for you', 'Forbidden'));
  assert.match(String(await preflight(api)), /no selfsubjectaccessreviews for you/);
});

test('requires only permissions to read in observe mode', async (t) => {
  const changes = ['delete pods', 'patch pods/status', 'create events'];
  const { api } = await scriptedServer(t, allowAllBut(...changes));
  assert.equal(await preflight(api, OBSERVE_PERMISSIONS), undefined);
  assert.deepEqual(await missingPermissions(api, NEEDED_PERMISSIONS), changes);
  const lacking = await scriptedServer(t, allowAllBut('get pods'));
  await assert.rejects(preflight(lacking.api, OBSERVE_PERMISSIONS), /all namespaces get pods\.$/);
});

test('checks the permission to read node Leases in their namespace and explains its use', async (t) => {
  const { api, requests } = await scriptedServer(t, allowAllBut());
  assert.equal(await nodeLeaseHint(api), undefined);
  assert.deepEqual(JSON.parse(requests[0]?.body ?? '').spec.resourceAttributes, {
    ...{ verb: 'get', resource: 'leases', subresource: '' },
    ...{ group: 'coordination.k8s.io', namespace: 'kube-node-lease' },
  });
  const lacking = await scriptedServer(t, allowAllBut('get leases'));
  assert.match(
    String(await nodeLeaseHint(lacking.api)),
    /^Grant get leases in kube-node-lease \(cdk\/rbac\/evict\)/,
  );
});

test('does not require the permission to read node Leases', async (t) => {
  const { api } = await scriptedServer(t, allowAllBut('get leases'));
  await preflight(api);
});

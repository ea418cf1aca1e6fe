import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  missingPermissions,
  NEEDED_PERMISSIONS,
  nodeLeaseHint,
  preflight,
} from '#shared/kubernetes/permissions.ts';
import { type Answer, json, scriptedServer, status } from './scripted-server.ts';

/** Allows all but these, each `verb resource` or `verb resource/subresource`. */
const allowAllBut =
  (...refused: string[]): Answer =>
  (response, request) => {
    const { verb, resource, subresource } = JSON.parse(request.body).spec.resourceAttributes;
    const right = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`;
    json({ status: { allowed: !refused.includes(right) } }, 201)(response, request);
  };

test('what is needed is asked for in all namespaces, and nothing missing passes', async (t) => {
  const { api, requests } = await scriptedServer(t, allowAllBut());
  await preflight(api);
  assert.equal(requests.length, NEEDED_PERMISSIONS.length);
  for (const { url, method, body } of requests) {
    assert.equal(`${method} ${url}`, 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews');
    assert.equal('namespace' in JSON.parse(body).spec.resourceAttributes, false);
  }
});

test('the missing rights are listed, in order', async (t) => {
  const { api, host } = await scriptedServer(t, allowAllBut('patch pods/status', 'watch nodes'));
  assert.deepEqual(await missingPermissions(api, NEEDED_PERMISSIONS), ['watch nodes', 'patch pods/status']);
  await assert.rejects(preflight(api), {
    name: 'ApiError',
    status: 403,
    message: `The credentials for ${host} lack rights: grant them in all namespaces watch nodes, patch pods/status.`,
  });
});

test('refused credentials are reported as such, not as missing rights', async (t) => {
  const { api } = await scriptedServer(t, status(401, 'Unauthorized', 'Unauthorized'));
  await assert.rejects(preflight(api), /the credentials were refused/);
});

test('the right to read the Leases of nodes is asked for where they are, and what it would do is said', async (t) => {
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

test('the right to read the Leases of nodes is none that a cluster is not managed without', async (t) => {
  const { api } = await scriptedServer(t, allowAllBut('get leases'));
  await preflight(api);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingRights, NEEDED_RIGHTS, preflight } from '#shared/kubernetes/rights.ts';
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
  assert.equal(requests.length, NEEDED_RIGHTS.length);
  for (const { url, method, body } of requests) {
    assert.equal(`${method} ${url}`, 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews');
    assert.equal('namespace' in JSON.parse(body).spec.resourceAttributes, false);
  }
});

test('the missing rights are listed, in order', async (t) => {
  const { api, host } = await scriptedServer(t, allowAllBut('patch pods/status', 'watch nodes'));
  assert.deepEqual(await missingRights(api, NEEDED_RIGHTS), ['watch nodes', 'patch pods/status']);
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

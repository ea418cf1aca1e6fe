import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { withAccessCheck } from '#functions/evict/access-check.ts';
import type { AccessQuestion } from '#shared/access/access-check.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { EVICT_PERMISSIONS } from '#shared/kubernetes/permissions.ts';
import type { Part, RegisteredCluster } from '#shared/state/registry.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type Answer, json, scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';

const QUESTION: AccessQuestion = {
  checkAccess: {
    name: clusterName('prod'),
    access: { kind: 'eks', clusterName: 'production', region: 'eu-west-1' },
  },
};

/** Returns evict with API servers that give this answer. */
async function evict(t: TestContext, answer: Answer) {
  const { connection, requests, host } = await scriptedServer(t, answer);
  const reached: RegisteredCluster[] = [];
  const handled: unknown[] = [];
  const parts: Part[] = [];
  const connect = (cluster: RegisteredCluster, part: Part) => {
    reached.push(cluster);
    parts.push(part);
    return connection;
  };
  const handle = async (event: { readonly Records: readonly string[] }) => {
    handled.push(event);
    return 'handled';
  };
  const ask = withAccessCheck(handle, { connect, clock: systemClock });
  return {
    ask: (event: Parameters<typeof ask>[0]) => ask(event, {}),
    requests,
    host,
    reached,
    parts,
    handled,
  };
}

/** An API server of version 1.34.2 that grants all verbs except these. */
const granting =
  (...refused: readonly string[]): Answer =>
  (response, request) => {
    if (request.url === '/version') return json({ gitVersion: 'v1.34.2' })(response, request);
    const { verb } = JSON.parse(request.body).spec.resourceAttributes;
    return json({ status: { allowed: !refused.includes(verb) } }, 201)(response, request);
  };

test('reports a working cluster and its version', async (t) => {
  const { ask, requests, reached, parts } = await evict(t, granting());
  assert.deepEqual(await ask(QUESTION), { works: true, version: 'v1.34.2' });
  assert.deepEqual(parts, ['evict']);
  assert.deepEqual(reached[0]?.access, QUESTION.checkAccess.access);
  const reviews = requests.filter(({ method }) => method === 'POST');
  assert.equal(reviews.length, EVICT_PERMISSIONS.length + 1);
});

test('reports a recommended permission that is missing', async (t) => {
  const { ask } = await evict(t, (response, request) => {
    if (request.url === '/version') return json({ gitVersion: 'v1.34.2' })(response, request);
    const { resource } = JSON.parse(request.body).spec.resourceAttributes;
    return json({ status: { allowed: resource !== 'leases' } }, 201)(response, request);
  });
  const answer = await ask(QUESTION);
  assert.match('hint' in Object(answer) ? Object(answer).hint : '', /^Grant get leases in kube-node-lease/);
});

test('reports required permissions that are missing', async (t) => {
  const { ask, host } = await evict(t, granting('delete'));
  assert.deepEqual(await ask(QUESTION), {
    works: false,
    reason: `The credentials for ${host} lack permissions: grant them in all namespaces delete pods.`,
  });
});

test('reports why a cluster is unreachable', async (t) => {
  const { ask } = await evict(t, (response) => response.destroy());
  const answer = await ask(QUESTION);
  assert.ok(typeof answer === 'object' && !answer.works);
  assert.match(answer.reason, /connection was reset/);
});

test('rejects an invalid question without connecting to a cluster', async (t) => {
  const { ask, reached } = await evict(t, granting());
  const answer = await ask({ checkAccess: { name: 'a#b' } } as unknown as AccessQuestion);
  assert.ok(typeof answer === 'object' && !answer.works);
  assert.match(answer.reason, /does not understand this request .*\. Deploy the release of this command\.$/);
  assert.deepEqual(reached, []);
});

test('handles messages as usual', async (t) => {
  const { ask, reached, handled } = await evict(t, granting());
  assert.equal(await ask({ Records: ['a message'] }), 'handled');
  assert.deepEqual([handled, reached], [[{ Records: ['a message'] }], []]);
});

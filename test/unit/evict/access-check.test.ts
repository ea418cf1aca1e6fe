import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { withAccessCheck } from '#functions/evict/access-check.ts';
import type { AccessQuestion } from '#shared/access/access-check.ts';
import type { ClusterGrants } from '#shared/access/cluster-grants.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Part, RegisteredCluster } from '#shared/state/registry.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type Answer, json, scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';

const QUESTION: AccessQuestion = {
  checkAccess: {
    name: clusterName('prod'),
    access: { kind: 'eks', clusterName: 'production', region: 'eu-west-1' },
    namespaces: [],
  },
};

const GRANTS: ClusterGrants = {
  both: ['arn:aws:secretsmanager:eu-west-1:111122223333:secret:taintward/*'],
  relay: ['arn:aws:secretsmanager:eu-west-1:111122223333:secret:taintward-relay/*'],
  evict: ['arn:aws:secretsmanager:eu-west-1:111122223333:secret:taintward-evict/*'],
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
  const ask = withAccessCheck(handle, { connect, clock: systemClock, grants: GRANTS });
  return {
    ask: (event: Parameters<typeof ask>[0]) => ask(event, {}),
    requests,
    host,
    reached,
    parts,
    handled,
  };
}

const UIDS = { system: 'system-1', nodes: [] };

/** An API server that grants all permissions except those on these resources, or with these verbs. */
const granting =
  (...refused: readonly string[]): Answer =>
  (response, request) => {
    if (request.method === 'GET') return json({ metadata: { uid: 'system-1' } })(response, request);
    const { verb, resource, subresource } = JSON.parse(request.body).spec.resourceAttributes;
    const names = [verb, [resource, ...(subresource ? [subresource] : [])].join('/')];
    return json({ status: { allowed: !names.some((name) => refused.includes(name)) } }, 201)(
      response,
      request,
    );
  };

test('reports a working cluster, reached as evict', async (t) => {
  const { ask, requests, reached, parts } = await evict(t, granting());
  assert.deepEqual(await ask(QUESTION), { reached: true, missing: [], uids: UIDS });
  assert.deepEqual(parts, ['evict']);
  assert.deepEqual(reached[0]?.access, QUESTION.checkAccess.access);
  assert.deepEqual(
    requests
      .filter(({ method }) => method !== 'POST')
      .map(({ method, url }) => `${method} ${url}`)
      .sort(),
    ['GET /api/v1/namespaces/kube-system', 'GET /api/v1/nodes?limit=10'],
  );
});

test('names each missing permission by itself, those of policies and Leases included', async (t) => {
  for (const [refused, missing] of [
    ['delete', ['delete pods']],
    ['pods/status', ['patch pods/status']],
    ['events', ['create events']],
    ['pods/eviction', ['create pods/eviction']],
    ['replicasets', ['get replicasets']],
    ['leases', ['get leases in kube-node-lease']],
    ['watch', ['watch nodes', 'watch pods']],
  ] as const) {
    const { ask } = await evict(t, granting(refused));
    assert.deepEqual(await ask(QUESTION), { reached: true, missing, uids: UIDS });
  }
});

test('names each permission that is missing in a namespace, also if it is granted elsewhere', async (t) => {
  const { ask } = await evict(t, (response, request) => {
    const { namespace, verb } = JSON.parse(request.body || '{}').spec?.resourceAttributes ?? {};
    const allowed = verb !== 'delete' || namespace === 'team-a';
    granting(...(allowed ? [] : ['delete']))(response, request);
  });
  const question = { checkAccess: { ...QUESTION.checkAccess, namespaces: ['team-a', 'team-b'] } };
  const missing = ['delete pods', 'delete pods in team-b'];
  assert.deepEqual(await ask(question), { reached: true, missing, uids: UIDS });
});

test('names the pattern and the fix for a secret that IAM denies to either part, without connecting', async (t) => {
  const arn = (name: string) => `arn:aws:secretsmanager:eu-west-1:111122223333:secret:${name}`;
  const { ask, reached } = await evict(t, granting());
  const answer = (relay: string, evictor: string) =>
    ask({
      checkAccess: {
        name: clusterName('prod'),
        access: { kind: 'kubeconfig-secret', secretArn: { relay: arn(relay), evict: arn(evictor) } },
        namespaces: [],
      },
    });
  assert.deepEqual(await answer('taintward-relay/prod-AbCdEf', 'mycorp/try-AbCdEf'), {
    reached: false,
    reason: `IAM does not let evict use ${arn('mycorp/try-AbCdEf')}, which matches none of ${arn('taintward/*')}, ${arn('taintward-evict/*')}. Use a secret with a name that matches, or add the name to taintward:kubeconfigSecrets and deploy the stack again.`,
  });
  const ofRelay = await answer('taintward-evict/prod-AbCdEf', 'taintward-evict/prod-AbCdEf');
  assert.match('reason' in Object(ofRelay) ? Object(ofRelay).reason : '', /^IAM does not let relays use /);
  assert.deepEqual(reached, []);
  assert.deepEqual(await answer('taintward-relay/prod-AbCdEf', 'taintward-evict/prod-AbCdEf'), {
    reached: true,
    missing: [],
    uids: UIDS,
  });
});

test('reports why a cluster is unreachable', async (t) => {
  const { ask } = await evict(t, (response) => response.destroy());
  const answer = await ask(QUESTION);
  assert.ok(typeof answer === 'object' && 'reached' in answer && !answer.reached);
  assert.match(answer.reason, /connection was reset/);
});

test('rejects an invalid question without connecting to a cluster', async (t) => {
  const { ask, reached } = await evict(t, granting());
  const answer = await ask({ checkAccess: { name: 'a#b' } } as unknown as AccessQuestion);
  assert.ok(typeof answer === 'object' && 'reached' in answer && !answer.reached);
  assert.match(answer.reason, /does not understand this request .*\. Deploy the release of this command\.$/);
  assert.deepEqual(reached, []);
});

test('handles messages as usual', async (t) => {
  const { ask, reached, handled } = await evict(t, granting());
  assert.equal(await ask({ Records: ['a message'] }), 'handled');
  assert.deepEqual([handled, reached], [[{ Records: ['a message'] }], []]);
});

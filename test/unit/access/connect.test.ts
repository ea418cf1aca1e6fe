import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Connect, connector } from '#shared/access/connect.ts';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { Part, RegisteredCluster } from '#shared/state/registry.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { scriptedAws } from './scripted-aws.ts';

const clock = new DrivenClock(0);
const registered = (access: RegisteredCluster['access']): RegisteredCluster => ({
  name: clusterName('prod'),
  access,
  addedAt: 0,
});

async function complaint(
  connect: Connect,
  access: RegisteredCluster['access'],
  part: Part = 'evict',
): Promise<string> {
  const api = new RestApi(connect(registered(access), part));
  try {
    await api.getNode(nodeName('n1'));
    return '';
  } catch (error) {
    return (error as Error).message;
  } finally {
    api.close();
  }
}

test('calls the AWS service of each access kind, and only at the first request', async (t) => {
  const { aws, operations } = await scriptedAws(t, {});
  const connect = connector({ aws, clock });
  connect(registered({ kind: 'eks', clusterName: 'prod', region: 'eu-west-1' }), 'evict');
  assert.deepEqual(operations(), []);
  await complaint(connect, { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' });
  await complaint(connect, {
    kind: 'kubeconfig-secret',
    secretArn: 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod-AbCdEf',
  });
  assert.deepEqual(operations(), ['DescribeCluster', 'GetSecretValue']);
});

test('rejects entering a cluster with an agent and names --context as the alternative', async (t) => {
  const { aws, operations } = await scriptedAws(t, {});
  const connect = connector({ aws, clock });
  for (const part of ['relay', 'evict'] as const) {
    assert.match(
      await complaint(connect, { kind: 'agent', agent: 'edge-1' }, part),
      /agent edge-1 runs in it, and it cannot be reached from outside: use your own permissions, with --context/,
    );
  }
  assert.deepEqual(operations(), []);
});

test('connects each part with its own role and secret', async (t) => {
  const { aws, calls } = await scriptedAws(t, {});
  const connect = connector({ aws, clock });
  const role = (name: string) => ({
    arn: `arn:aws:iam::210987654321:role/taintward-${name}`,
    externalId: 'x',
  });
  const secret = (name: string) =>
    `arn:aws:secretsmanager:eu-west-1:123456789012:secret:taintward-${name}/prod`;
  for (const part of ['relay', 'evict'] as const) {
    await complaint(
      connect,
      {
        kind: 'eks',
        clusterName: 'prod',
        region: 'eu-west-1',
        role: { relay: role('relay'), evict: role('evict') },
      },
      part,
    );
    await complaint(
      connect,
      { kind: 'kubeconfig-secret', secretArn: { relay: secret('relay'), evict: secret('evict') } },
      part,
    );
  }
  const requests = calls.map(({ operation, input }) => {
    const [, name] = /taintward-(relay|evict)/.exec(decodeURIComponent(input)) ?? [];
    return `${operation} ${name}`;
  });
  assert.deepEqual(requests, [
    'AssumeRole relay',
    'GetSecretValue relay',
    'AssumeRole evict',
    'GetSecretValue evict',
  ]);
});

test('rejects a kubeconfig context in a process without a kubeconfig file', async (t) => {
  const { aws } = await scriptedAws(t, {});
  assert.match(
    await complaint(connector({ aws, clock }), { kind: 'local-context', context: 'kind' }),
    /^Cannot get nodes n1 at cluster prod: it is registered by context "kind" of a kubeconfig file, which this process does not have; [^.]*\.$/,
  );
});

test('reads the kubeconfig file at the first call and reports its error', async (t) => {
  const { aws } = await scriptedAws(t, {});
  const connect = connector({ aws, clock, localContext: localContextConnection });
  assert.equal(
    await complaint(connect, { kind: 'local-context', context: 'kind', kubeconfig: '/nowhere/config' }),
    'Cannot get nodes n1 at context "kind": The kubeconfig /nowhere/config cannot be read (ENOENT): check its path and permissions.',
  );
});

test('rejects only the requests of the cluster whose registration is unreadable', async (t) => {
  const { aws } = await scriptedAws(t, {});
  assert.equal(
    await complaint(connector({ aws, clock }), { kind: 'unreadable', reason: 'nobody can read it' }),
    'Cannot get nodes n1 at cluster prod: nobody can read it.',
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EksWay } from '#shared/access/aws-clients.ts';
import { eksConnection } from '#shared/access/eks-connection.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { type Answer, scriptedAws } from './scripted-aws.ts';

const START = Date.UTC(2026, 10, 21, 12);
const MINUTE_MS = 60_000;
const OWN: EksWay = { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' };
const ROLE_ARN = 'arn:aws:iam::210987654321:role/taintward-access';
const ASSUMING: EksWay = { ...OWN, role: { arn: ROLE_ARN, externalId: 'sesame' } };

const described = (endpoint: string): Answer => ({
  result: {
    cluster: {
      name: 'prod',
      status: 'ACTIVE',
      endpoint,
      certificateAuthority: { data: Buffer.from('the CA').toString('base64') },
    },
  },
});
const ENDPOINT = 'https://abcdef.gr7.eu-west-1.eks.amazonaws.com';

/** Returns an answer of STS to `AssumeRole` with credentials that expire at `expiresAt`. */
const assumed = (accessKeyId: string, expiresAt: number): Answer => ({
  result: `<Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
    <SessionToken>t</SessionToken><Expiration>${new Date(expiresAt).toISOString()}</Expiration></Credentials>`,
});

const signerOf = (headers: Readonly<Record<string, unknown>>): string | undefined => {
  const [, encoded = ''] = `${headers['Authorization']}`.split('.');
  const url = new URL(Buffer.from(encoded, 'base64url').toString());
  return url.searchParams.get('X-Amz-Credential')?.split('/')[0];
};

/** Returns the error of a call to the cluster's API server that can't connect. */
async function complaint(connection: ReturnType<typeof eksConnection>): Promise<string> {
  const api = new RestApi(connection);
  try {
    await api.getNode(nodeName('n1'));
    assert.fail('the call succeeded');
  } catch (error) {
    assert.ok(error instanceof Error);
    assert.doesNotMatch(error.message, /sesame|k8s-aws-v1/);
    return error.message;
  } finally {
    api.close();
  }
}

test("uses the endpoint and CA that EKS describes and signs the token as the process's own identity", async (t) => {
  const { aws, calls } = await scriptedAws(t, { DescribeCluster: described(ENDPOINT) });
  const connection = eksConnection(OWN, aws, new DrivenClock(START));
  assert.equal(connection.host, 'EKS cluster prod in eu-west-1');
  const { server, ca, headers, ...rest } = await connection.requestOptions();
  assert.equal(server.href, `${ENDPOINT}/`);
  assert.equal(ca, 'the CA');
  assert.equal(signerOf(headers), 'OWN');
  assert.deepEqual(rest, {});
  assert.deepEqual(calls, [
    { operation: 'DescribeCluster', input: '', region: 'eu-west-1', accessKeyId: 'OWN' },
  ]);
});

test("assumes the role with its external ID in the cluster's region for the description and the token", async (t) => {
  const { aws, calls } = await scriptedAws(t, {
    AssumeRole: assumed('ROLE', Date.now() + 60 * MINUTE_MS),
    DescribeCluster: described(ENDPOINT),
  });
  const { headers } = await eksConnection(ASSUMING, aws, new DrivenClock(START)).requestOptions();
  assert.equal(signerOf(headers), 'ROLE');
  assert.deepEqual(
    calls.map(({ operation, region, accessKeyId }) => [operation, region, accessKeyId]),
    [
      ['AssumeRole', 'eu-west-1', 'OWN'],
      ['DescribeCluster', 'eu-west-1', 'ROLE'],
    ],
  );
  const form = new URLSearchParams(calls[0]?.input);
  assert.equal(form.get('RoleArn'), ROLE_ARN);
  assert.equal(form.get('ExternalId'), 'sesame');
  assert.equal(form.get('RoleSessionName'), 'taintward-prod');
});

test('caches endpoint and token for ten minutes', async (t) => {
  const { aws, operations } = await scriptedAws(t, { DescribeCluster: described(ENDPOINT) });
  const clock = new DrivenClock(START);
  const connection = eksConnection(OWN, aws, clock);
  const first = await connection.requestOptions();
  await clock.advanceTo(START + 10 * MINUTE_MS - 1);
  assert.deepEqual(await connection.requestOptions(), first);
  assert.equal(operations().length, 1);
  await clock.advanceTo(START + 10 * MINUTE_MS);
  assert.notDeepEqual((await connection.requestOptions()).headers, first.headers);
  assert.equal(operations().length, 2);
});

test('finds a recreated cluster of the same name at its new endpoint', async (t) => {
  let endpoint = ENDPOINT;
  const { aws } = await scriptedAws(t, { DescribeCluster: () => described(endpoint) });
  const clock = new DrivenClock(START);
  const connection = eksConnection(OWN, aws, clock);
  await connection.requestOptions();
  endpoint = 'https://fedcba.gr7.eu-west-1.eks.amazonaws.com';
  await clock.advanceTo(START + 10 * MINUTE_MS);
  assert.equal((await connection.requestOptions()).server.href, `${endpoint}/`);
});

test("uses the cached endpoint with new tokens while EKS doesn't answer", async (t) => {
  let answer = described(ENDPOINT);
  const { aws } = await scriptedAws(t, { DescribeCluster: () => answer });
  const clock = new DrivenClock(START);
  const connection = eksConnection(OWN, aws, clock);
  const first = await connection.requestOptions();
  answer = { error: 'AccessDeniedException' };
  await clock.advanceTo(START + 60 * MINUTE_MS);
  const later = await connection.requestOptions();
  assert.equal(later.server.href, first.server.href);
  assert.notDeepEqual(later.headers, first.headers);
});

test('signs a new token after the API server rejected the current one', async (t) => {
  const { aws } = await scriptedAws(t, { DescribeCluster: described(ENDPOINT) });
  const clock = new DrivenClock(START);
  const connection = eksConnection(OWN, aws, clock);
  const first = await connection.requestOptions();
  await clock.advanceTo(START + MINUTE_MS);
  connection.forgetCredentials?.();
  assert.notDeepEqual((await connection.requestOptions()).headers, first.headers);
});

test('expires a token with the credentials that signed it', async (t) => {
  const expiresAt = Date.now() + 8 * MINUTE_MS;
  const { aws } = await scriptedAws(t, {
    AssumeRole: assumed('ROLE', expiresAt),
    DescribeCluster: described(ENDPOINT),
  });
  const clock = new DrivenClock(expiresAt - 8 * MINUTE_MS);
  const connection = eksConnection(ASSUMING, aws, clock);
  const first = await connection.requestOptions();
  await clock.advanceTo(Math.floor(expiresAt / 1000) * 1000 - 1000);
  assert.deepEqual(await connection.requestOptions(), first);
  await clock.advanceTo(expiresAt);
  assert.notDeepEqual(await connection.requestOptions(), first);
});

test('serves no token beyond the life of its credentials when a new one cannot be signed', async (t) => {
  // The SDK keeps credentials that live longer than five minutes.
  const expiresAt = Date.now() + 4 * MINUTE_MS;
  let answer = assumed('ROLE', expiresAt);
  const { aws } = await scriptedAws(t, {
    AssumeRole: () => answer,
    DescribeCluster: described(ENDPOINT),
  });
  const clock = new DrivenClock(expiresAt - 4 * MINUTE_MS);
  const connection = eksConnection(ASSUMING, aws, clock);
  await connection.requestOptions();
  answer = { error: 'AccessDenied' };
  await clock.advanceTo(expiresAt);
  await assert.rejects(connection.requestOptions(), /sts:AssumeRole/);
});

test('reports the cause of a failed connection in one sentence', async (t) => {
  const cases: [Answer, RegExp][] = [
    [
      { error: 'AccessDeniedException', message: 'User: arn:x is not authorized' },
      /^Cannot get nodes n1 at EKS cluster prod in eu-west-1: AWS denied eks:DescribeCluster \(User: arn:x is not authorized\); grant it\.$/,
    ],
    [
      { error: 'ResourceNotFoundException', message: 'No cluster found for name: prod.' },
      /: eks:DescribeCluster found nothing \(No cluster found for name: prod\); check its name, region and account\.$/,
    ],
    [
      { result: { cluster: { name: 'prod', status: 'CREATING' } } },
      /: it has no endpoint and CA certificate \(its status is CREATING\); wait until it is ACTIVE\.$/,
    ],
  ];
  for (const [answer, expected] of cases) {
    const { aws } = await scriptedAws(t, { DescribeCluster: answer });
    assert.match(await complaint(eksConnection(OWN, aws, new DrivenClock(START))), expected);
  }
});

test("names a role that can't be assumed", async (t) => {
  const { aws } = await scriptedAws(t, {
    AssumeRole: { error: 'AccessDenied', message: 'is not authorized' },
  });
  assert.equal(
    await complaint(eksConnection(ASSUMING, aws, new DrivenClock(START))),
    `Cannot get nodes n1 at EKS cluster prod in eu-west-1: AWS denied sts:AssumeRole on ${ROLE_ARN} (is not authorized); grant it.`,
  );
});

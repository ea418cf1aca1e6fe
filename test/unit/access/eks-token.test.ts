import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import { EKSClient } from '@aws-sdk/client-eks';
import { eksToken } from '#shared/access/eks-connection.ts';

const NOW = Date.UTC(2026, 10, 21, 12, 34, 56);
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';

const client = (region: string, fields: { sessionToken?: string; expiration?: Date } = {}) =>
  new EKSClient({ region, credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET, ...fields } });

const urlOf = (token: string): URL => new URL(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

/**
 * Returns the signature that STS computes for a request with these query parameters and the two signed headers. The
 * computation follows AWS's description of Signature Version 4, not the SDK.
 */
function signatureOf(url: URL, clusterName: string): string {
  const rfc3986 = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${rfc3986(name)}=${rfc3986(value)}`)
    .sort()
    .join('&');
  const headers = `host:${url.host}\nx-k8s-aws-id:${clusterName}\n`;
  const canonical = ['GET', '/', query, headers, 'host;x-k8s-aws-id', sha256('')].join('\n');
  const [, date = '', region = '', service = ''] = (url.searchParams.get('X-Amz-Credential') ?? '').split(
    '/',
  );
  const scope = `${date}/${region}/${service}/aws4_request`;
  const time = url.searchParams.get('X-Amz-Date');
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const key = [region, service, 'aws4_request'].reduce(hmac, hmac(`AWS4${SECRET}`, date));
  return hmac(key, toSign).toString('hex');
}

test('returns a presigned GetCallerIdentity request of the regional STS with the cluster in a signed header', async () => {
  const { token, credentialsExpireAt } = await eksToken(client('eu-west-1'), 'prod', NOW);
  assert.match(token, /^k8s-aws-v1\.[A-Za-z0-9_-]+$/);
  assert.equal(credentialsExpireAt, undefined);
  const url = urlOf(token);
  assert.equal(url.origin + url.pathname, 'https://sts.eu-west-1.amazonaws.com/');
  const { 'X-Amz-Signature': signature = '', ...query } = Object.fromEntries(url.searchParams);
  assert.deepEqual(query, {
    Action: 'GetCallerIdentity',
    Version: '2011-06-15',
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': 'AKIDEXAMPLE/20261121/eu-west-1/sts/aws4_request',
    'X-Amz-Date': '20261121T123456Z',
    'X-Amz-Expires': '60',
    'X-Amz-SignedHeaders': 'host;x-k8s-aws-id',
  });
  assert.equal(signature, signatureOf(url, 'prod'));
});

test('signs with the session token of a temporary identity and returns when its credentials expire', async () => {
  const expiration = new Date(NOW + 60_000);
  const sessionToken = 'IQoJb3JpZ2luX2VjE/+==';
  const { token, credentialsExpireAt } = await eksToken(
    client('us-east-1', { sessionToken, expiration }),
    'prod',
    NOW,
  );
  const url = urlOf(token);
  assert.equal(url.searchParams.get('X-Amz-Security-Token'), sessionToken);
  assert.equal(url.searchParams.get('X-Amz-Signature'), signatureOf(url, 'prod'));
  assert.equal(credentialsExpireAt, expiration.getTime());
});

for (const [region, host] of [
  ['cn-north-1', 'sts.cn-north-1.amazonaws.com.cn'],
  ['us-gov-west-1', 'sts.us-gov-west-1.amazonaws.com'],
] as const) {
  test(`uses the STS endpoint of the partition in ${region}`, async () => {
    assert.equal(urlOf((await eksToken(client(region), 'prod', NOW)).token).host, host);
  });
}

test('signs for the real STS even with a custom AWS endpoint', async () => {
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET };
  const local = new EKSClient({ region: 'eu-west-1', endpoint: 'http://127.0.0.1:1', credentials });
  assert.equal(urlOf((await eksToken(local, 'prod', NOW)).token).host, 'sts.eu-west-1.amazonaws.com');
});

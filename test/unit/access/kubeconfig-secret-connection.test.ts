import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kubeconfigSecretConnection, type SecretWay } from '#shared/access/kubeconfig-secret-connection.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { type Answer, scriptedAws } from './scripted-aws.ts';

const START = Date.UTC(2026, 10, 21, 12);
const MINUTE_MS = 60_000;
const ARN = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:taintward/prod-AbCdEf';
const ACCESS: SecretWay = { kind: 'kubeconfig-secret', secretArn: ARN };

/** A secret that holds a kubeconfig with one context per token. The first context is the current one. */
const kubeconfig = (...tokens: string[]): Answer => ({
  result: {
    SecretString: JSON.stringify({
      'current-context': tokens[0],
      clusters: tokens.map((name) => ({ name, cluster: { server: `https://${name}.example:6443` } })),
      users: tokens.map((name) => ({ name, user: { token: name } })),
      contexts: tokens.map((name) => ({ name, context: { cluster: name, user: name } })),
    }),
  },
});

test('reads the secret in its own region and connects by its current context', async (t) => {
  const { aws, calls } = await scriptedAws(t, { GetSecretValue: kubeconfig('a', 'b') });
  const connection = kubeconfigSecretConnection(ACCESS, aws, new DrivenClock(START));
  assert.equal(connection.host, `the server in ${ARN}`);
  const { server, headers } = await connection.requestOptions();
  assert.equal(server.href, 'https://a.example:6443/');
  assert.deepEqual(headers, { Authorization: 'Bearer a' });
  assert.equal(connection.host, 'a.example:6443');
  assert.deepEqual(calls, [
    {
      operation: 'GetSecretValue',
      input: JSON.stringify({ SecretId: ARN }),
      region: 'eu-west-1',
      accessKeyId: 'OWN',
    },
  ]);
});

test('uses the context that the registration names', async (t) => {
  const { aws } = await scriptedAws(t, { GetSecretValue: kubeconfig('a', 'b') });
  const connection = kubeconfigSecretConnection({ ...ACCESS, context: 'b' }, aws, new DrivenClock(START));
  assert.deepEqual((await connection.requestOptions()).headers, { Authorization: 'Bearer b' });
});

test('rereads the secret after five minutes, or immediately after the server rejected its credentials', async (t) => {
  let token = 'first';
  const { aws, calls } = await scriptedAws(t, { GetSecretValue: () => kubeconfig(token) });
  const clock = new DrivenClock(START);
  const connection = kubeconfigSecretConnection(ACCESS, aws, clock);
  const given = async () => (await connection.requestOptions()).headers['Authorization'];
  await given();
  token = 'second';
  await clock.advanceTo(START + 5 * MINUTE_MS - 1);
  assert.equal(await given(), 'Bearer first');
  assert.equal(calls.length, 1);
  await clock.advanceTo(START + 5 * MINUTE_MS);
  assert.equal(await given(), 'Bearer second');
  token = 'third';
  await clock.advanceTo(START + 6 * MINUTE_MS);
  connection.forgetCredentials?.();
  assert.equal(await given(), 'Bearer third');
});

test("keeps the last content of a secret that can't be read again", async (t) => {
  let answer = kubeconfig('a');
  const { aws } = await scriptedAws(t, { GetSecretValue: () => answer });
  const clock = new DrivenClock(START);
  const connection = kubeconfigSecretConnection(ACCESS, aws, clock);
  const first = await connection.requestOptions();
  answer = { error: 'AccessDeniedException' };
  await clock.advanceTo(START + 60 * MINUTE_MS);
  assert.deepEqual(await connection.requestOptions(), first);
});

test('reports a faulty secret without its content', async (t) => {
  const cases: [Answer, RegExp][] = [
    [
      { error: 'AccessDeniedException' },
      /^AWS denied secretsmanager:GetSecretValue on arn:\S+ \(no\); grant it$/,
    ],
    [{ error: 'ResourceNotFoundException' }, /GetSecretValue on arn:\S+ found nothing/],
    [{ result: { SecretBinary: 'c2VzYW1l' } }, /holds no text; store the kubeconfig as its SecretString$/],
    [{ result: { SecretString: 'sesame: [' } }, /^The kubeconfig in arn:\S+ is not YAML \(line 1\)/],
    [{ result: { SecretString: 'clusters: sesame' } }, /^The kubeconfig in arn:\S+ is wrong at clusters/],
    [{ result: { SecretString: '{}' } }, /^The kubeconfig in arn:\S+ has no current context/],
  ];
  for (const [answer, expected] of cases) {
    const { aws } = await scriptedAws(t, { GetSecretValue: answer });
    const connection = kubeconfigSecretConnection(ACCESS, aws, new DrivenClock(START));
    await assert.rejects(connection.requestOptions(), (error: unknown) => {
      assert.ok(error instanceof Error);
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /sesame/);
      return true;
    });
  }
});

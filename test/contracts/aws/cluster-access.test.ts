import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  SecretsManagerClient,
  UpdateSecretCommand,
} from '@aws-sdk/client-secrets-manager';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { eksConnection } from '#shared/access/eks-connection.ts';
import { kubeconfigSecretConnection } from '#shared/access/kubeconfig-secret-connection.ts';
import { type AwsEndpoint, awsClientConfig, awsEndpoint } from '#test/aws/endpoint.ts';
import { skippedOnLocalStack } from '#test/aws/localstack.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { NOW } from '../partition-builders.ts';

const MINUTE_MS = 60_000;

const kubeconfig = (token: string): string =>
  JSON.stringify({
    'current-context': 'prod',
    clusters: [{ name: 'prod', cluster: { server: 'https://prod.example' } }],
    users: [{ name: 'prod', user: { token } }],
    contexts: [{ name: 'prod', context: { cluster: 'prod', user: 'prod' } }],
  });

describe('access to clusters through the AWS APIs', () => {
  let endpoint: AwsEndpoint;
  let aws: AwsClients;
  before(async () => {
    endpoint = await awsEndpoint();
    const { url } = endpoint;
    aws = new AwsClients({ endpoint: url, credentials: awsClientConfig(url).credentials });
  });
  after(() => endpoint.close());

  test('reads a kubeconfig in Secrets Manager, and reads it again after a rotation', async () => {
    const client = new SecretsManagerClient(awsClientConfig(endpoint.url));
    const { ARN: secretArn = '' } = await client.send(
      new CreateSecretCommand({ Name: `taintward/${process.pid}`, SecretString: kubeconfig('first') }),
    );
    try {
      const clock = new DrivenClock(NOW);
      const connection = kubeconfigSecretConnection({ kind: 'kubeconfig-secret', secretArn }, aws, clock);
      const { server, headers } = await connection.requestOptions();
      assert.deepEqual([server.host, headers], ['prod.example', { Authorization: 'Bearer first' }]);
      await client.send(new UpdateSecretCommand({ SecretId: secretArn, SecretString: kubeconfig('second') }));
      await clock.advanceTo(NOW + 5 * MINUTE_MS);
      assert.deepEqual((await connection.requestOptions()).headers, { Authorization: 'Bearer second' });
    } finally {
      await client.send(new DeleteSecretCommand({ SecretId: secretArn, ForceDeleteWithoutRecovery: true }));
      client.destroy();
    }
  });

  test('reports a missing secret', async () => {
    const secretArn = 'arn:aws:secretsmanager:us-east-1:000000000000:secret:nobody-AbCdEf';
    const access = { kind: 'kubeconfig-secret', secretArn } as const;
    const connection = kubeconfigSecretConnection(access, aws, new DrivenClock(NOW));
    await assert.rejects(connection.requestOptions(), /GetSecretValue on arn:\S+ found nothing/);
  });

  test('assumes a role before calling EKS, which finds no such cluster', async (t) => {
    if (await skippedOnLocalStack(t, endpoint.url, 'eks')) return;
    const role = { arn: 'arn:aws:iam::000000000000:role/taintward-access', externalId: 'x' };
    const access = { kind: 'eks', clusterName: 'nobody', region: 'us-east-1', role } as const;
    const connection = eksConnection(access, aws, new DrivenClock(NOW));
    await assert.rejects(connection.requestOptions(), /^AccessError: eks:DescribeCluster found nothing/);
  });
});

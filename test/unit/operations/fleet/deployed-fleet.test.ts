import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { awsAccessError } from '#shared/access/access-error.ts';
import type { Connect } from '#shared/access/connect.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { deployedFleet } from '#shared/operations/fleet/deployed-fleet.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { AwsOverHttp } from '#test/world/aws-over-http.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const PROD = clusterName('prod');
const SECRETS = { relay: 'arn:relay', evict: 'arn:evict' };

/** The fleet of a table with the registered cluster `prod`, and the parts whose connections it made. */
async function deployed(t: TestContext) {
  const before = { ...process.env };
  const aws = await AwsOverHttp.start({ secrets: () => '' });
  Object.assign(process.env, aws.environment('anna', 'us-east-1'));
  t.after(async () => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
    await aws.close();
  });
  const client = new DynamoDBClient();
  await new DynamoDbClusterRegistry(new DynamoDbTable({ client, tableName: 'taintward' })).add({
    name: PROD,
    access: { kind: 'kubeconfig-secret', secretArn: SECRETS },
    addedAt: NOW,
  });
  const connected: unknown[] = [];
  const connect: Connect = (cluster, part) => {
    connected.push([cluster.name, cluster.access, part]);
    const error = awsAccessError(
      Object.assign(new Error('no'), { name: 'AccessDenied' }),
      'sts:AssumeRole on R',
    );
    return { host: 'prod.example', requestOptions: () => Promise.reject(error) };
  };
  const fleet = deployedFleet('taintward', { clock: new DrivenClock(NOW), connect });
  t.after(() => {
    fleet.close();
    client.destroy();
  });
  return { fleet, connected };
}

test("reads a cluster by the relay's access, because that of evict may not list", async (t) => {
  const { fleet, connected } = await deployed(t);
  const cluster = await fleet.cluster(PROD);
  t.after(() => cluster.close());
  assert.deepEqual(connected, [[PROD, { kind: 'kubeconfig-secret', secretArn: SECRETS }, 'relay']]);
  assert.equal(cluster.objects.host, 'prod.example');
  assert.match(
    cluster.objects.connection.whenForbidden ?? '',
    /^these are the credentials of the service; to use your own, specify --context NAME$/,
  );
  await assert.rejects(cluster.objects.connection.requestOptions(), {
    name: 'AccessError',
    message:
      'AWS denied sts:AssumeRole on R (no); these are the credentials of the service; to use your own, specify --context NAME',
  });
});

test('connects with no cluster that is not registered', async (t) => {
  const { fleet, connected } = await deployed(t);
  await assert.rejects(fleet.cluster(clusterName('stage')), {
    name: 'FleetError',
    message: 'Cluster "stage" not found. Run "taintward clusters list".',
  });
  assert.deepEqual(connected, []);
});

test("names the caller's AWS identity as the actor", async (t) => {
  const { fleet } = await deployed(t);
  assert.equal((await fleet.operator()).actor, 'arn:aws:sts::123456789012:assumed-role/anna/1');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { EnvironmentError } from '#shared/aws/environment.ts';
import { openAwsRelay } from '#shared/aws/relay/aws-relay.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { until } from '#test/cluster/rig/until.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { AwsOverHttp } from '#test/world/aws-over-http.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

const [C1, C2] = [clusterName('c1'), clusterName('c2')];

test('a relay on AWS sends nodes and pods by their queues, records its identity, and reports two names of one cluster', async (t) => {
  const aws = await AwsOverHttp.start({ secrets: assert.fail });
  Object.assign(process.env, aws.environment('me', 'us-east-1'));
  const table = new DynamoDbTable({ client: new DynamoDBClient(), tableName: 'taintward' });
  const queue = (name: string) => `${process.env['AWS_ENDPOINT_URL']}/000000000000/${name}`;
  const queues = { NODE_DELTAS_URL: queue('nodes.fifo'), POD_DELTAS_URL: queue('pods.fifo') };
  const deps = {
    table,
    sqs: new SQSClient(),
    registry: { list: async () => ({ clusters: [{ name: C1 }, { name: C2 }], strays: [] }) as never },
    nodeBudget: Infinity,
    metrics: relayMetrics(new Registry()),
    log: recordingLog(),
  };
  await assert.rejects(openAwsRelay({ ...queues, ENDPOINT: 'localstack' }, deps), EnvironmentError);
  const { relay, stop } = await openAwsRelay(queues, deps);
  t.after(async () => {
    await stop();
    await aws.close();
  });
  const cluster = new FakeCluster(systemClock);
  cluster.putNode({ ...liveNode('n1', 'maintenance'), taintsStamp: 'anna@1' });
  const api = Object.assign(cluster, { host: 'c1', allowed: async () => true });
  relay.add(C1, api);
  await until('the node is sent', () => aws.bodies('nodes.fifo').length > 0);
  cluster.putPod(livePod('u1', { tolerations: [] }));
  await until('the pod is sent', () => aws.bodies('pods.fifo').length > 0);
  assert.deepEqual((await new DynamoDbLeases(table).read(C1))?.senders, ['AROAme']);
  relay.add(C2, api);
  await until('the same cluster is reported', () =>
    [...relay.faults().values()].flat().some(({ type }) => type === 'same-cluster'),
  );
});

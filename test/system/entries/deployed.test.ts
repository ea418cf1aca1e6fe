import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { until } from '#test/cluster/rig/until.ts';
import { type Installation, startInstallation, startProgram } from './entries.ts';

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

const prod = clusterName('prod');
const SECRET = 'arn:aws:secretsmanager:us-east-1:000000000000:secret:prod';

/** Loads the entry of a function as Lambda does: the entry reads its environment then. */
async function load(entry: string, environment: Readonly<Record<string, string>>): Promise<Handler> {
  Object.assign(process.env, environment);
  const url = `${import.meta.resolve(entry)}?${environment['SOURCE_QUEUE_URL']}`;
  const { handler } = await import(url);
  return handler;
}

/** Passes the messages of a function's queue to it, as Lambda does, until the test ends. */
async function feed(
  queue: string,
  entry: string,
  { aws, environment, queueUrl }: Installation,
  signal: AbortSignal,
) {
  const handler = await load(entry, { ...environment, SOURCE_QUEUE_URL: queueUrl(queue) });
  const context = { getRemainingTimeInMillis: () => 30_000 } as Context;
  return async () => {
    while (!signal.aborted) {
      const event = aws.take(queue);
      if (event === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        continue;
      }
      const failed = new Set(
        (await handler(event, context))?.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier),
      );
      const done = event.Records.map(({ messageId }) => messageId).filter((id) => !failed.has(id));
      aws.delete(queue, new Set(done));
    }
  };
}

test('the entries of relay, deltas, and evict evict the pods of a tainted node immediately, or after their tolerationSeconds', async (context) => {
  const installation = await startInstallation(context);
  const { aws, cluster, environment } = installation;
  Object.assign(process.env, environment);
  const table = new DynamoDbTable({ client: new DynamoDBClient(), tableName: 'taintward' });
  const access = { kind: 'kubeconfig-secret', secretArn: SECRET } as const;
  await new DynamoDbClusterRegistry(table).add({ name: prod, access, addedAt: systemClock.now() });
  const rulesStore = new DynamoDbRulesStore(table);
  const operator = { rulesStore, clock: systemClock, actor: 'anna' };
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: enforce\n' }, operator);

  const over = new AbortController();
  const feeds = await Promise.all([
    feed('node-deltas.fifo', '#functions/deltas/lambda.ts', installation, over.signal),
    feed('pod-deltas.fifo', '#functions/deltas/lambda.ts', installation, over.signal),
    feed('evictions-due', '#functions/evict/lambda.ts', installation, over.signal),
  ]);
  const fed = Promise.all(feeds.map((begin) => begin()));
  const relay = startProgram(context, '#functions/relay/main.ts', [], environment);

  const gone = (name: string) => {
    const left = new Set(cluster.pods().map(({ uid }) => uid));
    return before.filter((pod) => pod.name.startsWith(name)).every(({ uid }) => !left.has(uid));
  };
  const before = cluster.pods().filter(({ node }) => node === 'node-1');
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  await until('web, which does not tolerate the taint, is evicted', () => gone('web'));
  assert.deepEqual([gone('db'), gone('checkout'), gone('logs')], [false, false, false]);
  await until('db, which tolerates it for 10 s, is evicted', () => gone('db'));
  assert.deepEqual([gone('checkout'), gone('logs')], [false, false]);

  const { code, stderr } = await relay.stop();
  over.abort();
  await fed;
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(aws.bodies('dead-letters'), []);
  assert.equal((await new DynamoDbLeases(table).read(prod))?.holder, undefined, 'the lease is released');
});

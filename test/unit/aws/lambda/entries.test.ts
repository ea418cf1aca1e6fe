import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context, SQSEvent } from 'aws-lambda';
import { encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { PROBE_NODE, probeDelta } from '#shared/eviction/probe.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { Operator } from '#shared/state/operator.ts';
import { systemClock } from '#shared/time/clock.ts';
import { LambdaClock } from '#shared/time/lambda-clock.ts';
import { at, nodeDelta, pod, taint } from '#test/unit/eviction/builders.ts';
import { AwsOverHttp } from '#test/world/aws-over-http.ts';
import { functionEnvironment } from '#test/world/function-environment.ts';

type Handler = (event: SQSEvent, context: Context) => Promise<unknown>;

const SECRET = 'arn:aws:secretsmanager:us-east-1:000000000000:secret:c2';
const CONTEXT = { getRemainingTimeInMillis: () => 30_000 } as Context;
const [C1, C2] = [clusterName('c1'), clusterName('c2')];

/** An account with a registered cluster and its lease. The environment of the process is the functions' until the end of the test. */
async function account(t: TestContext) {
  const before = { ...process.env };
  const aws = await AwsOverHttp.start({ secrets: () => '' });
  const endpoint = aws.environment('test', 'us-east-1');
  const queueUrl = (name: string) => `${endpoint['AWS_ENDPOINT_URL']}/000000000000/${name}`;
  Object.assign(process.env, endpoint, {
    ...functionEnvironment(queueUrl),
    SOURCE_QUEUE_URL: queueUrl('source'),
    EVENT_BUS: 'bus',
  });
  t.after(async () => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
    await aws.close();
  });
  const table = new DynamoDbTable({ client: new DynamoDBClient(), tableName: 'taintward' });
  const access = { kind: 'kubeconfig-secret', secretArn: SECRET } as const;
  const registry = new DynamoDbClusterRegistry(table);
  await registry.add({ name: C1, access: { kind: 'agent', agent: 'edge-1' }, addedAt: Date.now() });
  await registry.add({ name: C2, access, addedAt: Date.now() });
  const begun = t.mock.method(LambdaClock.prototype, 'invoked');
  const lines: string[] = [];
  const write = process.stdout.write.bind(process.stdout);
  t.mock.method(process.stdout, 'write', (text: string) =>
    `${text}`.startsWith('{') ? lines.push(text) > 0 : write(text),
  );
  return { aws, table, lines, invoked: () => begun.mock.callCount() };
}

/** Returns the parts of the table that were read and written since the last call, and the calls of other services. */
function calls(aws: AwsOverHttp): ReadonlySet<string> {
  const all = aws.calls.splice(0).flatMap(({ service, operation, input }) => {
    if (service !== 'dynamodb') return `${service} ${operation}`;
    const what = /Get|Query/.test(operation) ? 'read' : 'wrote';
    return [...JSON.stringify(input).matchAll(/"sk":\{"S":"([A-Z]+)/g)].map(([, part]) => `${what} ${part}`);
  });
  return new Set(all);
}

/** Invokes a function with a message, as its queue does. */
async function invoke(aws: AwsOverHttp, handler: Handler, body: string, group?: string) {
  aws.calls.splice(0);
  aws.send('source', body, { group });
  const event = aws.take('source');
  assert.ok(event);
  assert.deepEqual(await handler(event, CONTEXT), { batchItemFailures: [] });
  aws.delete('source', new Set(event.Records.map(({ messageId }) => messageId)));
  assert.deepEqual(aws.bodies('dead-letters'), []);
  return calls(aws);
}

test('deltas reads rules and lease in each invocation, sends its notices, and leaves the trace of a probe', async (t) => {
  const { aws, table, invoked } = await account(t);
  const rulesStore = new DynamoDbRulesStore(table);
  await new Operator({ rulesStore, clock: systemClock, who: 'anna' }).applyPolicy(C1, 'mode: enforce\n');
  const lease = await new DynamoDbLeases(table, { sender: 'AROAtest' }).take(
    C1,
    undefined,
    'relay',
    Date.now(),
  );
  const { handler }: { handler: Handler } = await import('#functions/deltas/lambda.ts');
  for (const nth of [1, 2]) {
    const ref = { cluster: C1, node: nodeName(`n${nth}`) };
    const nowSeconds = (Date.now() - at(0)) / 1_000;
    const found = await invoke(
      aws,
      handler,
      encodeDelta(
        nodeDelta(nth, {
          ref,
          version: { epoch: lease?.epoch ?? 0, sequence: nth },
          observedAt: Date.now(),
          taints: [taint('a', nowSeconds)],
          pods: [pod(`u${nth}`, { podSince: Date.now() - 60_000 })],
        }),
      ),
      messageGroupId(ref),
    );
    for (const call of ['read LEASE', 'read POLICY', 'events PutEvents'])
      assert.ok(found.has(call), `${call} ${nth}`);
    assert.equal(invoked(), nth);
  }
  const probe = probeDelta(C1, { sentAt: Date.now(), sequence: 3, isTraced: true });
  const found = await invoke(aws, handler, encodeDelta(probe), messageGroupId(probe.ref));
  assert.ok(found.has('wrote PROBE'));
});

test('evict reads rules in each invocation', async (t) => {
  const { aws, invoked } = await account(t);
  const { handler }: { handler: Handler } = await import('#functions/evict/lambda.ts');
  for (const nth of [1, 2]) {
    const found = await invoke(aws, handler, encodeDue({ cluster: C2, node: PROBE_NODE, at: 1 }));
    for (const call of ['read POLICY', 'wrote PROOF']) assert.ok(found.has(call), `${call} ${nth}`);
    assert.equal(invoked(), nth);
  }
});

test('heartbeat sends its metrics in each invocation', async (t) => {
  const { invoked, lines } = await account(t);
  const { handler } = await import('#functions/heartbeat/lambda.ts');
  for (const nth of [1, 2]) {
    await handler(undefined, CONTEXT);
    assert.equal(lines.filter((line) => line.startsWith('{"_aws"')).length, nth);
    assert.equal(invoked(), nth);
  }
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context, SQSEvent } from 'aws-lambda';
import { encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { PROBE_NODE, probeDelta } from '#shared/eviction/probe.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { LambdaClock } from '#shared/time/lambda-clock.ts';
import { aNode, aRecord, aTaint } from '#test/contracts/partition-builders.ts';
import { at, nodeDelta, pod, taint } from '#test/unit/eviction/builders.ts';
import { anExpiry } from '#test/unit/expiry/stream-records.ts';
import { json, scriptedServer, status } from '#test/unit/kubernetes/scripted-server.ts';
import { AwsOverHttp } from '#test/world/aws-over-http.ts';
import { functionEnvironment } from '#test/world/function-environment.ts';

/** Tolerates the taint `a` with a value above 3, if comparison operators are supported. */
const GREATER = { key: 'a', operator: 'Gt', value: '3', effect: 'NoExecute' } as const;

type Handler = (event: SQSEvent, context: Context) => Promise<unknown>;

const SECRET = 'arn:aws:secretsmanager:us-east-1:000000000000:secret:c2';
const CONTEXT = { getRemainingTimeInMillis: () => 30_000 } as Context;
/** Variables whose default or common value a function could take by mistake. */
const NOT_DEFAULT = {
  AGENT_PREFIX: 'fleet-agent-',
  HISTORY_DAYS: '30',
  COMPARISON_OPERATORS: 'true',
  METRIC_NAMESPACE: 'Fleet',
  METRICS_BY_CLUSTER: 'true',
  INSTALLATION_NAME: 'fleet',
  EVENT_BUS: 'bus',
  CLUSTER_GRANTS: JSON.stringify({ both: ['arn:aws:secretsmanager:*:granted'], relay: [], evict: [] }),
};
const [C1, C2] = [clusterName('c1'), clusterName('c2')];

/** An account with a registered cluster and its lease. The environment of the process is the functions' until the end of the test. */
async function account(t: TestContext, secret = '') {
  const before = { ...process.env };
  const aws = await AwsOverHttp.start({ secrets: () => secret });
  const endpoint = aws.environment('test', 'us-east-1');
  const queueUrl = (name: string) => `${endpoint['AWS_ENDPOINT_URL']}/000000000000/${name}`;
  Object.assign(process.env, endpoint, {
    ...functionEnvironment(queueUrl),
    ...NOT_DEFAULT,
    SOURCE_QUEUE_URL: queueUrl('source'),
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

/** Returns the parts of the table that were read and written in the last invocation, and the calls of other services. */
function calls(aws: AwsOverHttp): ReadonlySet<string> {
  const all = aws.calls.flatMap(({ service, operation, input }) => {
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

/** Asserts that ended records were written in the last invocation, to be kept for the days in the environment. */
function assertKept({ calls }: AwsOverHttp): void {
  const ended = calls
    .map(({ input }) => JSON.stringify(input))
    .flatMap((text) => [...text.matchAll(/ENDED#(\d+)#.{0,200}?"ttl":\{"N":"(\d+)"/g)])
    .map(([, endedAt, ttl]) => Math.round((Number(ttl) - Number(endedAt) / 1_000) / 86_400));
  assert.deepEqual([...new Set(ended)], [Number(NOT_DEFAULT.HISTORY_DAYS)]);
}

/** Asserts that the notices of the last invocation were sent to the event bus in the environment. */
function assertNoticed({ calls }: AwsOverHttp): void {
  const entries = calls
    .filter(({ service }) => service === 'events')
    .flatMap(({ input }) => input['Entries']);
  const buses = (entries as readonly { readonly EventBusName: string }[]).map(
    ({ EventBusName }) => EventBusName,
  );
  assert.deepEqual([...new Set(buses)], [NOT_DEFAULT.EVENT_BUS]);
}

test('deltas reads rules and lease in each invocation, works by its environment, and leaves the trace of a probe', async (t) => {
  const { aws, table, invoked } = await account(t);
  const rulesStore = new DynamoDbRulesStore(table);
  await perform(
    { kind: 'apply-policy', cluster: C1, text: 'mode: enforce\n' },
    { rulesStore, clock: systemClock, actor: 'anna' },
  );
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
          taints: [taint('a', nowSeconds, '5')],
          pods: [
            pod(`u${nth}`, { podSince: Date.now() - 60_000 }),
            pod(`kept-${nth}`, { podSince: Date.now() - 60_000, tolerations: [GREATER] }),
          ],
        }),
      ),
      messageGroupId(ref),
    );
    for (const call of ['read LEASE', 'read POLICY', 'events PutEvents'])
      assert.ok(found.has(call), `${call} ${nth}`);
    const written = JSON.stringify(aws.calls);
    assert.ok(written.includes(`SCHEDULED#u${nth}`) && !written.includes(`SCHEDULED#kept-${nth}`));
    assertNoticed(aws);
    assert.equal(invoked(), nth);
  }
  const ref = { cluster: C1, node: nodeName('n1') };
  const version = { epoch: lease?.epoch ?? 0, sequence: 3 };
  const untainted = nodeDelta(3, { ref, version, observedAt: Date.now(), taints: [], pods: [] });
  await invoke(aws, handler, encodeDelta(untainted), messageGroupId(ref));
  assertKept(aws);
  const probe = probeDelta(C1, { sentAt: Date.now(), sequence: 4, isTraced: true });
  const found = await invoke(aws, handler, encodeDelta(probe), messageGroupId(probe.ref));
  assert.ok(found.has('wrote PROBE'));
});

/** An API server with the node `n1`, which has the taint `a` with the value 5, and two pods, of which one tolerates it. */
async function cluster(t: TestContext) {
  const node = {
    metadata: { name: 'n1', uid: 'n', resourceVersion: '1' },
    spec: { taints: [{ key: 'a', value: '5', effect: 'NoExecute' }] },
  };
  const creationTimestamp = '2026-01-01T00:00:00Z';
  const pods = [[], [GREATER]].map((tolerations, index) => ({
    metadata: {
      name: `web-${index}`,
      namespace: 'shop',
      uid: `u${index}`,
      resourceVersion: '1',
      creationTimestamp,
    },
    spec: { nodeName: 'n1', tolerations },
    status: {},
  }));
  const { host, requests } = await scriptedServer(
    t,
    (response, request) => {
      const pod = pods.find(({ metadata: { name } }) => request.url.includes(`/${name}`));
      const found = request.url.endsWith('/nodes/n1') ? node : request.method === 'POST' ? {} : pod;
      (found ? json(found) : status(404, 'NotFound', 'not found'))(response, request);
    },
    { protocol: 'http/1.1 over TLS' },
  );
  const kubeconfig = `clusters: [{name: c, cluster: {server: "https://${host}", insecure-skip-tls-verify: true}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: {token: sesame}}]`;
  return { pods, requests, kubeconfig };
}

test('evict reads rules in each invocation, and works by its environment', async (t) => {
  const { pods, requests, kubeconfig } = await cluster(t);
  const { aws, table, lines, invoked } = await account(t, kubeconfig);
  const { handler } = await import('#functions/evict/lambda.ts');
  const handle = handler as unknown as Handler;
  for (const nth of [1, 2]) {
    const found = await invoke(aws, handle, encodeDue({ cluster: C2, node: PROBE_NODE, at: 1 }));
    for (const call of ['read POLICY', 'wrote PROOF']) assert.ok(found.has(call), `${call} ${nth}`);
    assert.equal(invoked(), nth);
  }
  const now = Date.now();
  const rulesStore = new DynamoDbRulesStore(table);
  await perform(
    { kind: 'apply-policy', cluster: C2, text: 'mode: enforce\n' },
    { rulesStore, clock: systemClock, actor: 'anna' },
  );
  const ref = { cluster: C2, node: nodeName('n1') };
  const node = aNode({
    observedAt: now,
    taints: [aTaint({ key: 'a', value: '5', since: now - 1_000 })],
    guardRevision: 0,
  });
  const schedule = pods.map(({ metadata: { name, namespace, uid } }) =>
    aRecord({ name, namespace, uid: podUid(uid), podSince: now - 60_000, startedAt: now, dueAt: now }),
  );
  await new DynamoDbStore(table).commit(ref, 0, { node, schedule, end: [], live: true }, now);
  requests.splice(0);
  lines.splice(0);
  // The clock stands still, so that no look at the node gets too old for the delete on a busy machine.
  t.mock.method(LambdaClock.prototype, 'now', () => now);
  await invoke(aws, handle, encodeDue({ ...ref, at: now }));
  const writes = requests.filter(({ method }) => method === 'PATCH' || method === 'DELETE');
  assert.deepEqual(
    writes.map(({ method, url }) => `${method} ${url}`),
    [
      'PATCH /api/v1/namespaces/shop/pods/web-0/status?fieldManager=taintward-fleet',
      'DELETE /api/v1/namespaces/shop/pods/web-0',
    ],
  );
  assertKept(aws);
  assertNoticed(aws);
  const [metrics] = lines.filter((line) => line.startsWith('{"_aws"')).map((line) => JSON.parse(line));
  const [{ Namespace, Dimensions }] = metrics._aws.CloudWatchMetrics;
  assert.deepEqual([Namespace, Dimensions, metrics.cluster], ['Fleet', [[], ['cluster']], C2]);
  const answer = await handler(
    { checkAccess: { name: C2, access: { kind: 'kubeconfig-secret', secretArn: SECRET }, namespaces: [] } },
    CONTEXT,
  );
  assert.match(JSON.stringify(answer), /which matches none of arn:aws:secretsmanager:\*:granted\./);
});

test('expiry makes nodes due in the queue of the agent or of evict, and sets unreadable records aside', async (t) => {
  const { aws } = await account(t);
  const { handler } = await import('#functions/expiry/lambda.ts');
  const [c1, c2, other] = [C1, C2, C2].map((cluster) =>
    anExpiry({ cluster, node: nodeName('n1') }, aRecord({ dueAt: Date.now() - 3_600_000 })),
  );
  assert.ok(c1 && c2 && other?.dynamodb);
  const unreadable = { ...other, dynamodb: { ...other.dynamodb, OldImage: { sk: { S: 'SCHEDULED#u1' } } } };
  const answer = await handler({ Records: [c1, c2, unreadable] }, CONTEXT);
  assert.deepEqual(answer, { batchItemFailures: [] });
  const sent = aws.calls
    .filter(({ service }) => service === 'sqs')
    .map(({ input }) => `${input['QueueUrl']}`);
  assert.deepEqual(sent.map((url) => url.split('/').at(-1)).sort(), [
    'dead-letters',
    'evictions-due',
    'fleet-agent-edge-1-evictions-due',
  ]);
});

test('heartbeat sends its metrics in each invocation', async (t) => {
  const { invoked, lines } = await account(t);
  const { handler } = await import('#functions/heartbeat/lambda.ts');
  for (const nth of [1, 2]) {
    await handler(undefined, CONTEXT);
    const metrics = lines.filter((line) => line.startsWith('{"_aws"'));
    assert.equal(metrics.length, nth);
    assert.ok(metrics.every((line) => line.includes('"Namespace":"Fleet"')));
    assert.equal(invoked(), nth);
  }
});

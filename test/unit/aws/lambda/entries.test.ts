import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
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
import { LAST_CONTACT_AGE, UNWATCHED_CLUSTERS } from '#shared/telemetry/metrics.ts';
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

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;

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
const OF_AGENT = 'fleet-agent-edge-1-evictions-due';
const [C1, C2, C3] = [clusterName('c1'), clusterName('c2'), clusterName('c3')];

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
  // The clock stands still: only the next invocation reads again what is known, and no look at a node gets too old.
  const now = Date.now();
  t.mock.method(LambdaClock.prototype, 'now', () => now);
  const stopwatch = t.mock.method(LambdaClock.prototype, 'stopwatch', () => 0);
  const lines: string[] = [];
  const write = process.stdout.write.bind(process.stdout);
  t.mock.method(process.stdout, 'write', (text: string) =>
    `${text}`.startsWith('{') ? lines.push(text) > 0 : write(text),
  );
  return { aws, table, registry, access, lines, now, stopwatch, invoked: () => begun.mock.callCount() };
}

/** Returns the parts of the table that were read and written in the last invocation, and the calls of other services. */
function calls(aws: AwsOverHttp): readonly string[] {
  return aws.calls.flatMap(({ service, operation, input }) => {
    if (service !== 'dynamodb') return `${service} ${operation}`;
    const what = /Get|Query/.test(operation) ? 'read' : 'wrote';
    return [...JSON.stringify(input).matchAll(/"sk":\{"S":"([A-Z]+)/g)].map(([, part]) => `${what} ${part}`);
  });
}

/** Passes a message to a function, as its queue does, and returns the number of messages that go back to the queue. */
async function deliver(
  aws: AwsOverHttp,
  handler: Handler,
  body: string,
  sent: { readonly group?: string | undefined; readonly sender?: string } = {},
): Promise<number> {
  aws.calls.splice(0);
  aws.send('source', body, sent);
  const event = aws.take('source');
  assert.ok(event);
  const { batchItemFailures } = await handler(event, CONTEXT);
  aws.delete('source', new Set(event.Records.map(({ messageId }) => messageId)));
  return batchItemFailures.length;
}

/** Invokes a function with a message that it processes. */
async function invoke(aws: AwsOverHttp, handler: Handler, body: string, group?: string) {
  assert.equal(await deliver(aws, handler, body, { group }), 0);
  assert.deepEqual(aws.bodies('dead-letters'), []);
  return calls(aws);
}

/** Asserts that a function sets unreadable messages aside, and returns a message that fails to its queue with a delay. */
async function assertFails(
  t: TestContext,
  aws: AwsOverHttp,
  handler: Handler,
  body: string,
  group?: string,
): Promise<void> {
  assert.equal(await deliver(aws, handler, 'nonsense', { group }), 0);
  assert.equal(aws.bodies('dead-letters').at(-1), 'nonsense');
  t.mock.method(aws.table, 'perform', () => Promise.reject(new Error('unavailable')), { times: 1 });
  assert.equal(await deliver(aws, handler, body, { group }), 1);
  const returned = aws.calls.find(({ operation }) => operation === 'ChangeMessageVisibilityBatch');
  assert.match(`${returned?.input['QueueUrl']}`, /\/source$/);
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
  const epoch = lease?.epoch ?? 0;
  /** Invokes the function with a delta of a tainted node, in an epoch of the lease. */
  const report = (nth: number, epoch: number) => {
    const ref = { cluster: C1, node: nodeName(`n${nth}`) };
    const podSince = Date.now() - 60_000;
    const delta = nodeDelta(nth, {
      ref,
      version: { epoch, sequence: nth },
      observedAt: Date.now(),
      taints: [taint('a', (Date.now() - at(0)) / 1_000, '5')],
      pods: [
        pod(`u${nth}`, { podSince }),
        pod(`late-${nth}`, { podSince, tolerations: [{ operator: 'Exists', tolerationSeconds: 3_600n }] }),
        pod(`kept-${nth}`, { podSince, tolerations: [GREATER] }),
      ],
    });
    return invoke(aws, handler, encodeDelta(delta), messageGroupId(ref));
  };
  for (const nth of [1, 2]) {
    const found = await report(nth, epoch);
    for (const call of ['read LEASE', 'read POLICY', 'events PutEvents'])
      assert.ok(found.includes(call), `${call} ${nth}`);
    const written = JSON.stringify(aws.calls);
    assert.ok(written.includes(`SCHEDULED#u${nth}`) && !written.includes(`SCHEDULED#kept-${nth}`));
    assertNoticed(aws);
    assert.equal(invoked(), nth);
    assert.equal(found.filter((call) => call === 'read LEASE').length, 1);
    assert.equal(found.includes('read REGISTRATION'), nth === 1);
    const schedule = aws.calls.find(({ operation }) => operation === 'CreateSchedule');
    assert.equal(schedule?.input['GroupName'], 'fleet-agent-edge-1');
    assert.ok(aws.bodies(OF_AGENT).some((body) => body.includes(`"n${nth}"`)));
  }
  await report(3, epoch - 1);
  assert.ok(!JSON.stringify(aws.calls).includes('SCHEDULED#'), 'its relay lost the lease');
  const ref = { cluster: C1, node: nodeName('n1') };
  const version = { epoch, sequence: 3 };
  const untainted = nodeDelta(3, { ref, version, observedAt: Date.now(), taints: [], pods: [] });
  await invoke(aws, handler, encodeDelta(untainted), messageGroupId(ref));
  assertKept(aws);
  const probe = probeDelta(C1, { sentAt: Date.now(), sequence: 4, isTraced: true });
  const found = await invoke(aws, handler, encodeDelta(probe), messageGroupId(probe.ref));
  assert.ok(found.includes('wrote PROBE'));
  const [body, group] = [encodeDelta(untainted), messageGroupId(ref)];
  await assertFails(t, aws, handler, body, group);
  await deliver(aws, handler, body, { group, sender: 'AROAother:1' });
  assert.equal(aws.bodies('dead-letters').at(-1), body, 'the sender never held the lease');
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
  const { aws, table, registry, access, lines, now, invoked } = await account(t, kubeconfig);
  const { handler } = await import('#functions/evict/lambda.ts');
  const handle = handler as unknown as Handler;
  await registry.add({ name: C3, access, addedAt: Date.now() });
  for (const nth of [1, 2]) {
    const found = await invoke(aws, handle, encodeDue({ cluster: C2, node: PROBE_NODE, at: 1 }));
    for (const call of ['read POLICY', 'wrote PROOF']) assert.ok(found.includes(call), `${call} ${nth}`);
    for (const call of ['read REGISTRATION', 'read LEASE'])
      assert.equal(found.includes(call), nth === 1, call);
    assert.equal(invoked(), nth);
  }
  const rulesStore = new DynamoDbRulesStore(table);
  await perform(
    { kind: 'apply-policy', cluster: C2, text: 'mode: enforce\nevictionRate: 5\n' },
    { rulesStore, clock: systemClock, actor: 'anna' },
  );
  const [ref, other] = [C2, C3].map((cluster) => ({ cluster, node: nodeName('n1') }));
  assert.ok(ref && other);
  const node = aNode({
    observedAt: now,
    taints: [aTaint({ key: 'a', value: '5', since: now - 1_000 })],
    guardRevision: 0,
  });
  const schedule = pods.map(({ metadata: { name, namespace, uid } }) =>
    aRecord({ name, namespace, uid: podUid(uid), podSince: now - 60_000, startedAt: now, dueAt: now }),
  );
  const store = new DynamoDbStore(table);
  for (const each of [ref, other]) await store.commit(each, 0, { node, schedule, end: [], live: true }, now);
  requests.splice(0);
  lines.splice(0);
  const found = await invoke(aws, handle, encodeDue({ ...ref, at: now }));
  assert.ok(found.includes('wrote RATE'));
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
  await assertFails(t, aws, handle, encodeDue({ ...ref, at: now }));
  const leases = new DynamoDbLeases(table);
  const lease = await leases.take(C3, undefined, 'relay', now);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: now, claim: { sameAs: C2 } });
  requests.splice(0);
  await deliver(aws, handle, encodeDue({ ...other, at: now }));
  assert.match(aws.bodies('dead-letters').at(-1) ?? '', /"retry".*"c3".*"u0"/, 'another name of the cluster');
  assert.deepEqual(requests, []);
  const ofAgent = encodeDue({ cluster: C1, node: nodeName('n1'), at: now });
  await deliver(aws, handle, ofAgent);
  assert.deepEqual(aws.bodies(OF_AGENT), [ofAgent]);
});

test('expiry makes nodes due in the queue of the agent or of evict, and sets unreadable records aside', async (t) => {
  const { aws } = await account(t);
  const { handler } = await import('#functions/expiry/lambda.ts');
  const [c1, c2, other] = [C1, C2, C2].map((cluster, index) =>
    anExpiry({ cluster, node: nodeName(`n${index}`) }, aRecord({ dueAt: Date.now() - 3_600_000 })),
  );
  assert.ok(c1 && c2 && other?.dynamodb);
  const unreadable = { ...other, dynamodb: { ...other.dynamodb, OldImage: { sk: { S: 'SCHEDULED#u1' } } } };
  const answer = await handler({ Records: [c1, c2, other, unreadable] }, CONTEXT);
  assert.deepEqual(answer, { batchItemFailures: [] });
  const sent = aws.calls
    .filter(({ service }) => service === 'sqs')
    .map(({ input }) => `${input['QueueUrl']}`);
  assert.deepEqual(sent.map((url) => url.split('/').at(-1)).sort(), [
    'dead-letters',
    'evictions-due',
    'evictions-due',
    OF_AGENT,
  ]);
  const made = calls(aws);
  assert.ok(made.includes('wrote SCHEDULED'));
  assert.equal(made.filter((call) => call === 'read REGISTRATION').length, 2, 'once for each cluster');
});

test('heartbeat sends its metrics in each invocation', async (t) => {
  const { aws, table, invoked, lines, now, stopwatch } = await account(t);
  const { handler } = await import('#functions/heartbeat/lambda.ts');
  const leases = new DynamoDbLeases(table);
  const lease = await leases.take(C2, undefined, 'relay', now);
  assert.ok(lease);
  await leases.release(lease);
  for (const nth of [1, 2]) {
    stopwatch.mock.mockImplementation(() => nth * 60_000);
    aws.calls.splice(0);
    await handler(undefined, CONTEXT);
    assert.ok(calls(aws).includes('read LEASE'));
    const metrics = lines.filter((line) => line.startsWith('{"_aws"'));
    assert.equal(metrics.length, nth);
    assert.ok(metrics.every((line) => line.includes('"Namespace":"Fleet"')));
    const {
      [UNWATCHED_CLUSTERS]: [unwatched],
      [LAST_CONTACT_AGE]: [seconds],
    } = JSON.parse(metrics.at(-1) ?? '');
    assert.deepEqual([unwatched, Math.floor(seconds / 60)], [2, nth - 1]);
    assert.equal(invoked(), nth);
  }
});

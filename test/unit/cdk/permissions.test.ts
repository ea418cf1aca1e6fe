import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { startApiServer } from '#functions/local/simulated-cluster/api/server.ts';
import { ObjectStore } from '#functions/local/simulated-cluster/objects/store.ts';
import { DynamoDbLeases } from '#shared/clusters/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/clusters/dynamodb-registry.ts';
import type { Access } from '#shared/clusters/registry.ts';
import type { NodeDelta, PodGoneDelta } from '#shared/eviction/facts.ts';
import { type ClusterName, clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import { encodeDelta, messageGroupId } from '#shared/queues/delta-message.ts';
import { encodeDue } from '#shared/queues/due-message.ts';
import { DynamoDbHistory } from '#shared/store/dynamodb-history.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { until } from '#test/cluster/rig/until.ts';
import { aRecord } from '#test/contracts/partition-builders.ts';
import { RestCluster } from '#test/contracts/rest-cluster.ts';
import { anExpiry } from '#test/unit/expiry/stream-records.ts';
import { fakeClient } from '#test/world/fake-dynamodb.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { PROJECT_DIR } from '../../../cdk/bundle.ts';
import { Granted, REGION } from './permissions/granted.ts';
import { iamRequests } from './permissions/iam-requests.ts';
import { allows, type IamRequest } from './permissions/policy.ts';
import { type AwsCall, RecordingAws } from './permissions/recording-aws.ts';
import type { Statement } from './stack/resources.ts';
import { synthesized } from './stack/synthesized.ts';

const PROD = clusterName('prod');
const RELAY_WITHIN_MS = 60_000;
/** Of which nothing is known but how they are reached. */
const FAR = { own: clusterName('eks-own'), assumed: clusterName('eks-far') };
const ROLE = (part: string) => ({ arn: `arn:aws:iam::210987654321:role/taintward-${part}`, externalId: 'x' });
const SECRET = (part: string, cluster: string) =>
  `arn:aws:secretsmanager:${REGION}:123456789012:secret:taintward-${part}/${cluster}-AbCdEf`;
const ACCESSES: Readonly<Record<ClusterName, Access>> = {
  [FAR.own]: { kind: 'eks', clusterName: 'own', region: 'eu-central-1' },
  [FAR.assumed]: {
    ...{ kind: 'eks', clusterName: 'far', region: 'us-east-1' },
    role: { relay: ROLE('relay'), evict: ROLE('evict') },
  },
};

const fargate = new Granted(synthesized({ 'taintward:eventBus': 'ops' }));
const external = new Granted(synthesized({ 'taintward:relay': 'external' }));
const divided = new Granted(
  synthesized({
    'taintward:relay': 'external',
    'taintward:relays': { prod: { clusters: ['prod'] }, edge: { clusters: ['edge-*'] } },
  }),
);

/** Who calls, by the names that the test calls them. */
const GRANTED: Readonly<Record<string, readonly Statement[]>> = {
  ...Object.fromEntries(
    ['node-delta', 'pod-delta', 'evict', 'expiry', 'heartbeat'].map((name) => [
      name,
      fargate.ofFunction(`taintward-${name}`),
    ]),
  ),
  relay: fargate.ofTasks(),
  'relay of your own': external.ofPolicy('taintward-relay'),
  'relay for prod': divided.ofPolicy('taintward-relay-prod'),
  'relay for edge-*': divided.ofPolicy('taintward-relay-edge'),
  ...Object.fromEntries(
    ['viewer', 'operator', 'admin'].map((size) => [size, fargate.ofPolicy(`taintward-${size}`)]),
  ),
};

const may = (who: string, request: IamRequest): boolean =>
  allows(GRANTED[who] ?? assert.fail(`nobody knows ${who}`), fargate.resourcePolicies, request);

const closing = new AsyncDisposableStack();
let aws: RecordingAws;
after(() => closing.disposeAsync());

/** Runs a process of the project to its end. Returns what it printed. */
async function run(
  path: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  input: unknown,
): Promise<string> {
  const script = fileURLToPath(new URL(path, import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { env, stdio: 'pipe' });
  child.stdin.end(JSON.stringify(input));
  const streams = [child.stdout, child.stderr].map(text);
  const [[printed = '', complaint], [code]] = await Promise.all([Promise.all(streams), once(child, 'close')]);
  assert.equal(code, 0, complaint);
  return printed;
}

const callFunction = (name: string, room: string, ...events: readonly object[]) =>
  run(
    './permissions/function-process.ts',
    [new URL(`../../../functions/${room}/lambda.ts`, import.meta.url).href],
    { ...aws.environment(name, REGION), ...fargate.environmentOf(`taintward-${name}`) },
    events,
  );

/** What a deployed function answers who invokes it. */
async function invoked(functionName: string, event: object): Promise<object> {
  assert.equal(functionName, 'taintward-evict');
  const printed = await callFunction('evict', 'evict', event);
  return JSON.parse(printed.trimEnd().split('\n').at(-1) ?? '');
}

const typed = (who: string, ...lines: readonly string[]) =>
  run(
    './permissions/cli-process.ts',
    [],
    { ...aws.environment(who, REGION), TAINTWARD_TABLE: 'taintward', PATH: process.env['PATH'] },
    lines.map((line) => line.split(' ')),
  );

/** A node as a relay tells of it, with the taint `now`, and pods that go at once, in a minute and in a day. */
function nodeDeltaOf(ref: NodeRef, uids: readonly string[], epoch: number, taintsStamp = ''): NodeDelta {
  const now = Date.now();
  const seconds = [undefined, 60n, 86_400n];
  return {
    ...{
      kind: 'node' as const,
      ref,
      version: { epoch, sequence: 1 },
      observedAt: now,
      wake: false,
      taintsStamp,
    },
    taints: [{ key: 'now', effect: 'NoExecute', known: 'appeared', seenAt: now - 1_000 }],
    pods: uids.map((uid, index) => ({
      ...{ uid: podUid(uid), namespace: 'permissions', name: `pod-${index}`, podSince: now - 60_000 },
      tolerations:
        seconds[index] === undefined
          ? []
          : [{ key: 'now', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: seconds[index] }],
    })),
  };
}

before(async () => {
  const server = await startApiServer(new ObjectStore({ clock: systemClock }));
  closing.defer(() => server.close());
  const url = new URL(server.url);
  const headers = { Authorization: `Bearer ${server.token}` };
  const cluster = await RestCluster.open(
    { host: url.host, requestOptions: async () => ({ server: url, ca: server.certificate, headers }) },
    'permissions',
    1,
  );
  closing.defer(() => cluster.close());
  const kubeconfigOf = (address: string) =>
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
      clusters: [
        {
          name: 'c',
          cluster: {
            server: address,
            'certificate-authority-data': Buffer.from(server.certificate).toString('base64'),
          },
        },
      ],
      users: [{ name: 'u', user: { token: server.token } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    });
  // Where the admin's machine is, nobody listens at the address of the cluster that is hidden.
  const secrets = (arn: string, who: string) =>
    kubeconfigOf(who === 'admin' && arn.includes('/hidden-') ? 'https://127.0.0.1:9' : server.url);
  aws = closing.use(await RecordingAws.open({ secrets, invoke: invoked }));
  const table = new DynamoDbTable({
    client: fakeClient(async (command) => aws.table.perform(command)),
    tableName: 'taintward',
  });
  const registry = new DynamoDbClusterRegistry(table);
  for (const [name, access] of Object.entries(ACCESSES)) {
    await registry.add({ name: clusterName(name), access, addedAt: 0 });
  }

  // People first: the cluster is registered by them.
  const add = (name: string) =>
    `clusters add ${name} --relay-kubeconfig-secret ${SECRET('relay', name)} --evict-kubeconfig-secret ${SECRET('evict', name)}`;
  const policy = join(import.meta.dirname, 'permissions', 'policy.yaml');
  await typed(
    'admin',
    ...[add('prod'), `policy apply --file ${policy} --yes prod`],
    ...[add('hidden'), 'clusters remove hidden'],
  );

  const taint = { key: 'now', effect: 'NoExecute' } as const;
  const [n1, ...down] = ['n1', 'n2', 'n3', 'n4'].map(nodeName);
  assert.ok(n1);
  await cluster.createNode(n1, [taint]);
  for (const node of down) await cluster.createNode(node);
  for (const [index, tolerationSeconds] of [undefined, 60n, 86_400n].entries()) {
    const toleration = { key: 'now', operator: 'Exists', effect: 'NoExecute' } as const;
    await cluster.createPod(`pod-${index}`, {
      node: n1,
      tolerations: tolerationSeconds === undefined ? [] : [{ ...toleration, tolerationSeconds }],
    });
  }
  const uids = (
    await cluster.api.podsOnNode(
      n1,
      [0, 1, 2].map((index) => ({ namespace: 'permissions', name: `pod-${index}` })),
    )
  ).map(({ uid }) => uid as string);
  assert.equal(uids.length, 3);

  // The relay is there all the while, and sees nodes go down, which trips the guard.
  const relay = spawn(process.execPath, [join(PROJECT_DIR, 'functions/watch-relay/main.ts')], {
    env: {
      ...aws.environment('relay', REGION),
      ...{ TABLE_NAME: 'taintward', METRIC_NAMESPACE: 'taintward', PROBE_HOST: '127.0.0.1', PROBE_PORT: '0' },
      ...{ NODE_DELTAS_URL: queueUrl('node-deltas.fifo'), POD_DELTAS_URL: queueUrl('pod-deltas.fifo') },
    },
    stdio: 'ignore',
  });
  closing.defer(async () => {
    if (relay.exitCode !== null) return;
    relay.kill('SIGKILL');
    await once(relay, 'close');
  });
  const told = (fits: (call: AwsCall) => boolean) =>
    until('the relay has said it', RELAY_WITHIN_MS, () => aws.by('relay').some(fits) || undefined);
  await told(
    ({ operation, input }) => operation === 'SendMessageBatch' && JSON.stringify(input).includes('n1'),
  );
  const { epoch } = (await new DynamoDbLeases(table).look(PROD)) ?? assert.fail('the relay has no lease');
  const ref = { cluster: PROD, node: n1 };
  const { taintsStamp = '' } = (await cluster.api.getNode(n1)) ?? assert.fail('there is no such node');
  const delta = (node: NodeRef, ids: readonly string[]) =>
    sqsRecord(encodeDelta(nodeDeltaOf(node, ids, epoch, taintsStamp)), {
      ...{ groupId: messageGroupId(node), senderId: 'AROArelay:1' },
    });
  const far = Object.values(FAR).map((name) => ({ cluster: name, node: n1 }));
  const unreadable = sqsRecord('nonsense', { groupId: 'g' });
  const [first = ''] = uids;
  const { observedAt, taints } = nodeDeltaOf(ref, uids, epoch);
  const gone: PodGoneDelta = {
    ...{ kind: 'pod-gone', ref, version: { epoch, sequence: 2 }, observedAt, taints, taintsStamp },
    uid: podUid('gone'),
  };
  const ofPod = sqsRecord(encodeDelta(gone), {
    ...{ groupId: messageGroupId(ref), senderId: 'AROArelay:1' },
  });
  await callFunction(
    'node-delta',
    'deltas',
    sqsEvent(delta(ref, uids)),
    sqsEvent(...far.map((each) => delta(each, ['u']))),
    sqsEvent(unreadable),
  );
  await callFunction('pod-delta', 'deltas', sqsEvent(ofPod, unreadable));
  const due = (node: NodeRef, at = Date.now()) =>
    sqsRecord(encodeDue({ ...node, at }), { groupId: node.cluster });
  await callFunction(
    ...(['evict', 'evict'] as const),
    sqsEvent(due(ref)),
    sqsEvent(...far.map((each) => due(each)), due(ref, Date.now() + 60_000), unreadable),
  );
  const [evicted] = await cluster.api.podsOnNode(n1, [{ namespace: 'permissions', name: 'pod-0' }]);
  assert.ok(evicted?.terminating ?? true, 'nobody was evicted');
  const expired = aRecord({ uid: podUid('expired'), fireAt: Date.now() - 1_000 });
  await callFunction('expiry', 'expiry', { Records: [anExpiry(ref, expired)] });
  const unreachable = { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' } as const;
  for (const node of down) await cluster.setTaints(node, [unreachable], 'node-controller');
  await told(({ operation }) => operation === 'TransactWriteItems');
  // What takes minutes to come about, or a pass of its own, is done in their names by what does it there.
  const { AWS_ENDPOINT_URL: endpoint = '' } = aws.environment('relay', REGION);
  const tableOf = (accessKeyId: string) => {
    const credentials = { accessKeyId, secretAccessKey: 'secret' };
    const client = new DynamoDBClient({ endpoint, region: REGION, credentials });
    return new DynamoDbTable({ client, tableName: 'taintward' });
  };
  const leases = new DynamoDbLeases(tableOf('relay'));
  const found = (await leases.look(PROD)) ?? assert.fail('the relay has no lease');
  const lease = { ...found, holder: 'somebody' };
  await leases.bid(lease, { holder: 'other', load: 1 });
  await leases.reportStuck(lease, []);
  await new DynamoDbHistory(tableOf('relay')).noteGone(PROD, [{ uid: podUid(first), at: Date.now() }]);
  await callFunction('heartbeat', 'heartbeat', {});
  await typed(
    'operator',
    ...['stop prod --why x', 'resume prod --why x', 'stop --all --why x', 'resume --all --why x'],
    ...[
      'hold node n1 --cluster prod --why x',
      'release guard prod --why x',
      'retry prod',
      'dead-letters list',
      'dead-letters redrive --queue evictions-due',
      'dead-letters redrive m1 --queue evictions-due',
      'dead-letters redrive m1 --queue node-deltas.fifo',
      'doctor',
    ],
  );
  await typed(
    'viewer',
    ...['clusters list', 'clusters show prod', 'policy get prod', 'pending prod', 'holds prod', 'audit prod'],
    ...['history prod', 'status', 'doctor'],
  );
  await typed(
    'admin',
    ...['doctor', 'dead-letters redrive m1 --queue evictions-due', 'clusters remove prod'],
  );
  const ended = once(relay, 'close');
  relay.kill('SIGTERM');
  await ended;
});

const queueUrl = (name: string) => `https://sqs.${REGION}.amazonaws.com/123456789012/taintward-${name}`;

const secure = (action: string, resource: string): IamRequest => ({
  ...{ action, resource, context: { 'aws:SecureTransport': ['true'] } },
});

/** What somebody's calls ask IAM for, each once. */
function asked(who: string): readonly IamRequest[] {
  const requests = aws.by(who).flatMap(iamRequests);
  return [...new Map(requests.map((each) => [JSON.stringify(each), each])).values()];
}

const shown = ({ action, resource, context }: IamRequest) =>
  `${action} on ${resource.split(':').slice(5).join(':')} ${context['dynamodb:LeadingKeys'] ?? ''}`;

const refused = (who: string, requests: readonly IamRequest[]) =>
  requests.filter((each) => !may(who, each)).map(shown);

/** Who looks into clusters with rights of their own, if they have them: `status` does without. */
const PEOPLE = ['viewer', 'operator'];
const ENTERING = ['eks:DescribeCluster', 'secretsmanager:GetSecretValue', 'sts:AssumeRole'];

describe('what each part asks of AWS, it may', () => {
  for (const who of [
    'node-delta',
    'pod-delta',
    'evict',
    'expiry',
    'heartbeat',
    'relay',
    'viewer',
    'operator',
    'admin',
  ]) {
    test(who, () => {
      assert.ok(asked(who).length > 1, `${who} asked for next to nothing`);
      const isTheirs = ({ action }: IamRequest) => !PEOPLE.includes(who) || !ENTERING.includes(action);
      assert.deepEqual(refused(who, asked(who).filter(isTheirs)), []);
    });
  }

  test('a relay of your own, for all clusters', () => {
    assert.deepEqual(refused('relay of your own', asked('relay')), []);
  });
});

test('what Lambda does as a function, to feed it, the function may', () => {
  // Lambda Developer Guide, "Using Lambda with Amazon SQS" and "with DynamoDB".
  const ofQueue = ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'];
  const ofStream = ['DescribeStream', 'GetRecords', 'GetShardIterator', 'ListStreams'];
  const sources = fargate.sources();
  assert.equal(sources.length, 4);
  for (const { functionName, arn, onFailure } of sources) {
    const actions = arn.includes(':sqs:') ? ofQueue : ofStream.map((action) => `dynamodb:${action}`);
    const requests = [
      ...actions.map((action) => secure(action, arn)),
      ...(onFailure === undefined ? [] : [secure('sqs:SendMessage', onFailure)]),
    ];
    assert.deepEqual(refused(functionName.replace('taintward-', ''), requests), []);
  }
});

/** Of `taintward restore`, which none of the policies is for: it asks for all of two tables. */
const OF_RESTORE = 'Scan';
/** Of agents, whose rights are not of this stack. */
const OF_AGENTS = 'DeleteMessageBatch';

test('every call that is in the code was made', () => {
  const files = globSync('{shared,functions}/**/*.ts', { cwd: PROJECT_DIR });
  const written = files.flatMap((file) =>
    [
      ...readFileSync(join(PROJECT_DIR, file), 'utf8').matchAll(
        /(?:new (?=\w+Command\()|paginate)(\w+?)(?:Command)?\(/g,
      ),
    ].map(([, name]) => name),
  );
  const made = new Set(aws.calls.map(({ operation }) => operation));
  const { length } = written;
  assert.ok(length > 15, `${length} calls`);
  assert.deepEqual(
    [...new Set(written)].filter((name) => !made.has(name ?? '')),
    [OF_RESTORE, OF_AGENTS],
  );
});

/** Who does what that somebody else does, by the action and the beginning of the key or the resource. */
const FORBIDDEN: readonly (readonly [string, string, string, string, string])[] = [
  ['a relay registers a cluster', 'relay', 'admin', 'dynamodb:PutItem', 'CLUSTER#'],
  ['a relay unregisters a cluster', 'relay', 'admin', 'dynamodb:DeleteItem', 'CLUSTER#'],
  ['a relay writes a policy', 'relay', 'admin', 'dynamodb:UpdateItem', 'CLUSTER#'],
  ['a relay lets the fleet go', 'relay', 'operator', 'dynamodb:UpdateItem', 'FLEET'],
  ['a relay writes records', 'relay', 'node-delta', 'dynamodb:PutItem', 'prod#n1'],
  ['a relay writes nodes', 'relay', 'node-delta', 'dynamodb:UpdateItem', 'prod#n1'],
  ['a relay arms timers', 'relay', 'node-delta', 'scheduler:CreateSchedule', 'schedule/'],
  ['a relay sends what is due', 'relay', 'node-delta', 'sqs:SendMessage', 'taintward-evictions-due'],
  [
    'a relay enters a cluster as evict, by a secret',
    'relay',
    'evict',
    'secretsmanager:GetSecretValue',
    'secret',
  ],
  ['a relay enters a cluster as evict, by a role', 'relay', 'evict', 'sts:AssumeRole', 'role/'],
  ['a relay invokes evict', 'relay', 'admin', 'lambda:InvokeFunction', 'function:taintward-evict'],
  [
    'a relay of other clusters takes a lease',
    'relay for edge-*',
    'relay',
    'dynamodb:UpdateItem',
    'LEASE#prod',
  ],
  [
    'evict enters a cluster as the relay, by a secret',
    'evict',
    'relay',
    'secretsmanager:GetSecretValue',
    'secret',
  ],
  ['evict enters a cluster as the relay, by a role', 'evict', 'relay', 'sts:AssumeRole', 'role/'],
  ['evict takes a lease', 'evict', 'relay', 'dynamodb:UpdateItem', 'LEASE#prod'],
  ['evict writes a policy', 'evict', 'admin', 'dynamodb:UpdateItem', 'CLUSTER#'],
  ['evict lets the fleet go', 'evict', 'operator', 'dynamodb:UpdateItem', 'FLEET'],
  ['a delta function takes a lease', 'node-delta', 'relay', 'dynamodb:UpdateItem', 'LEASE#prod'],
  ['a delta function writes a policy', 'node-delta', 'admin', 'dynamodb:UpdateItem', 'CLUSTER#'],
  ['a delta function registers a cluster', 'pod-delta', 'admin', 'dynamodb:PutItem', 'CLUSTER#'],
  ['a delta function takes turns', 'pod-delta', 'evict', 'dynamodb:UpdateItem', 'RATE#'],
  ['a delta function enters a cluster', 'node-delta', 'evict', 'secretsmanager:GetSecretValue', 'secret'],
  ['a delta function tells deltas', 'node-delta', 'relay', 'sqs:SendMessage', 'taintward-node-deltas.fifo'],
  ['expiry unregisters a cluster', 'expiry', 'admin', 'dynamodb:DeleteItem', 'CLUSTER#'],
  ['expiry arms timers', 'expiry', 'node-delta', 'scheduler:CreateSchedule', 'schedule/'],
  ['heartbeat takes a lease', 'heartbeat', 'relay', 'dynamodb:UpdateItem', 'LEASE#prod'],
  ['a viewer stops', 'viewer', 'operator', 'dynamodb:UpdateItem', 'CLUSTER#'],
  ['a viewer stops the fleet', 'viewer', 'operator', 'dynamodb:UpdateItem', 'FLEET'],
  ['a viewer reads dead letters', 'viewer', 'operator', 'sqs:ReceiveMessage', 'taintward-'],
  ['a viewer sends what is due', 'viewer', 'operator', 'sqs:SendMessage', 'taintward-evictions-due'],
  ['a viewer tells deltas', 'viewer', 'operator', 'sqs:SendMessage', 'taintward-node-deltas.fifo'],
  ['a viewer deletes dead letters', 'viewer', 'operator', 'sqs:DeleteMessage', 'taintward-'],
  ['a viewer invokes evict', 'viewer', 'admin', 'lambda:InvokeFunction', 'function:taintward-evict'],
  ['a viewer enters a cluster', 'viewer', 'admin', 'secretsmanager:GetSecretValue', 'secret'],
  ['an operator invokes evict', 'operator', 'admin', 'lambda:InvokeFunction', 'function:taintward-evict'],
  ['an operator registers a cluster', 'operator', 'admin', 'dynamodb:PutItem', 'CLUSTER#'],
  ['an operator takes a lease', 'operator', 'relay', 'dynamodb:UpdateItem', 'LEASE#prod'],
  ['an admin takes a lease', 'admin', 'relay', 'dynamodb:UpdateItem', 'LEASE#prod'],
  ['an admin writes records', 'admin', 'node-delta', 'dynamodb:PutItem', 'prod#n1'],
];

/** Those of somebody's requests that ask for an action on what begins so. */
const requestsOf = (who: string, action: string, beginning: string): readonly IamRequest[] =>
  asked(who).filter(({ action: each, resource, context }) => {
    const [on = ''] = context['dynamodb:LeadingKeys'] ?? [resource.split(':').slice(5).join(':')];
    return each === action && on.startsWith(beginning);
  });

/** Attributes that the lease of a relay has, and what a guard holds has not. */
const isOfLease = ({ context }: IamRequest) => context['dynamodb:Attributes']?.includes('epoch') ?? true;

describe('what nobody may is refused:', () => {
  for (const [what, who, like, action, beginning] of FORBIDDEN) {
    test(what, () => {
      const requests = requestsOf(like, action, beginning).filter(
        (each) => !beginning.startsWith('LEASE#') || isOfLease(each),
      );
      assert.ok(requests.length > 0, `${like} never asked for ${action} on ${beginning}`);
      assert.deepEqual(requests.filter((each) => may(who, each)).map(shown), []);
    });
  }

  test('an operator writes a policy', () => {
    const requests = requestsOf('admin', 'dynamodb:UpdateItem', 'CLUSTER#').filter(({ context }) =>
      ['policy', 'after'].some((name) => context['dynamodb:Attributes']?.includes(name)),
    );
    assert.equal(requests.length, 2);
    for (const each of requests) assert.ok(!may('operator', each), shown(each));
  });

  test('a relay for one cluster writes of another', () => {
    const all = asked('relay');
    const others = all.filter(
      ({ action, context }) =>
        action === 'dynamodb:UpdateItem' && context['dynamodb:LeadingKeys']?.[0] !== 'LEASE#prod',
    );
    assert.ok(others.length > 0);
    for (const each of others) assert.ok(!may('relay for prod', each), shown(each));
    const rest = all.filter((each) => !others.includes(each));
    assert.deepEqual(refused('relay for prod', rest), []);
  });

  const table = `arn:aws:dynamodb:${REGION}:123456789012:table/taintward`;
  test('anybody reads or writes past the conditions on keys', () => {
    const past = [
      ...['Scan', 'PartiQLSelect', 'PartiQLUpdate', 'PartiQLInsert', 'PartiQLDelete', 'DeleteTable'],
      // As if a request named no key.
      ...['UpdateItem', 'PutItem', 'DeleteItem', 'BatchWriteItem'],
    ].map((action) => secure(`dynamodb:${action}`, table));
    for (const who of Object.keys(GRANTED)) {
      assert.deepEqual(past.filter((each) => may(who, each)).map(shown), [], who);
    }
  });

  test('who knows the URL of a queue, the name of the table or an ARN, and has no rights of his own, uses it', () => {
    for (const who of Object.keys(GRANTED)) {
      const requests = asked(who);
      const letIn = requests.filter((each) => allows([], fargate.resourcePolicies, each));
      assert.deepEqual(letIn.map(shown), [], who);
    }
    for (const { statements } of fargate.resourcePolicies) {
      assert.deepEqual(
        statements.filter(({ Effect }) => Effect !== 'Deny'),
        [],
      );
    }
  });

  test('anybody speaks to table or queues in the clear', () => {
    const clear = ({ context, ...each }: IamRequest) => ({
      ...each,
      context: { ...context, 'aws:SecureTransport': ['false'] },
    });
    for (const who of Object.keys(GRANTED)) {
      const requests = asked(who).filter(({ resource }) => /^arn:aws:(dynamodb|sqs):/.test(resource));
      assert.deepEqual(
        requests
          .map(clear)
          .filter((each) => may(who, each))
          .map(shown),
        [],
        who,
      );
    }
  });
});

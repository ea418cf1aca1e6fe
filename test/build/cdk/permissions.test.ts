import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import type { PodGoneDelta } from '#shared/eviction/facts.ts';
import { type ClusterName, clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import { probeDelta, probeRef } from '#shared/eviction/probe.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import type { Access } from '#shared/state/registry.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startApiServer } from '#simulator/api/server.ts';
import { ObjectStore } from '#simulator/objects/store.ts';
import { until } from '#test/cluster/rig/until.ts';
import { aRecord } from '#test/contracts/partition-builders.ts';
import { RestCluster } from '#test/contracts/rest-cluster.ts';
import { anExpiry } from '#test/unit/expiry/stream-records.ts';
import { type AwsCall, AwsOverHttp } from '#test/world/aws-over-http.ts';
import { fakeClient } from '#test/world/fake-dynamodb.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { runAgent } from './permissions/agent-run.ts';
import { Granted, REGION } from './permissions/granted.ts';
import { DATA_KEY, iamRequests, keyRequests } from './permissions/iam-requests.ts';
import { nodeDeltaOf, podName, TOLERATED } from './permissions/node-delta.ts';
import { allows, type IamRequest } from './permissions/policy.ts';
import type { Statement } from './stack/resources.ts';
import { synthesized, synthesizedAgent } from './stack/synthesized.ts';

const PROD = clusterName('prod');
/** Clusters without any data except their access configuration. */
const FAR = { own: clusterName('eks-own'), assumed: clusterName('eks-far') };
const ROLE = (part: string) => ({ arn: `arn:aws:iam::210987654321:role/taintward-${part}`, externalId: 'x' });
const SECRET = (part: string, cluster: string) =>
  `arn:aws:secretsmanager:${REGION}:123456789012:secret:taintward-${part}/${cluster}-AbCdEf`;
const ACCESSES: Readonly<Record<ClusterName, Access>> = {
  [FAR.own]: { kind: 'eks', clusterName: 'own', region: 'eu-central-1' },
  [FAR.assumed]: {
    kind: 'eks',
    clusterName: 'far',
    region: 'us-east-1',
    role: { relay: ROLE('relay'), evict: ROLE('evict') },
  },
};

const KEY = { 'taintward:kmsKeyArn': DATA_KEY };
const fargate = new Granted(synthesized({ 'taintward:eventBus': 'ops', ...KEY }));
const external = new Granted(synthesized({ 'taintward:relay': 'external', ...KEY }));
const divided = new Granted(
  synthesized({
    'taintward:relay': 'external',
    'taintward:relays': { prod: { clusters: ['prod'] }, edge: { clusters: ['edge-*'] } },
    ...KEY,
  }),
);

/** The clusters of two agents, and the permissions of these agents. */
const EDGE = clusterName('edge');
const CORE = clusterName('core');
const AGENTS = {
  ...KEY,
  'taintward:agents': Object.fromEntries(
    Object.entries({ 'edge-1': EDGE, 'core-1': CORE }).map(([id, cluster]) => [
      id,
      { cluster, podIdentity: { clusterArns: `arn:aws:eks:eu-west-1:123456789012:cluster/${cluster}` } },
    ]),
  ),
};
const edge = new Granted(synthesizedAgent('edge-1', AGENTS));
const core = new Granted(synthesizedAgent('core-1', AGENTS));
const EDGE_DUE = 'taintward-agent-edge-1-evictions-due';
const RESOURCE_POLICIES = [fargate, edge, core].flatMap((each) => each.resourcePolicies);

/** The statements of each caller, by the names that the test uses. */
const GRANTED: Readonly<Record<string, readonly Statement[]>> = {
  ...Object.fromEntries(
    ['node-delta', 'pod-delta', 'evict', 'expiry', 'heartbeat'].map((name) => [
      name,
      fargate.ofFunction(`taintward-${name}`),
    ]),
  ),
  relay: fargate.ofTasks(),
  agent: edge.ofRole('taintward-agent-edge-1-eu-west-1'),
  'schedules of the agent': edge.ofRole('taintward-agent-edge-1-schedules-eu-west-1'),
  'relay of your own': external.ofPolicy('taintward-relay'),
  'relay for prod': divided.ofPolicy('taintward-relay-prod'),
  'relay for edge-*': divided.ofPolicy('taintward-relay-edge'),
  ...Object.fromEntries(
    ['viewer', 'operator', 'admin'].map((size) => [size, fargate.ofPolicy(`taintward-${size}`)]),
  ),
};

const ROLES: Readonly<Record<string, string>> = {
  agent: 'taintward-agent-edge-1-eu-west-1',
  'schedules of the agent': 'taintward-agent-edge-1-schedules-eu-west-1',
};
const roleArn = (name: string) => `arn:aws:iam::123456789012:role/${name}`;

/** Returns a request as IAM sees it from a principal with that role. */
const from = (role: string, { context, ...request }: IamRequest): IamRequest => ({
  ...request,
  context: { ...context, 'aws:PrincipalArn': [roleArn(role)] },
});

const may = (who: string, request: IamRequest): boolean =>
  allows(
    GRANTED[who] ?? assert.fail(`nobody knows ${who}`),
    RESOURCE_POLICIES,
    from(ROLES[who] ?? `role-of-${who}`, request),
  );

const closing = new AsyncDisposableStack();
let aws: AwsOverHttp;
after(() => closing.disposeAsync());

/** Runs a process of the project to its end. Returns its output. */
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

/** Returns a deployed function's response to an invocation. */
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
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
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
  // From the administrator's machine the hidden cluster's address is unreachable: nothing listens there.
  const secrets = (arn: string, who: string) =>
    kubeconfigOf(who === 'admin' && arn.includes('/hidden-') ? 'https://127.0.0.1:9' : server.url);
  aws = await AwsOverHttp.start({ secrets, invoke: invoked });
  closing.defer(() => aws.close());
  const table = new DynamoDbTable({
    client: fakeClient(async (command) => aws.table.perform(command)),
    tableName: 'taintward',
  });
  const registry = new DynamoDbClusterRegistry(table);
  for (const [name, access] of Object.entries(ACCESSES)) {
    await registry.add({ name: clusterName(name), access, addedAt: 0 });
  }

  // Run the users' commands first: they register the cluster.
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
  const ref = { cluster: PROD, node: n1 };
  for (const [index, tolerationSeconds] of TOLERATED.entries()) {
    const toleration = { key: 'now', operator: 'Exists', effect: 'NoExecute' } as const;
    await cluster.createPod(podName(ref, index), {
      node: n1,
      tolerations: tolerationSeconds === undefined ? [] : [{ ...toleration, tolerationSeconds }],
    });
  }
  const uids = (
    await cluster.api.podsOnNode(
      n1,
      TOLERATED.map((_, index) => ({ namespace: 'permissions', name: podName(ref, index) })),
    )
  ).map(({ uid }) => uid as string);
  assert.equal(uids.length, 3);

  // The relay runs the whole time, and sees nodes go down, which trips the guard.
  const relay = spawn(process.execPath, [join(PROJECT_DIR, 'functions/relay/main.ts')], {
    env: {
      ...aws.environment('relay', REGION),
      TABLE_NAME: 'taintward',
      METRIC_NAMESPACE: 'taintward',
      PROBE_HOST: '127.0.0.1',
      PROBE_PORT: '0',
      NODE_DELTAS_URL: queueUrl('node-deltas.fifo'),
      POD_DELTAS_URL: queueUrl('pod-deltas.fifo'),
    },
    stdio: 'ignore',
  });
  closing.defer(async () => {
    if (relay.exitCode !== null) return;
    relay.kill('SIGKILL');
    await once(relay, 'close');
  });
  const untilCalled = (fits: (call: AwsCall) => boolean) =>
    until('the relay has said it', () => aws.by('relay').some(fits) || undefined);
  await untilCalled(
    ({ operation, input }) => operation === 'SendMessageBatch' && JSON.stringify(input).includes('n1'),
  );
  const { epoch } = (await new DynamoDbLeases(table).read(PROD)) ?? assert.fail('the relay has no lease');
  const { taintsStamp = '' } = (await cluster.api.getNode(n1)) ?? assert.fail('there is no such node');
  const delta = (node: NodeRef, ids: readonly string[]) =>
    sqsRecord(encodeDelta(nodeDeltaOf(node, ids, epoch, taintsStamp)), {
      groupId: messageGroupId(node),
      senderId: 'AROArelay:1',
    });
  const far = Object.values(FAR).map((name) => ({ cluster: name, node: n1 }));
  const unreadable = sqsRecord('nonsense', { groupId: 'g' });
  const probe = sqsRecord(
    encodeDelta(probeDelta(PROD, { sentAt: Date.now(), sequence: 1, isTraced: true })),
    { groupId: messageGroupId(probeRef(PROD)), senderId: 'AROArelay:1' },
  );
  const [first = ''] = uids;
  const { observedAt, taints } = nodeDeltaOf(ref, uids, epoch);
  const gone: PodGoneDelta = {
    kind: 'pod-gone',
    ref,
    version: { epoch, sequence: 2 },
    observedAt,
    taints,
    taintsStamp,
    uid: podUid('gone'),
  };
  const ofPod = sqsRecord(encodeDelta(gone), {
    groupId: messageGroupId(ref),
    senderId: 'AROArelay:1',
  });
  await callFunction(
    'node-delta',
    'deltas',
    sqsEvent(delta(ref, uids)),
    sqsEvent(probe),
    sqsEvent(...far.map((each) => delta(each, ['u']))),
    sqsEvent(unreadable),
  );
  await callFunction('pod-delta', 'deltas', sqsEvent(ofPod, unreadable));
  const due = (node: NodeRef, at = Date.now()) =>
    sqsRecord(encodeDue({ ...node, at }), { groupId: node.cluster });
  await callFunction(
    ...(['evict', 'evict'] as const),
    sqsEvent(due(probeRef(PROD))),
    sqsEvent(due(ref)),
    sqsEvent(...far.map((each) => due(each)), due(ref, Date.now() + 60_000), unreadable),
  );
  const [evicted] = await cluster.api.podsOnNode(n1, [{ namespace: 'permissions', name: podName(ref, 0) }]);
  assert.ok(evicted?.terminating ?? true, 'nobody was evicted');
  const dir = mkdtempSync(join(tmpdir(), 'taintward-permissions-'));
  closing.defer(() => rmSync(dir, { recursive: true }));
  await typed('admin', 'clusters add edge --agent edge-1', `policy apply --file ${policy} --yes edge`);
  const agent = closing.use(
    await runAgent({
      aws,
      api: cluster,
      kubeconfig: kubeconfigOf(server.url),
      table,
      dir,
      callFunction,
      cluster: EDGE,
      environment: edge.output('Environment'),
    }),
  );
  const expired = aRecord({ uid: podUid('expired'), dueAt: Date.now() - 1_000 });
  await callFunction('expiry', 'expiry', { Records: [anExpiry(ref, expired)] });
  const unreachable = { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' } as const;
  for (const node of down) await cluster.setTaints(node, [unreachable], 'node-controller');
  await untilCalled(({ operation }) => operation === 'TransactWriteItems');
  await agent.called(({ input }) => JSON.stringify(input).includes('guard-tripped'));
  // Calls that take minutes to occur, or a pass of their own, are made under their callers' names by the code that
  // makes them there.
  const { AWS_ENDPOINT_URL: endpoint = '' } = aws.environment('relay', REGION);
  const tableOf = (accessKeyId: string) => {
    const credentials = { accessKeyId, secretAccessKey: 'secret' };
    const client = new DynamoDBClient({ endpoint, region: REGION, credentials });
    return new DynamoDbTable({ client, tableName: 'taintward' });
  };
  for (const [who, requests] of [
    ['relay', PROD],
    ['agent', EDGE],
  ] as const) {
    const leases = new DynamoDbLeases(tableOf(who));
    const found = (await leases.read(requests)) ?? assert.fail(`${who} has no lease`);
    const lease = { ...found, holder: 'somebody' };
    await leases.bid(lease, { holder: 'other', load: 1 });
    await leases.reportStuck(lease, []);
    const proofs = dynamoDbProofs(tableOf(who));
    await Promise.all([proofs.read(requests), proofs.tracedAt(requests)]);
    await new DynamoDbHistory(tableOf(who)).noteGone(requests, [{ uid: podUid(first), at: Date.now() }]);
  }
  await callFunction('heartbeat', 'heartbeat', {});
  const setAside = () => {
    for (const queue of ['evictions-due-dlq', 'node-deltas-dlq.fifo', 'expiry-dlq'])
      aws.send(`taintward-${queue}`, '{}', { id: 'm1', group: 'm1' });
  };
  setAside();
  await typed(
    'operator',
    ...['stop prod --reason x', 'resume prod --reason x', 'stop --all --reason x'],
    ...['resume prod --reason x', 'resume --all --reason x'],
    ...[
      'hold node n1 --yes --cluster prod --reason x',
      'release guard prod --reason x',
      'retry prod',
      'dead-letters list',
      'dead-letters redrive --queue evictions-due',
      'dead-letters redrive --all',
      'doctor',
    ],
  );
  await typed(
    'viewer',
    ...['clusters list', 'clusters show prod', 'policy get prod', 'pending prod', 'holds prod', 'audit prod'],
    ...['history prod', 'status', 'doctor'],
  );
  setAside();
  await typed(
    'admin',
    ...['doctor', 'dead-letters redrive --queue evictions-due', 'clusters remove prod --yes'],
  );
  const ended = once(relay, 'close');
  relay.kill('SIGTERM');
  await ended;
});

const queueUrl = (name: string) => `https://sqs.${REGION}.amazonaws.com/123456789012/taintward-${name}`;

const secure = (action: string, resource: string): IamRequest => ({
  action,
  resource,
  context: { 'aws:SecureTransport': ['true'] },
});

/** Returns the distinct IAM requests of a caller's calls. */
function iamRequestsOf(who: string): readonly IamRequest[] {
  const requests = aws.by(who).flatMap(iamRequests);
  return [...new Map(requests.map((each) => [JSON.stringify(each), each])).values()];
}

const shown = ({ action, resource, context }: IamRequest) =>
  `${action} on ${resource.split(':').slice(5).join(':')} ${context['dynamodb:LeadingKeys'] ?? ''}`;

const refused = (who: string, requests: readonly IamRequest[]) =>
  requests.filter((each) => !may(who, each)).map(shown);

/** Users look into clusters with permissions of their own, if they have them: `status` works without. */
const PEOPLE = ['viewer', 'operator', 'admin'];
const ENTERING = ['eks:DescribeCluster', 'secretsmanager:GetSecretValue', 'sts:AssumeRole'];
/** For a viewer, `doctor` says that the permissions of `evict` are not verified. */
const UNVERIFIED: Readonly<Record<string, string>> = { viewer: 'lambda:InvokeFunction' };

describe('IAM allows every request of', () => {
  for (const who of [
    'node-delta',
    'pod-delta',
    'evict',
    'expiry',
    'heartbeat',
    'relay',
    'agent',
    'viewer',
    'operator',
    'admin',
  ]) {
    test(who, () => {
      assert.ok(iamRequestsOf(who).length > 1, `${who} asked for next to nothing`);
      const isTheirs = ({ action }: IamRequest) =>
        !PEOPLE.includes(who) || !(ENTERING.includes(action) || action === UNVERIFIED[who]);
      assert.deepEqual(refused(who, iamRequestsOf(who).filter(isTheirs)), []);
    });
  }

  test('a relay of your own, for all clusters', () => {
    assert.deepEqual(refused('relay of your own', iamRequestsOf('relay')), []);
  });
});

test('allows a function the calls that Lambda makes as the function to feed it', () => {
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
    const withKey = requests.flatMap((each) => [each, ...keyRequests(each)]);
    assert.deepEqual(refused(functionName.replace('taintward-', ''), withKey), []);
  }
});

test('covers every AWS call in the code', () => {
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
    [],
  );
});

/** Requests that one caller makes and another may not, by the action and the prefix of the key or the resource. */
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
  ['an admin enters a cluster as the relay', 'admin', 'relay', 'secretsmanager:GetSecretValue', 'secret'],
  ['an admin enters a cluster as evict', 'admin', 'evict', 'secretsmanager:GetSecretValue', 'secret'],
  ['an admin enters a cluster by a role', 'admin', 'evict', 'sts:AssumeRole', 'role/'],
  ['an operator registers a cluster', 'operator', 'admin', 'dynamodb:PutItem', 'CLUSTER#'],
  ['an operator takes a lease', 'operator', 'relay', 'dynamodb:UpdateItem', 'LEASE#prod'],
  ['an admin takes a lease', 'admin', 'relay', 'dynamodb:UpdateItem', 'LEASE#prod'],
  ['an admin writes records', 'admin', 'node-delta', 'dynamodb:PutItem', 'prod#n1'],
];

/** Returns a caller's requests for an action on keys or resources with a prefix. */
const requestsOf = (who: string, action: string, beginning: string): readonly IamRequest[] =>
  iamRequestsOf(who).filter(({ action: requested, resource, context }) => {
    const [on = ''] = context['dynamodb:LeadingKeys'] ?? [resource.split(':').slice(5).join(':')];
    return requested === action && on.startsWith(beginning);
  });

/** Reports whether a request writes a relay's lease: a lease has attributes that the guard's trips do not have. */
const isOfLease = ({ context }: IamRequest) => context['dynamodb:Attributes']?.includes('epoch') ?? true;

describe('IAM denies that', () => {
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
    assert.equal(requests.length, 4);
    for (const each of requests) assert.ok(!may('operator', each), shown(each));
  });

  test('a relay for one cluster writes items of another', () => {
    const all = iamRequestsOf('relay');
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
  test('any caller reads or writes past the conditions on keys', () => {
    const past = [
      ...['Scan', 'PartiQLSelect', 'PartiQLUpdate', 'PartiQLInsert', 'PartiQLDelete', 'DeleteTable'],
      // Requests without keys.
      ...['UpdateItem', 'PutItem', 'DeleteItem', 'BatchWriteItem'],
    ].map((action) => secure(`dynamodb:${action}`, table));
    for (const who of Object.keys(GRANTED)) {
      assert.deepEqual(past.filter((each) => may(who, each)).map(shown), [], who);
    }
  });

  test('a caller without permissions uses a queue, the table, or an ARN that is known to the caller', () => {
    for (const who of Object.keys(GRANTED)) {
      const requests = iamRequestsOf(who);
      const letIn = requests.filter((each) => allows([], RESOURCE_POLICIES, each));
      assert.deepEqual(letIn.map(shown), [], who);
    }
    for (const { statements } of RESOURCE_POLICIES) {
      assert.deepEqual(
        statements.filter(({ Effect }) => Effect !== 'Deny'),
        [],
      );
    }
  });

  test('any caller sends unencrypted requests to table or queues', () => {
    const clear = ({ context, ...request }: IamRequest) => ({
      ...request,
      context: { ...context, 'aws:SecureTransport': ['false'] },
    });
    for (const who of Object.keys(GRANTED)) {
      const requests = iamRequestsOf(who).filter(({ resource }) => /^arn:aws:(dynamodb|sqs):/.test(resource));
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

describe('an agent', () => {
  const arnOfQueue = (name: string) => `arn:aws:sqs:${REGION}:123456789012:${name}`;
  const CORE_DUE = EDGE_DUE.replace('edge', 'core');
  const TABLE = `arn:aws:dynamodb:${REGION}:123456789012:table/taintward`;
  /** Returns the same request for the other agent's cluster. */
  const elsewhere = (request: IamRequest): IamRequest =>
    JSON.parse(
      JSON.stringify(request)
        .replaceAll('edge-1', 'core-1')
        .replaceAll(/(?<![\w-])edge(?![\w-])/g, 'core'),
    );
  const isOfOne = (request: IamRequest) => !isDeepStrictEqual(request, elsewhere(request));
  const allowed = (requests: readonly IamRequest[]) =>
    requests.filter((each) => may('agent', each)).map(shown);

  test('may make each of its requests for its own cluster, and none for another', () => {
    const requests = iamRequestsOf('agent').filter(isOfOne);
    assert.deepEqual(new Set(requests.map(({ action }) => action)), new Set(OF_AGENT));
    assert.deepEqual(allowed(requests.map(elsewhere)), []);
  });

  test('may also use shared resources: the deltas’ queues, the stop of the fleet, the table’s tags, the key', () => {
    const rest = iamRequestsOf('agent').filter((each) => !isOfOne(each));
    assert.deepEqual(
      new Set(rest.map(({ action, resource }) => `${action} ${resource.split(':').at(-1)}`)),
      new Set([
        ...['dynamodb:DescribeTable table/taintward', 'dynamodb:ListTagsOfResource table/taintward'],
        ...['sqs:SendMessage taintward-node-deltas.fifo', 'sqs:SendMessage taintward-pod-deltas.fifo'],
        ...['Decrypt', 'GenerateDataKey'].map((action) => `kms:${action} ${DATA_KEY.split(':').at(-1)}`),
      ]),
    );
    const fleet = { ...secure('dynamodb:GetItem', TABLE) };
    assert.ok(may('agent', { ...fleet, context: { ...fleet.context, 'dynamodb:LeadingKeys': ['FLEET'] } }));
  });

  test('may read and write nothing of another cluster together with its own', () => {
    const batches = iamRequestsOf('agent').filter(({ action }) => /:Batch(Get|Write)Item$/.test(action));
    assert.ok(batches.length > 1);
    for (const batch of batches) {
      const keys = batch.context['dynamodb:LeadingKeys'] ?? [];
      for (const other of ['core#n9', 'LEASE#core', 'CLUSTER#core', 'CLUSTER#prod', 'edges#n9']) {
        const mixed = { ...batch, context: { ...batch.context, 'dynamodb:LeadingKeys': [...keys, other] } };
        assert.ok(!may('agent', mixed), shown(mixed));
      }
    }
  });

  test('may make requests of other callers only for its own cluster or for shared resources', () => {
    const others = Object.keys(GRANTED).filter((who) => who !== 'agent');
    const common = iamRequestsOf('agent').map(shown);
    const more = others
      .flatMap(iamRequestsOf)
      .filter((each) => may('agent', each) && !isOfOne(each))
      .map(shown)
      .filter((each) => !common.includes(each) && !each.endsWith(' FLEET'));
    assert.deepEqual(more, []);
    // The writes of users and functions for its own cluster are denied, too.
    const ruling = others
      .flatMap(iamRequestsOf)
      .filter(
        ({ action, context }) =>
          !/:(Get|BatchGet)Item$|:Query$/.test(action) && context['dynamodb:LeadingKeys'],
      )
      .filter(({ context }) => /^(CLUSTER#|FLEET)/.test(context['dynamodb:LeadingKeys']?.[0] ?? ''));
    assert.ok(ruling.some((each) => shown(each).endsWith(' CLUSTER#edge')));
    assert.deepEqual(allowed(ruling), []);
  });

  test('may read nothing by a request without keys, in table or index', () => {
    const reads = ['GetItem', 'BatchGetItem', 'Query'].flatMap((action) =>
      [TABLE, `${TABLE}/index/by-cluster`].map((on) => secure(`dynamodb:${action}`, on)),
    );
    assert.deepEqual(allowed(reads), []);
  });

  test('may find no registrations and no audit by the index', () => {
    const query = secure('dynamodb:Query', `${TABLE}/index/by-cluster`);
    const under = (key: string) => ({
      ...query,
      context: { ...query.context, 'dynamodb:LeadingKeys': [key] },
    });
    assert.deepEqual(allowed(['CLUSTERS', 'AUDIT', 'TAINTED#core#0', 'HISTORY#prod#7'].map(under)), []);
    assert.ok(may('agent', under('TAINTED#edge#0')));
  });

  test('has schedules that may send to its own queue and to no other', () => {
    const send = (queue: string) => secure('sqs:SendMessage', arnOfQueue(queue));
    const schedules = (queue: string) =>
      [send(queue), ...keyRequests(send(queue))].every((each) => may('schedules of the agent', each));
    assert.deepEqual(
      [EDGE_DUE, CORE_DUE, 'taintward-evictions-due', 'taintward-node-deltas.fifo'].map(schedules),
      [true, false, false, false],
    );
  });

  test('may receive due evictions from functions and operators, which derive its queue from its cluster', () => {
    const due = (who: string) =>
      iamRequestsOf(who).filter((each) => each.resource.includes('taintward-agent-edge-1') && may(who, each));
    assert.deepEqual(
      new Set(due('node-delta').map(({ action }) => action)),
      new Set(['sqs:SendMessage', 'scheduler:CreateSchedule', 'iam:PassRole']),
    );
  });

  test('cannot send a delta of another cluster, or of a cluster whose lease nobody holds', async () => {
    const before = aws.calls.length;
    const forged = [PROD, CORE].map((cluster) => ({ cluster, node: nodeName('forged') }));
    const records = forged.map((ref) =>
      sqsRecord(encodeDelta(nodeDeltaOf(ref, ['u'], Math.floor(Date.now() / 1000) + 3600)), {
        groupId: messageGroupId(ref),
        senderId: 'AROAagent:1',
      }),
    );
    await callFunction('node-delta', 'deltas', sqsEvent(...records));
    const calls = aws.calls.slice(before).filter(({ who }) => who === 'node-delta');
    const written = calls.filter(({ operation }) => /(Put|Update|Delete|Write)Item/.test(operation));
    assert.deepEqual(written, []);
    const letters = calls.filter(({ operation }) => operation === 'SendMessageBatch');
    assert.ok(
      letters.every(({ input }) => String(input['QueueUrl']).endsWith('taintward-node-deltas-dlq.fifo')),
    );
    const text = JSON.stringify(letters);
    for (const { cluster } of forged)
      assert.ok(text.includes(`AROAagent:1 sent it for cluster ${cluster}, but never held`), text);
  });
});

/** Every action that an agent requests for its own cluster. */
const OF_AGENT = [
  ...['GetItem', 'BatchGetItem', 'Query', 'PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem'].map(
    (action) => `dynamodb:${action}`,
  ),
  ...['ReceiveMessage', 'DeleteMessage', 'ChangeMessageVisibility', 'SendMessage'].map(
    (action) => `sqs:${action}`,
  ),
  ...['scheduler:CreateSchedule', 'iam:PassRole'],
];

describe('the queue of an agent, for principals with all SQS permissions,', () => {
  /** A principal with all permissions for SQS. */
  const ALL: readonly Statement[] = [{ Effect: 'Allow', Action: ['sqs:*'], Resource: ['*'] }];
  const ofQueue = (name: string) => `arn:aws:sqs:${REGION}:123456789012:${name}`;
  const can = (role: string, action: string, queue: string) =>
    allows(ALL, RESOURCE_POLICIES, from(role, secure(`sqs:${action}`, ofQueue(queue))));
  const [OWN, OTHER] = ['taintward-agent-edge-1-eu-west-1', 'taintward-agent-core-1-eu-west-1'];
  const TAKING = ['ReceiveMessage', 'DeleteMessage', 'ChangeMessageVisibility', 'PurgeQueue'];

  test('is read by that agent alone', () => {
    for (const action of TAKING) {
      assert.ok(can(OWN, action, EDGE_DUE), action);
      for (const role of [OTHER, 'Admin', 'taintward-FunctionsEvictRole'])
        assert.ok(!can(role, action, EDGE_DUE), `${role} ${action}`);
    }
  });

  test('accepts nothing from another agent or its schedules, which have no access to its dead letters either', () => {
    for (const role of [
      OTHER,
      'taintward-agent-core-1-schedules-eu-west-1',
      'taintward-agent-edge-eu-west-1',
    ])
      for (const queue of [EDGE_DUE, `${EDGE_DUE}-dlq`])
        for (const action of ['SendMessage', 'GetQueueAttributes', ...TAKING])
          assert.ok(!can(role, action, queue), `${role} ${action} ${queue}`);
  });

  test('accepts messages of functions, operators, and its own schedules', () => {
    for (const role of [
      'taintward-FunctionsEvictRole',
      'Operator',
      OWN,
      'taintward-agent-edge-1-schedules-eu-west-1',
    ])
      assert.ok(can(role, 'SendMessage', EDGE_DUE), role);
    assert.ok(can('Operator', 'StartMessageMoveTask', `${EDGE_DUE}-dlq`));
    assert.ok(can('Operator', 'ReceiveMessage', `${EDGE_DUE}-dlq`));
  });
});

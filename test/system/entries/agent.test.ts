import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import { encodeDue } from '#shared/aws/due-message.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { AwsCall } from '#test/world/aws-over-http.ts';
import {
  clusterWithoutDelete,
  comparing,
  forwarding,
  heldRegistry,
  type Installation,
  kubeconfigOf,
  probed,
  startInstallation,
  startProgram,
  withoutWait,
} from './entries.ts';

const EDGE = clusterName('edge');
const PROD = clusterName('prod');

/** Registers each cluster with an agent, enforces evictions in `edge`, and returns the table. */
async function registered(environment: Installation['environment']): Promise<DynamoDbTable> {
  Object.assign(process.env, environment);
  const table = new DynamoDbTable({ client: new DynamoDBClient(), tableName: 'taintward' });
  for (const name of [EDGE, PROD]) {
    const access = { kind: 'agent', agent: `${name}-1` } as const;
    await new DynamoDbClusterRegistry(table).add({ name, access, addedAt: systemClock.now() });
  }
  const operator = { rulesStore: new DynamoDbRulesStore(table), clock: systemClock, actor: 'anna' };
  const text = 'mode: enforce\nguard: { cluster: { percent: 1, nodes: 1 } }\n';
  await perform({ kind: 'apply-policy', cluster: EDGE, text }, operator);
  return table;
}

test('the entry of an agent rejects due evictions of other clusters, is ready once its registration is read, follows and evicts in its own, and stops', async (context) => {
  const registry = heldRegistry();
  const { held } = registry;
  const { aws, cluster, environment: shared, queueUrl } = await startInstallation(context, { held });
  const queue = 'taintward-agent-edge-1-evictions-due';
  const environment = { ...shared, EVICTIONS_DUE_URL: queueUrl(queue) };
  const table = await registered(shared);
  const web = cluster.pods().filter(({ name, node }) => name.startsWith('web') && node === 'node-1');
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig],
    { ...environment, AGENT: 'edge-1', CLUSTER: EDGE },
  );
  await until('it reads its registration', () => registry.reads() > 0);
  assert.match(await probed(agent, 'readyz'), /^\[-\]unreadable failed: /);
  registry.release();
  const foreign = encodeDue({ cluster: PROD, node: nodeName('node-1'), at: 1 });
  aws.send(queue, foreign);
  // A schedule's message comes without a group. Its time may be too far for a delayed message, or near.
  for (const waitMs of [3_600_000, 60_000])
    aws.send(queue, encodeDue({ cluster: EDGE, node: nodeName('node-2'), at: Date.now() + waitMs }));
  const [letter] = await until('the message is set aside', () => {
    const letters = aws.bodies('dead-letters');
    return letters.length > 0 && letters;
  });
  const isScheduled = ({ operation, input }: AwsCall) =>
    operation === 'CreateSchedule' && JSON.stringify(input).includes(`"${shared['EVICTIONS_DUE_ARN']}"`);
  await until('the first one is scheduled', () => aws.calls.some(isScheduled));
  await until('only the near one is in the queue', () => aws.bodies(queue).length === 1);
  const deltas = await until('deltas are sent', () => aws.take('node-deltas.fifo'));
  process.env['SOURCE_QUEUE_URL'] = queueUrl('node-deltas.fifo');
  const { handler } = await import('#functions/deltas/lambda.ts');
  await handler(deltas, { getRemainingTimeInMillis: () => 30_000 } as Context);
  await until('its pods are evicted', () => {
    const left = new Set(cluster.pods().map(({ uid }) => uid));
    return web.every(({ uid }) => !left.has(uid));
  });
  await until('the agent counts its work', async () => {
    const metrics = await probed(agent, 'metrics');
    return [
      /^taintward_agent_messages_total{outcome="done"} [1-9]/m,
      /^taint_eviction_controller_pod_deletions_total [1-9]/m,
      /^taintward_relay_deltas_sent_total{.*} [1-9]/m,
    ].every((pattern) => pattern.test(metrics));
  });
  assert.match(await probed(agent, 'readyz?verbose'), /^\[\+\]edge\/live ok$/m);
  const { code, stderr } = await agent.stop();
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(letter, foreign);
  const leases = new DynamoDbLeases(table);
  assert.equal((await leases.read(EDGE))?.holder, undefined, 'the lease is released');
  assert.equal(await leases.read(PROD), undefined, 'not followed');
  const events = agent.out.all.map((line) => JSON.parse(line).event);
  // It sends its last deltas before it ends.
  const ends = events.filter((event) => event !== 'relay.delta-sent').slice(-2);
  assert.deepEqual(ends, ['relay.stopping', 'relay.stopped']);
});

test('the entry of an agent that stops finishes the eviction in hand, then posts its Events', async (context) => {
  const { aws, cluster, environment: shared, queueUrl } = await startInstallation(context);
  const queue = 'taintward-agent-edge-1-evictions-due';
  await registered(shared);
  const forward = forwarding(cluster, comparing);
  /** Requests that wait for their release, by kind. */
  const held = { deletes: Promise.withResolvers<void>(), events: Promise.withResolvers<void>() };
  const sent = { deletes: 0, events: 0 };
  const failed = new Set<string>();
  const server = createServer(async (incoming, answer) => {
    const { method, url = '' } = incoming;
    const isDelete = method === 'DELETE' && url.includes('/pods/');
    const kind = isDelete ? 'deletes' : method === 'POST' && url.includes('/events') ? 'events' : undefined;
    // The agent arms the timer of the next try.
    if (isDelete && !failed.has(url)) {
      failed.add(url);
      return void answer.writeHead(500).end();
    }
    if (kind) {
      sent[kind] += 1;
      await held[kind].promise;
    }
    forward(incoming, answer);
  });
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', 'c', '--kubeconfig', await kubeconfigOf(context, server)],
    {
      ...shared,
      EVICTIONS_DUE_URL: queueUrl(queue),
      AGENT: 'edge-1',
      CLUSTER: EDGE,
      COMPARISON_OPERATORS: 'true',
    },
  );
  const tolerant = cluster.pods().find(({ name, node }) => name.startsWith('db') && node === 'node-1');
  cluster.taint('node-1', 'maintenance=5:NoExecute');
  const deltas = await until('deltas are sent', () => aws.take('node-deltas.fifo'));
  process.env['SOURCE_QUEUE_URL'] = queueUrl('node-deltas.fifo');
  // An entry reads its environment when it is loaded.
  const { handler } = await import(`${import.meta.resolve('#functions/deltas/lambda.ts')}?again`);
  await handler(deltas, { getRemainingTimeInMillis: () => 30_000 } as Context);
  await until('an eviction is in hand', () => sent.deletes > 0);
  const [inHand = ''] = aws.bodies(queue).toSorted((a, b) => JSON.parse(a).at - JSON.parse(b).at);
  const stopped = agent.stop();
  /** Only what is held keeps the agent from ending. */
  const assertWaits = async (reason: string) => assert.equal(await endsWithin(500, stopped), false, reason);
  await assertWaits('it finishes the eviction');
  held.deletes.resolve();
  await until('its Events are sent', () => sent.events > 0);
  await assertWaits('it posts the Events');
  await until('its message is deleted', () => !aws.bodies(queue).includes(inHand));
  held.events.resolve();
  assert.equal((await stopped).code, 0);
  const kept = cluster.pods().find(({ uid }) => uid === tolerant?.uid);
  assert.equal(kept?.status, 'Running', 'it tolerates the taint by its number');
});

test('the entry of an agent shows faults, trips, and an unreachable queue on its probes, and ends after its time to stop', async (context) => {
  const { cluster, environment } = await startInstallation(context);
  await registered(environment);
  for (const node of ['node-1', 'node-2']) cluster.taint(node, 'node.kubernetes.io/unreachable:NoExecute');
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig],
    {
      ...environment,
      // No server listens at this port.
      AWS_ENDPOINT_URL_SQS: 'http://127.0.0.1:9',
      AGENT: 'edge-1',
      CLUSTER: EDGE,
      // Its stopwatch is fast, because short outages of a queue are not shown.
      NODE_OPTIONS: `--import=data:text/javascript,const{now}=performance;performance.now=()=>100*now.call(performance) ${withoutWait(25_000)}`,
    },
  );
  await until('all is shown', async () => {
    const shown = await probed(agent, 'readyz');
    return ['queue-unavailable', 'queue-failing', 'guard-tripped'].every((type) =>
      shown.includes(`[-]edge/${type} failed: `),
    );
  });
  assert.equal((await agent.stop()).code, 0);
  const events = agent.out.all.map((line) => `${JSON.parse(line).event}`);
  const ends = events.filter((event) => /relay\.(stop|shutdown)/.test(event));
  assert.deepEqual(ends, ['relay.stopping', 'relay.shutdown-timed-out', 'relay.stopped']);
  assert.ok(!events.includes('relay.over-capacity'));
});

test('the entry of an agent waits for messages, and returns one that comes when it stops', async (context) => {
  const { aws, cluster, environment, queueUrl } = await startInstallation(context, { waitMs: 5_500 });
  await registered(environment);
  const queue = 'taintward-agent-edge-1-evictions-due';
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig],
    { ...environment, EVICTIONS_DUE_URL: queueUrl(queue), AGENT: 'edge-1', CLUSTER: EDGE },
  );
  const received = () => aws.calls.filter(({ operation }) => operation === 'ReceiveMessage');
  await until('it receives again', () => received().length > 1);
  const stopped = agent.stop();
  await until('it stops', () => agent.out.text.includes('"event":"relay.stopping"'));
  aws.send(queue, encodeDue({ cluster: EDGE, node: nodeName('node-1'), at: 1 }));
  assert.equal((await stopped).code, 0);
  assert.ok(received().every(({ attempt }) => attempt === 1));
  const returned = aws.calls.find(({ operation }) => operation === 'ChangeMessageVisibilityBatch');
  assert.match(JSON.stringify(returned?.input), /"VisibilityTimeout":0/);
});

test('the entry of an agent stops although its API server never answered', async (context) => {
  const { cluster, environment } = await startInstallation(context);
  const table = await registered(environment);
  // No server listens at this port.
  const kubeconfig = `${cluster.kubeconfig}.closed`;
  writeFileSync(
    kubeconfig,
    readFileSync(cluster.kubeconfig, 'utf8').replace(/127\.0\.0\.1:\d+/, '127.0.0.1:9'),
  );
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', cluster.context, '--kubeconfig', kubeconfig],
    { ...environment, AGENT: 'edge-1', CLUSTER: EDGE },
  );
  await until('the agent tried', () => agent.out.text.includes('"event":"cluster.unreachable"'));
  assert.match(
    await probed(agent, 'readyz'),
    /^\[-\]edge\/disconnected failed: The relay .* has never connected/m,
  );
  const { code, stderr } = await agent.stop();
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(await new DynamoDbLeases(table).read(EDGE), undefined, 'another agent may reach the cluster');
});

test('the entry of an agent that cannot start prints one sentence', async (context) => {
  const { cluster, environment } = await startInstallation(context);
  await registered(environment);
  const reached = ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig];
  const cases = [
    [
      /lack permissions.* delete pods/,
      ['--context', 'c', '--kubeconfig', await clusterWithoutDelete(context)],
    ],
    [/KUBERNETES_SERVICE_HOST/, []],
    [/no such file|ENOENT/, ['--context', 'c', '--kubeconfig', '/nowhere']],
    [/192\.0\.2\.1/, reached, { PROBE_HOST: '192.0.2.1' }],
  ] as const;
  for (const [sentence, args, env] of cases) {
    const own = { ...environment, ...env, AGENT: 'edge-1', CLUSTER: EDGE };
    const { code, stderr } = await startProgram(context, '#functions/agent/main.ts', args, own).exit;
    assert.deepEqual([code, stderr.trimEnd().split('\n').length], [1, 1], stderr);
    assert.match(stderr, sentence);
  }
});

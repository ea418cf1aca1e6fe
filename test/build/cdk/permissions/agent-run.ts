import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { SQSClient } from '@aws-sdk/client-sqs';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import { encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { schedulesIn } from '#shared/aws/due-queues.ts';
import { agentEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { sqsVisibility } from '#shared/aws/sqs-visibility.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { until } from '#test/cluster/rig/until.ts';
import { aNode, anEnding } from '#test/contracts/partition-builders.ts';
import type { RestCluster } from '#test/contracts/rest-cluster.ts';
import type { AwsCall, AwsOverHttp } from '#test/world/aws-over-http.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { REGION } from './granted.ts';
import { nodeDeltaOf, podName, TOLERATED } from './node-delta.ts';

export interface AgentRun {
  readonly aws: AwsOverHttp;
  /** The API server of the agent's cluster, and the kubeconfig for it. */
  readonly api: RestCluster;
  readonly kubeconfig: string;
  readonly table: DynamoDbTable;
  /** A directory for files. */
  readonly dir: string;
  readonly cluster: ClusterName;
  /** The environment of the agent, from its stack's output `Environment`. */
  readonly environment: string;
  readonly callFunction: (name: string, room: string, ...events: readonly object[]) => Promise<string>;
}

/** A running agent; its calls are recorded under the name `agent`. */
export interface RunningAgent extends AsyncDisposable {
  /** Resolves as soon as the agent has made such a call. */
  called(fits: (call: AwsCall) => boolean): Promise<unknown>;
}

/**
 * Runs an agent that reports a tainted node in its cluster, for which a delta function schedules evictions, and that
 * evicts the due pods. The agent runs until it is disposed of.
 */
export async function runAgent(run: AgentRun): Promise<RunningAgent> {
  const environment = Object.fromEntries(
    run.environment.split(' ').map((each) => each.split(/=(.*)/s).slice(0, 2) as [string, string]),
  );
  const queue = environment['EVICTIONS_DUE_URL']?.split('/').at(-1) ?? assert.fail('it has no queue');
  const process = start(run, environment);
  const called: RunningAgent['called'] = (fits) =>
    until('the agent has called', () => run.aws.by('agent').some(fits) || undefined);
  const agent: RunningAgent = { called, [Symbol.asyncDispose]: () => stop(process) };
  try {
    await work(run, agent, queue);
    await inItsName(run, environment);
    return agent;
  } catch (error) {
    await stop(process);
    throw error;
  }
}

async function work(
  { aws, api, table, cluster, callFunction }: AgentRun,
  { called }: RunningAgent,
  queue: string,
): Promise<void> {
  const ref = { cluster, node: nodeName('n9') };
  await api.createNode(ref.node, [{ key: 'now', effect: 'NoExecute' }]);
  const toleration = { key: 'now', operator: 'Exists', effect: 'NoExecute' } as const;
  for (const [index, tolerationSeconds] of TOLERATED.entries()) {
    const tolerations = tolerationSeconds === undefined ? [] : [{ ...toleration, tolerationSeconds }];
    await api.createPod(podName(ref, index), { node: ref.node, tolerations });
  }
  const names = TOLERATED.map((_, index) => ({ namespace: 'permissions', name: podName(ref, index) }));
  const uids = (await api.api.podsOnNode(ref.node, names)).map(({ uid }) => uid as string);
  await called(
    ({ operation, input }) => operation === 'SendMessageBatch' && JSON.stringify(input).includes('n9'),
  );
  const { epoch } = (await new DynamoDbLeases(table).read(cluster)) ?? assert.fail('the agent has no lease');
  const { taintsStamp = '' } = (await api.api.getNode(ref.node)) ?? assert.fail('there is no such node');
  const delta = encodeDelta(nodeDeltaOf(ref, uids, epoch, taintsStamp));
  await callFunction(
    ...(['node-delta', 'deltas'] as const),
    sqsEvent(sqsRecord(delta, { groupId: messageGroupId(ref), senderId: 'AROAagent:1' })),
  );
  const sentTo = (end: string) =>
    called(
      ({ operation, input }) => operation === 'SendMessageBatch' && `${input['QueueUrl']}`.endsWith(end),
    );
  await api.createPod('edge-pod-late', { node: ref.node, tolerations: [toleration] });
  await sentTo('pod-deltas.fifo');
  aws.send(queue, encodeDue({ ...ref, at: Date.now() }));
  await until('the agent has evicted a pod', async () => {
    const [first] = await api.api.podsOnNode(ref.node, names.slice(0, 1));
    return (first?.terminating ?? true) || undefined;
  });
  await called(({ operation }) => operation === 'DeleteMessageBatch');
  // A message that arrives before its due time, and an unreadable message.
  for (const body of [encodeDue({ ...ref, at: Date.now() + 60_000 }), 'nonsense']) aws.send(queue, body);
  for (const end of ['-evictions-due', '-evictions-due-dlq']) await sentTo(end);
}

/**
 * Makes the agent's calls for an eviction that is due a day later, a message that fails because the table is
 * unavailable, and a cancellation.
 */
async function inItsName({ aws, cluster }: AgentRun, env: NodeJS.ProcessEnv): Promise<void> {
  const { AWS_ENDPOINT_URL: endpoint = '' } = aws.environment('agent', REGION);
  const settings = { endpoint, region: REGION, credentials: { accessKeyId: 'agent', secretAccessKey: 's' } };
  const [sqs, scheduler] = [new SQSClient(settings), new SchedulerClient(settings)];
  const environment = readEnvironment(agentEnvironment, env);
  const timers = new AwsTimers({
    dueQueue: sqsSender(sqs, environment.EVICTIONS_DUE_URL),
    scheduler,
    schedulesOf: schedulesIn(environment),
    clock: systemClock,
  });
  await timers.arm({ cluster, node: nodeName('n9') }, [Date.now() + 86_400_000]);
  const { EVICTIONS_DUE_URL: queueUrl } = environment;
  const visibility = sqsVisibility(sqs, queueUrl, jsonLog());
  await visibility.retryIn([{ receiptHandle: 'r', seconds: 5 }]);
  const client = new DynamoDBClient(settings);
  const store = new DynamoDbStore(new DynamoDbTable({ client, tableName: environment.TABLE_NAME }));
  const ref = { cluster, node: nodeName('n10') };
  await store.commit(ref, 0, { node: aNode(), schedule: [], end: [anEnding()], live: true }, Date.now());
}

function start({ aws, kubeconfig, dir }: AgentRun, environment: NodeJS.ProcessEnv) {
  const file = join(dir, 'agent.kubeconfig');
  writeFileSync(file, kubeconfig);
  const script = join(PROJECT_DIR, 'functions/agent/main.ts');
  return spawn(process.execPath, [script, '--context', 'c', '--kubeconfig', file], {
    env: {
      ...environment,
      ...aws.environment('agent', REGION),
      PROBE_HOST: '127.0.0.1',
      PROBE_PORT: '0',
    },
    stdio: 'ignore',
  });
}

async function stop(process: ReturnType<typeof start>): Promise<void> {
  if (process.exitCode !== null) return;
  const ended = once(process, 'close');
  process.kill('SIGKILL');
  await ended;
}

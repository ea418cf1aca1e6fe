import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateScheduleGroupCommand, DeleteScheduleGroupCommand } from '@aws-sdk/client-scheduler';
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { DeleteQueueCommand, SQSClient } from '@aws-sdk/client-sqs';
import { agentNames, agentSchedules, agentsPrefix } from '#shared/aws/agent-names.ts';
import { QUEUES } from '#shared/queues/queue-set.ts';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { createQueue } from '#test/aws/sqs-queues.ts';
import { until } from '#test/cluster/rig/until.ts';
import { ROOT } from './command.ts';
import { type DeployedStage, ENFORCE, REGISTERED_WITHIN_MS } from './deployed-stage.ts';
import type { ManagedCluster } from './managed-cluster.ts';
import { type Launch, RelayProcess } from './relay-process.ts';

/** What `npm run agent` runs. */
const MAIN = join(ROOT, 'functions/agent/main.ts');
const REGION = 'us-east-1';

/** An agent of a cluster: what it has in the account, and its process, which a test starts, kills and starts again. */
export class Agent {
  readonly id: string;
  readonly #stage: DeployedStage;
  readonly #cluster: ManagedCluster;
  readonly #launch: Launch;
  readonly #closing: AsyncDisposableStack;
  #process: RelayProcess | undefined;

  private constructor(
    id: string,
    stage: DeployedStage,
    parts: {
      readonly cluster: ManagedCluster;
      readonly launch: Launch;
      readonly closing: AsyncDisposableStack;
    },
  ) {
    this.id = id;
    this.#stage = stage;
    this.#cluster = parts.cluster;
    this.#launch = parts.launch;
    this.#closing = parts.closing;
  }

  /** Makes what an agent has in the account, by the names by which the functions look for it. */
  static async open(id: string, stage: DeployedStage, cluster: ManagedCluster): Promise<Agent> {
    const closing = new AsyncDisposableStack();
    const config = awsClientConfig(stage.account.url);
    const sqs = new SQSClient({ ...config, useQueueUrlAsEndpoint: false });
    const prefix = agentsPrefix(stage.state.tableName);
    const names = agentNames(prefix, id, REGION);
    const { url, dlqUrl } = await createQueue(sqs, QUEUES.evictionsDue, `${names.prefix}-`);
    closing.defer(async () => {
      for (const QueueUrl of [url, dlqUrl]) await sqs.send(new DeleteQueueCommand({ QueueUrl }));
    });
    const group = { Name: names.scheduleGroup };
    await stage.scheduler.send(new CreateScheduleGroupCommand(group));
    closing.defer(async () => void (await stage.scheduler.send(new DeleteScheduleGroupCommand(group))));
    const { SecretString = '' } = await new SecretsManagerClient(config).send(
      new GetSecretValueCommand({ SecretId: cluster.secretArn }),
    );
    const dir = mkdtempSync(join(tmpdir(), 'taintward-agent-'));
    closing.defer(async () => rmSync(dir, { recursive: true }));
    const kubeconfig = join(dir, 'kubeconfig');
    writeFileSync(kubeconfig, SecretString, { mode: 0o600 });
    const functions = await stage.raw.environment(stage.deployment.functionName('evict'));
    const { dueQueueArn, roleArn } = agentSchedules(functions['EVICTIONS_DUE_ARN'] ?? '', prefix, id);
    const launch: Launch = {
      program: process.execPath,
      args: [MAIN, '--context', cluster.name, '--kubeconfig', kubeconfig],
      cwd: ROOT,
      env: {
        AGENT: id,
        CLUSTER: cluster.name,
        TABLE_NAME: stage.state.tableName,
        HISTORY_DAYS: functions['HISTORY_DAYS'],
        NODE_DELTAS_URL: stage.queues.nodeDeltas.url,
        POD_DELTAS_URL: stage.queues.podDeltas.url,
        EVICTIONS_DUE_URL: url,
        EVICTIONS_DUE_ARN: dueQueueArn,
        SCHEDULE_GROUP_NAME: names.scheduleGroup,
        SCHEDULE_ROLE_ARN: roleArn,
        DEAD_LETTER_QUEUE_URL: dlqUrl,
        COMPARISON_OPERATORS: functions['COMPARISON_OPERATORS'],
        INSTALLATION: functions['INSTALLATION'],
      },
    };
    return new Agent(id, stage, { cluster, launch, closing });
  }

  /** Has the cluster be its, in place of whoever enters it. */
  async takeOver(): Promise<void> {
    await this.#stage.unregister(this.#cluster);
    await this.#stage.cli('clusters', 'add', this.#cluster.name, '--agent', this.id);
    await this.#stage.cli('policy', 'apply', '--file', ENFORCE, this.#cluster.name, '--yes');
  }

  /** Starts it, and waits until it speaks for its cluster. */
  async start(): Promise<RelayProcess> {
    const started = await RelayProcess.start(this.#stage.account.url, this.#launch);
    this.#process = started;
    const { name } = this.#cluster;
    await until('the agent hears its cluster', REGISTERED_WITHIN_MS, async () => {
      if (started.ended) throw new Error('The agent ended.');
      return (await started.states()).get(name) === 'live';
    });
    return started;
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    await this.#process?.kill();
    this.#process = undefined;
  }

  /** Stops it, gives the cluster back to those who enter it, and takes all away. */
  async close(): Promise<void> {
    await this.#process?.stop();
    await this.#stage.unregister(this.#cluster);
    await this.#stage.register(this.#cluster);
    await this.#closing.disposeAsync();
  }
}

import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import {
  CreateScheduleGroupCommand,
  DeleteScheduleGroupCommand,
  SchedulerClient,
} from '@aws-sdk/client-scheduler';
import { DeleteQueueCommand, SQSClient } from '@aws-sdk/client-sqs';
import { agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { awsClientConfig, awsEndpoint } from '#test/aws/endpoint.ts';
import { createQueue } from '#test/aws/sqs-queues.ts';
import { tableDefinition } from '#test/aws/table-definition.ts';

const TABLE_TIMEOUT_SECONDS = 60;

/** The settings that identify an agent. */
export interface AgentSettings {
  readonly region: string;
  readonly account: string;
  readonly installation: string;
  readonly cluster: string;
  readonly id: string;
}

/** The AWS resources of an agent, by its names, and the data of its service that it reads. */
export interface AgentAccount {
  readonly settings: AgentSettings;
  /** The environment of processes that use it. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/**
 * Opens the account of a service of that name, in which the agent's cluster is registered with the agent; rejects as
 * {@link awsEndpoint}.
 */
export async function openAgentAccount(installation: string): Promise<AgentAccount> {
  const { url, close } = await awsEndpoint();
  const config = awsClientConfig(url);
  const settings: AgentSettings = {
    region: config.region,
    account: '000000000000',
    installation,
    cluster: 'prod',
    id: 'edge-1',
  };
  const { id, region, cluster } = settings;
  const client = new DynamoDBClient(config);
  await client.send(new CreateTableCommand(tableDefinition(installation)));
  await waitUntilTableExists(
    { client, maxWaitTime: TABLE_TIMEOUT_SECONDS, minDelay: 1, maxDelay: 1 },
    { TableName: installation },
  );
  const sqs = new SQSClient({ ...config, useQueueUrlAsEndpoint: false });
  const own = agentNames(agentsPrefix(installation), id, region);
  const queues = [
    await createQueue(sqs, QUEUES.nodeDeltas, `${installation}-`),
    await createQueue(sqs, QUEUES.podDeltas, `${installation}-`),
    await createQueue(sqs, QUEUES.evictionsDue, `${own.prefix}-`),
  ];
  const scheduler = new SchedulerClient(config);
  const group = { Name: own.scheduleGroup };
  await scheduler.send(new CreateScheduleGroupCommand(group));
  const registry = new DynamoDbClusterRegistry(new DynamoDbTable({ client, tableName: installation }));
  await registry.add({
    name: clusterName(cluster),
    access: { kind: 'agent', agent: id },
    addedAt: systemClock.now(),
  });
  const { accessKeyId, secretAccessKey } = config.credentials;
  const env = {
    AWS_ENDPOINT_URL: url,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  };
  return {
    settings,
    env,
    async close() {
      for (const QueueUrl of queues.flatMap(({ url: queue, dlqUrl }) => [queue, dlqUrl]))
        await sqs.send(new DeleteQueueCommand({ QueueUrl }));
      await scheduler.send(new DeleteScheduleGroupCommand(group));
      await client.send(new DeleteTableCommand({ TableName: installation }));
      await close();
    },
  };
}

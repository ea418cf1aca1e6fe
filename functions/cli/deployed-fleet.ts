import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetQueueUrlCommand, SQSClient } from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { CLIENT_SETTINGS, SQS_SETTINGS } from '#shared/aws/client-settings.ts';
import { DynamoDbLeases } from '#shared/clusters/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/clusters/dynamodb-registry.ts';
import { DynamoDbRulebook } from '#shared/clusters/dynamodb-rulebook.ts';
import { Operator } from '#shared/clusters/operator.ts';
import { QUEUES } from '#shared/queues/queue-set.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import type { Clock } from '#shared/time/clock.ts';
import { CliError } from './command.ts';
import type { Fleet } from './fleet.ts';

/** The fleet of a deployment. Who speaks is who AWS says it is. */
export function deployedFleet(tableName: string, clock: Clock): Fleet {
  const table = new DynamoDbTable({ client: new DynamoDBClient(CLIENT_SETTINGS), tableName });
  const registry = new DynamoDbClusterRegistry(table);
  const rulebook = new DynamoDbRulebook(table);
  return {
    rulebook,
    store: new DynamoDbStore(table),
    leases: new DynamoDbLeases(table),
    clusters: async () => (await registry.list()).map(({ name }) => name),
    manages: async (cluster) => (await registry.get(cluster)) !== undefined,
    operator: async () => new Operator({ rulebook, clock, who: await callerIdentity() }),
    dueQueue: async () => {
      const client = new SQSClient(SQS_SETTINGS);
      return new SqsSender({
        client,
        queueUrl: await queueUrl(client, `${tableName}-${QUEUES.evictionsDue.name}`),
      });
    },
  };
}

async function queueUrl(client: SQSClient, name: string): Promise<string> {
  try {
    const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }));
    if (QueueUrl) return QueueUrl;
    throw new Error('it has no URL');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      `The queue ${name} cannot be found (${reason}): check table, account, region and rights.`,
    );
  }
}

async function callerIdentity(): Promise<string> {
  try {
    const { Arn } = await new STSClient(CLIENT_SETTINGS).send(new GetCallerIdentityCommand());
    if (Arn) return Arn;
    throw new Error('it names nobody');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      `AWS does not say who you are, which the audit has to know (${reason}): check credentials and network.`,
    );
  }
}

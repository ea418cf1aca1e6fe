import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { ListScheduleGroupsCommand, SchedulerClient } from '@aws-sdk/client-scheduler';
import { ListQueuesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { queueName } from '#shared/aws/sqs-sender.ts';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { RawAws } from './raw-aws.ts';

/** Returns the names of an account's resources of those kinds that cost money or block a new stack. */
export async function accountContents(url: string): Promise<readonly string[]> {
  const config = awsClientConfig(url);
  const [tables, queues, groups, others] = await Promise.all([
    new DynamoDBClient(config).send(new ListTablesCommand({})),
    new SQSClient(config).send(new ListQueuesCommand({})),
    new SchedulerClient(config).send(new ListScheduleGroupsCommand({})),
    new RawAws(url).names(),
  ]);
  return [
    ...(tables.TableNames ?? []),
    ...(queues.QueueUrls ?? []).map(queueName),
    ...(groups.ScheduleGroups ?? []).map(({ Name = '' }) => Name),
    ...others,
  ];
}

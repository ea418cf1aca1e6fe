import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { ListScheduleGroupsCommand, SchedulerClient } from '@aws-sdk/client-scheduler';
import { ListQueuesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { queueName } from '#shared/aws/sqs-sender.ts';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { RawAws } from './raw-aws.ts';

/** The names of all that an account holds, of those kinds that would cost money or stand in the way of a new stack. */
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

import { SQSClient } from '@aws-sdk/client-sqs';
import { agentOf, recentRegistrations } from '#shared/access/agent-of.ts';
import { SQS_SETTINGS } from '#shared/access/client-settings.ts';
import { deployedTable } from '#shared/aws/deployed-table.ts';
import { routedSender, sqsDueQueues } from '#shared/aws/due-queues.ts';
import { expiryEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { createHandler } from './handler.ts';

const environment = readEnvironment(expiryEnvironment, process.env);
const sqs = new SQSClient(SQS_SETTINGS);
const table = deployedTable(environment);

/** The entry of the Lambda function on the table's stream. */
export const handler = createHandler({
  store: new DynamoDbStore(table),
  dueQueue: routedSender(
    sqsDueQueues(environment, sqs),
    agentOf(recentRegistrations(new DynamoDbClusterRegistry(table), systemClock)),
  ),
  deadLetters: sqsSender(sqs, environment.DEAD_LETTER_QUEUE_URL),
  clock: systemClock,
  log: jsonLog(),
});

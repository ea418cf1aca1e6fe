import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { SQSClient } from '@aws-sdk/client-sqs';
import { agentOf as agentBy, recentRegistrations } from '#shared/access/agent-of.ts';
import { CLIENT_SETTINGS, SQS_SETTINGS } from '#shared/access/client-settings.ts';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import { deployedTable } from '#shared/aws/deployed-table.ts';
import { routedSender, schedulesBy, sqsDueQueues } from '#shared/aws/due-queues.ts';
import { deltaEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { noticingLog } from '#shared/aws/event-bus.ts';
import { leaseSenders } from '#shared/aws/lease-senders.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { sqsVisibility } from '#shared/aws/sqs-visibility.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { onceASecond } from '#shared/state/lease.ts';
import { rulesReader } from '#shared/state/rules-store.ts';
import { renewable } from '#shared/time/cache.ts';
import { LambdaClock } from '#shared/time/lambda-clock.ts';
import { createHandler } from './handler.ts';

const environment = readEnvironment(deltaEnvironment, process.env);
const clock = new LambdaClock();
const { log, notices } = noticingLog(environment, clock);
const table = deployedTable(environment);
const leases = new DynamoDbLeases(table);
const rulesStore = new DynamoDbRulesStore(table);
const matching = { comparisonOperators: environment.COMPARISON_OPERATORS };
const rules = renewable(() => rulesReader({ rulesStore, matching, clock }));
const recentLease = renewable(() => onceASecond((cluster) => leases.read(cluster), clock));
const sqs = new SQSClient(SQS_SETTINGS);
const scheduler = new SchedulerClient(CLIENT_SETTINGS);
const agentOf = agentBy(recentRegistrations(new DynamoDbClusterRegistry(table), clock));
const dueQueue = routedSender(sqsDueQueues(environment, sqs), agentOf);

/** The entry of both delta functions: on `node-deltas.fifo` and on `pod-deltas.fifo`. */
export const handler = createHandler({
  store: new DynamoDbStore(table, { historyDays: environment.HISTORY_DAYS }),
  trace: dynamoDbProofs(table),
  leaseEpoch: async (cluster) => (await recentLease.call(cluster))?.epoch,
  canSend: leaseSenders(leases, recentLease.call),
  timers: new AwsTimers({ dueQueue, scheduler, schedulesOf: schedulesBy(environment, agentOf), clock }),
  dueQueue,
  deadLetters: sqsSender(sqs, environment.DEAD_LETTER_QUEUE_URL),
  visibility: sqsVisibility(sqs, environment.SOURCE_QUEUE_URL, log),
  notices,
  clock,
  log,
  rules: rules.call,
  invoked() {
    clock.invoked();
    rules.renew();
    recentLease.renew();
  },
});

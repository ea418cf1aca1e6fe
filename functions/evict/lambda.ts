import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { SQSClient } from '@aws-sdk/client-sqs';
import { CLIENT_SETTINGS, SQS_SETTINGS } from '#shared/aws/client-settings.ts';
import { evictEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { AwsClients } from '#shared/clusters/aws-clients.ts';
import { connector } from '#shared/clusters/connect.ts';
import { DynamoDbRateLimiter } from '#shared/clusters/dynamodb-rate-limiter.ts';
import { DynamoDbClusterRegistry } from '#shared/clusters/dynamodb-registry.ts';
import { DynamoDbRulebook } from '#shared/clusters/dynamodb-rulebook.ts';
import { RegisteredClusters } from '#shared/clusters/registered-clusters.ts';
import { rulesReader } from '#shared/clusters/rulebook.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { SqsVisibility } from '#shared/queues/sqs-visibility.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { emfEvictionMetrics, stdoutEmf } from '#shared/telemetry/emf.ts';
import { eventBusOf } from '#shared/telemetry/event-bus.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { AwsTimers } from '#shared/timers/aws-timers.ts';
import { withAccessCheck } from './access-check.ts';
import { CheckedAccess } from './checked-access.ts';
import { createHandler } from './handler.ts';

const environment = readEnvironment(evictEnvironment, process.env);
const clock = systemClock;
const lines = jsonLog();
const notices = eventBusOf(environment, { clock, log: lines });
const log = notices?.log ?? lines;
const sqs = new SQSClient(SQS_SETTINGS);
const table = new DynamoDbTable({
  client: new DynamoDBClient(CLIENT_SETTINGS),
  tableName: environment.TABLE_NAME,
});

const rules = rulesReader({
  rulebook: new DynamoDbRulebook(table),
  matching: { comparisonOperators: environment.COMPARISON_OPERATORS },
  clock,
});
const connect = connector({ aws: new AwsClients(), clock });
const clusters = new RegisteredClusters({
  registry: new DynamoDbClusterRegistry(table),
  connect,
  clock,
  installation: environment.INSTALLATION,
});

const handleDue = createHandler({
  store: new DynamoDbStore(table, { historyDays: environment.HISTORY_DAYS }),
  timers: new AwsTimers({
    dueQueue: new SqsSender({ client: sqs, queueUrl: environment.EVICTIONS_DUE_URL }),
    scheduler: new SchedulerClient(CLIENT_SETTINGS),
    groupName: environment.SCHEDULE_GROUP_NAME,
    roleArn: environment.SCHEDULE_ROLE_ARN,
    dueQueueArn: environment.EVICTIONS_DUE_ARN,
    clock,
  }),
  clusters: new CheckedAccess({ clusters, rules, clock, log }),
  visibility: new SqsVisibility({ client: sqs, queueUrl: environment.SOURCE_QUEUE_URL, log }),
  deadLetters: new SqsSender({ client: sqs, queueUrl: environment.DEAD_LETTER_QUEUE_URL }),
  metrics: emfEvictionMetrics(stdoutEmf(environment.METRIC_NAMESPACE, environment.METRICS_BY_CLUSTER)),
  rates: new DynamoDbRateLimiter(table),
  notices,
  clock,
  log,
  rules,
});

/** The entry of the Lambda function on `evictions-due`; `taintward clusters add` asks it whether it reaches a cluster. */
export const handler = withAccessCheck(handleDue, { connect, clock });

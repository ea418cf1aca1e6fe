import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { SQSClient } from '@aws-sdk/client-sqs';
import { agentOf as agentBy, recentRegistrations } from '#shared/access/agent-of.ts';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { CLIENT_SETTINGS, SQS_SETTINGS } from '#shared/access/client-settings.ts';
import { connector } from '#shared/access/connect.ts';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import { deployedTable } from '#shared/aws/deployed-table.ts';
import { duePorts } from '#shared/aws/due-ports.ts';
import { schedulesIn, sqsDueQueues } from '#shared/aws/due-queues.ts';
import { stdoutEmf } from '#shared/aws/emf.ts';
import { evictEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { noticingLog } from '#shared/aws/event-bus.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { rulesReader } from '#shared/state/rules-store.ts';
import { renewable } from '#shared/time/cache.ts';
import { LambdaClock } from '#shared/time/lambda-clock.ts';
import { withAccessCheck } from './access-check.ts';
import { createHandler, forwardToAgent } from './handler.ts';

const environment = readEnvironment(evictEnvironment, process.env);
const clock = new LambdaClock();
const { log, notices } = noticingLog(environment, clock);
const sqs = new SQSClient(SQS_SETTINGS);
const scheduler = new SchedulerClient(CLIENT_SETTINGS);
const table = deployedTable(environment);
const rulesStore = new DynamoDbRulesStore(table);
const matching = { comparisonOperators: environment.COMPARISON_OPERATORS };
const rules = renewable(() => rulesReader({ rulesStore, matching, clock }));
const registry = recentRegistrations(new DynamoDbClusterRegistry(table), clock);
const agentOf = agentBy(registry);
const connect = connector({ aws: new AwsClients(), clock });
const queues = sqsDueQueues(environment, sqs);

const ports = duePorts(environment, {
  table,
  sqs,
  queueUrl: environment.SOURCE_QUEUE_URL,
  registry,
  connect,
  timers: new AwsTimers({ dueQueue: queues.own, scheduler, schedulesOf: schedulesIn(environment), clock }),
  sendOn: forwardToAgent(queues, { agentOf, log }),
  metrics: stdoutEmf(environment.METRIC_NAMESPACE, environment.METRICS_BY_CLUSTER),
  rules: rules.call,
  clock,
  log,
});
const handleDue = createHandler({
  ...ports,
  notices,
  invoked() {
    clock.invoked();
    rules.renew();
  },
});

/**
 * The entry of the Lambda function on `evictions-due`. The command line also invokes it, to check that it
 * reaches a cluster and has its permissions there.
 */
export const handler = withAccessCheck(handleDue, { connect, clock, grants: environment.CLUSTER_GRANTS });

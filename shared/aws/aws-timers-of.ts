import type { SchedulerClient } from '@aws-sdk/client-scheduler';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { AgentOf } from '#shared/access/agent-of.ts';
import type { Timers } from '#shared/engine/timers.ts';
import type { Clock } from '#shared/time/clock.ts';
import { agentSchedules } from './agent-names.ts';
import { AwsTimers } from './aws-timers.ts';
import type { agentsVariables, dueQueueVariables, timerVariables, Variables } from './environment.ts';
import { RoutedTimers } from './routed-timers.ts';
import { sqsDueQueues } from './sqs-due-queues.ts';
import { SqsSender } from './sqs-sender.ts';

/** The environment variables that the timers of one queue need. */
type OneQueue = Variables<typeof dueQueueVariables> & Variables<typeof timerVariables>;

interface TimersOfDeps {
  readonly sqs: SQSClient;
  readonly scheduler: SchedulerClient;
  readonly clock: Clock;
}

/** Returns timers that send to the one queue that the environment names. */
export const awsTimersOf = (
  environment: OneQueue,
  { sqs: client, scheduler, clock }: TimersOfDeps,
): AwsTimers =>
  new AwsTimers({
    dueQueue: new SqsSender({ client, queueUrl: environment.EVICTIONS_DUE_URL }),
    scheduler,
    groupName: environment.SCHEDULE_GROUP_NAME,
    roleArn: environment.SCHEDULE_ROLE_ARN,
    dueQueueArn: environment.EVICTIONS_DUE_ARN,
    clock,
  });

/**
 * Returns timers of all clusters. They send to the queue of a cluster's agent, or else to the queue that the
 * environment names.
 */
export function routedTimersOf(
  environment: OneQueue & Variables<typeof agentsVariables>,
  { agentOf, ...deps }: TimersOfDeps & { readonly agentOf: AgentOf },
): Timers {
  const { EVICTIONS_DUE_ARN: arn, AGENT_PREFIX: prefix } = environment;
  const { scheduler, clock } = deps;
  const queues = sqsDueQueues(environment, deps.sqs);
  return new RoutedTimers({
    own: awsTimersOf(environment, deps),
    ofAgent: (agent) =>
      new AwsTimers({
        dueQueue: queues.ofAgent(agent),
        ...agentSchedules(arn, prefix, agent),
        ...{ scheduler, clock },
      }),
    agentOf,
  });
}

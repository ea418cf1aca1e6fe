import type { SQSClient } from '@aws-sdk/client-sqs';
import type { AgentOf } from '#shared/access/agent-of.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { QueueSender, SendFailure } from '#shared/state/sender.ts';
import { agentDueUrl, agentSchedules, type Schedules } from './agent-names.ts';
import type { agentsVariables, dueQueueVariables, timerVariables, Variables } from './environment.ts';
import { sqsSender } from './sqs-sender.ts';

export interface DueQueues {
  /** `evictions-due`, which `evict` processes. */
  readonly own: QueueSender;
  readonly ofAgent: (agent: string) => QueueSender;
}

/**
 * Sends each due message by its group, the cluster: to the queue of an agent in it, or else to the service's own.
 * Rejects also with `StoreError`.
 */
export const routedSender = (queues: DueQueues, agentOf: AgentOf): QueueSender => ({
  async send(messages) {
    const placed = await Promise.all(
      messages.map(async (message, index) => {
        const { groupId } = message;
        const agent = groupId === undefined ? undefined : await agentOf(clusterName(groupId));
        return { message, index, agent };
      }),
    );
    const failures: SendFailure[] = [];
    for (const [agent, some] of Map.groupBy(placed, (each) => each.agent)) {
      const queue = agent === undefined ? queues.own : queues.ofAgent(agent);
      for (const failure of await queue.send(some.map(({ message }) => message)))
        failures.push({ ...failure, index: some[failure.index]?.index ?? failure.index });
    }
    return failures.sort((a, b) => a.index - b.index);
  },
});

/** Returns the queues of due messages on SQS: the installation's, which the environment names, and its agents'. */
export const sqsDueQueues = (
  { EVICTIONS_DUE_URL: url, AGENT_PREFIX }: Variables<typeof dueQueueVariables & typeof agentsVariables>,
  client: SQSClient,
): DueQueues => ({
  own: sqsSender(client, url),
  ofAgent: (agent) => sqsSender(client, agentDueUrl(url, AGENT_PREFIX, agent)),
});

/** Returns the schedules that send to the queue that the environment names. */
export const schedulesIn = (environment: Variables<typeof timerVariables>) => async () => ({
  dueQueueArn: environment.EVICTIONS_DUE_ARN,
  groupName: environment.SCHEDULE_GROUP_NAME,
  roleArn: environment.SCHEDULE_ROLE_ARN,
});

/** Returns the schedules of a cluster's agent, or else those of the environment. Rejects with `StoreError`. */
export const schedulesBy =
  (environment: Variables<typeof timerVariables & typeof agentsVariables>, agentOf: AgentOf) =>
  async (cluster: ClusterName): Promise<Schedules> => {
    const agent = await agentOf(cluster);
    if (agent === undefined) return schedulesIn(environment)();
    return agentSchedules(environment.EVICTIONS_DUE_ARN, environment.AGENT_PREFIX, agent);
  };

import type { SQSClient } from '@aws-sdk/client-sqs';
import { agentDueUrl } from './agent-names.ts';
import type { agentsVariables, dueQueueVariables, Variables } from './environment.ts';
import type { DueQueues } from './routed-sender.ts';
import { SqsSender } from './sqs-sender.ts';

/**
 * Returns the queues of due messages on SQS: the installation's own, which the environment names, and its agents'.
 */
export const sqsDueQueues = (
  {
    EVICTIONS_DUE_URL: url,
    AGENT_PREFIX: prefix,
  }: Variables<typeof dueQueueVariables> & Variables<typeof agentsVariables>,
  client: SQSClient,
): DueQueues => ({
  own: new SqsSender({ client, queueUrl: url }),
  ofAgent: (agent) => new SqsSender({ client, queueUrl: agentDueUrl(url, prefix, agent) }),
});

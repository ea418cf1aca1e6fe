import { agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';

/** A dead-letter queue and its source queue. Both names are without the prefix of the deployment. */
export interface Box {
  readonly name: string;
  readonly queue: string;
}

/** Prefix of the names of agents' queues, after the deployment's prefix. */
export const OF_AGENTS = agentsPrefix('').slice('-'.length);

const QUEUE_OF_AGENT = new RegExp(`^${OF_AGENTS}(.+)-${QUEUES.evictionsDue.name}$`);

export function boxOfAgent(agent: string): Box {
  const { dueQueue, dueDeadLetters } = agentNames(OF_AGENTS, agent, '');
  return { queue: dueQueue, name: dueDeadLetters };
}

/** Returns the agent of a queue of due evictions. `undefined`: the queue belongs to no agent. */
export const agentOfQueue = (queue: string): string | undefined => QUEUE_OF_AGENT.exec(queue)?.[1];

import { agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';

/** A dead-letter queue, and the queue whose messages it has; both by what stands behind the name of the deployment. */
export interface Box {
  readonly name: string;
  readonly queue: string;
}

/** What the names of agents' queues begin with there. */
export const OF_AGENTS = agentsPrefix('').slice('-'.length);

const QUEUE_OF_AGENT = new RegExp(`^${OF_AGENTS}(.+)-${QUEUES.evictionsDue.name}$`);

/** Those of an agent. */
export function boxOfAgent(agent: string): Box {
  const { dueQueue, dueDeadLetters } = agentNames(OF_AGENTS, agent, '');
  return { queue: dueQueue, name: dueDeadLetters };
}

/** The agent whose queue of what is due has this name; `undefined`: it is none of an agent. */
export const agentOfQueue = (queue: string): string | undefined => QUEUE_OF_AGENT.exec(queue)?.[1];

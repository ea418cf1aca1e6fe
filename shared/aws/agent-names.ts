import type * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { clusterNameSchema } from '#shared/state/registry.ts';
import { MAX_ID_CHARACTERS } from './limits.ts';
import { QUEUES } from './queue-set.ts';

/*
 * An agent is relay and evictor of one cluster, and runs in it. What it has in AWS is named by the installation and its ID, so
 * whoever knows both knows where its due work goes, and nobody keeps a list.
 */

/** Names of clusters with these in them would match others, where IAM takes keys as patterns. */
const PATTERN = /[*?$]/;
/** Keys of the nodes of such a cluster would be keys of the index, too, by which other clusters are found. */
const INDEX_KEYS = ['TAINTED', 'HISTORY'];

/** The name of a cluster that an agent can be for: its rights are patterns that begin with that name. */
export const agentClusterSchema: z.ZodType<ClusterName, string> = clusterNameSchema
  .refine(
    (name) => !PATTERN.test(name),
    'must not have *, ? or $ in it for an agent, whose rights are patterns of its name',
  )
  .refine(
    (name) => name.length <= MAX_ID_CHARACTERS,
    `must have at most ${MAX_ID_CHARACTERS} characters for an agent: SQS identifies its messages by the name`,
  )
  .refine(
    (name) => !INDEX_KEYS.includes(name),
    'must be another for an agent: this one is used in the table itself',
  );

/** What the names of all that the agents of an installation have begin with. */
export const agentsPrefix = (installation: string): string => `${installation}-agent-`;

/** What an agent has in AWS, by name. */
export interface AgentNames {
  /** What all of these begin with. */
  readonly prefix: string;
  /** Its queue of what is due. */
  readonly dueQueue: string;
  /** The dead letters of that. */
  readonly dueDeadLetters: string;
  /** The group of the schedules that send to that queue. */
  readonly scheduleGroup: string;
  /** What EventBridge Scheduler becomes to send to it. Of IAM, so it bears the region; 64 characters at most. */
  readonly scheduleRole: string;
  /** What the agent becomes itself, likewise. */
  readonly role: string;
}

/** The names of what an agent has; `prefix`: see {@link agentsPrefix}. */
export function agentNames(prefix: string, agent: string, region: string): AgentNames {
  const own = `${prefix}${agent}`;
  return {
    prefix: own,
    dueQueue: dueQueueOf(prefix, agent),
    dueDeadLetters: `${own}-${QUEUES.evictionsDue.deadLetterName}`,
    scheduleGroup: own,
    scheduleRole: `${own}-schedules-${region}`,
    role: `${own}-${region}`,
  };
}

/** The URL of an agent's queue of what is due, which lies beside `evictions-due` of the installation. */
export const agentDueUrl = (evictionsDueUrl: string, prefix: string, agent: string): string =>
  new URL(dueQueueOf(prefix, agent), evictionsDueUrl).href;

/** What schedules of an agent's queue are made with. */
export interface AgentSchedules {
  readonly dueQueueArn: string;
  readonly groupName: string;
  readonly roleArn: string;
}

/** The same of an agent of the installation whose `evictions-due` has this ARN. */
export function agentSchedules(evictionsDueArn: string, prefix: string, agent: string): AgentSchedules {
  const [, partition, , region = '', account] = evictionsDueArn.split(':');
  const { dueQueue, scheduleGroup, scheduleRole } = agentNames(prefix, agent, region);
  return {
    dueQueueArn: `arn:${partition}:sqs:${region}:${account}:${dueQueue}`,
    groupName: scheduleGroup,
    roleArn: `arn:${partition}:iam::${account}:role/${scheduleRole}`,
  };
}

const dueQueueOf = (prefix: string, agent: string): string => `${prefix}${agent}-${QUEUES.evictionsDue.name}`;

import type * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { clusterNameSchema } from '#shared/state/registry.ts';
import { MAX_ID_CHARACTERS } from './limits.ts';
import { QUEUES } from './queue-set.ts';

/*
 * An agent is relay and evictor of one cluster, and runs in it. The installation and the agent's ID determine the
 * names of its AWS resources, so no list of queues is needed.
 */

/** IAM reads keys as patterns, so a cluster's name with these characters would match other clusters. */
const PATTERN = /[*?$]/;
/** Node keys of a cluster with such a name would be among the keys by which other clusters are found. */
const INDEX_KEYS = ['TAINTED', 'HISTORY'];

/** The name of a cluster that can have an agent. The agent's permissions are patterns that begin with the name. */
export const agentClusterSchema: z.ZodType<ClusterName, string> = clusterNameSchema
  .refine(
    (name) => !PATTERN.test(name),
    'must not have *, ? or $ in it for an agent, whose permissions are patterns of its name',
  )
  .refine(
    (name) => name.length <= MAX_ID_CHARACTERS,
    `must have at most ${MAX_ID_CHARACTERS} characters for an agent: SQS identifies its messages by the name`,
  )
  .refine(
    (name) => !INDEX_KEYS.includes(name),
    'must be another for an agent: this one is used in the table itself',
  );

export const agentsPrefix = (installation: string): string => `${installation}-agent-`;

export interface AgentNames {
  /** Common prefix of the names below. */
  readonly prefix: string;
  readonly dueQueue: string;
  readonly dueDeadLetters: string;
  /** The group of the schedules that send to `dueQueue`. */
  readonly scheduleGroup: string;
  /**
   * Assumed by EventBridge Scheduler. Roles are global in IAM, so the name includes the region: at most 64 characters.
   */
  readonly scheduleRole: string;
  /** The role of the agent itself. Its name includes the region too. */
  readonly role: string;
}

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

/** Returns the URL of an agent's queue of due messages, which is beside the installation's `evictions-due`. */
export const agentDueUrl = (evictionsDueUrl: string, prefix: string, agent: string): string =>
  new URL(dueQueueOf(prefix, agent), evictionsDueUrl).href;

/** The properties of the schedules that send to a queue of due messages. */
export interface Schedules {
  readonly dueQueueArn: string;
  readonly groupName: string;
  /** The role that EventBridge Scheduler assumes. */
  readonly roleArn: string;
}

export function agentSchedules(evictionsDueArn: string, prefix: string, agent: string): Schedules {
  const [, partition, , region = '', account] = evictionsDueArn.split(':');
  const { dueQueue, scheduleGroup, scheduleRole } = agentNames(prefix, agent, region);
  return {
    dueQueueArn: `arn:${partition}:sqs:${region}:${account}:${dueQueue}`,
    groupName: scheduleGroup,
    roleArn: `arn:${partition}:iam::${account}:role/${scheduleRole}`,
  };
}

const dueQueueOf = (prefix: string, agent: string): string => `${prefix}${agent}-${QUEUES.evictionsDue.name}`;

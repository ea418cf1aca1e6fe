import { Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { type AgentNames, agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import type { agentsVariables, ValuesOf } from '#shared/aws/environment.ts';
import { type Grantee, grantWildcard } from './grantee.ts';

const REASON =
  'Agents have stacks of their own, which come and go without this one; theirs are all of these.';

/** What the service may do with what agents have, by the beginning of its names: nobody keeps a list of agents. */
export class Agents extends Construct {
  readonly #prefix: string;

  /** `installation`: the name of the service's stack. */
  constructor(scope: Construct, id: string, { installation }: { readonly installation: string }) {
    super(scope, id);
    this.#prefix = agentsPrefix(installation);
  }

  /** Lets a function arm timers of agents: delayed messages and one-time schedules. */
  bindArm(grantee: Grantee): void {
    this.bindSend(grantee);
    const { scheduleGroup, scheduleRole } = this.#all;
    const resourceName = `${scheduleGroup}/*`;
    grantWildcard(grantee, {
      action: 'scheduler:CreateSchedule',
      resources: [Stack.of(this).formatArn({ service: 'scheduler', resource: 'schedule', resourceName })],
      reason: REASON,
    });
    grantWildcard(grantee, {
      action: 'iam:PassRole',
      resources: [
        Stack.of(this).formatArn({
          service: 'iam',
          region: '',
          resource: 'role',
          resourceName: scheduleRole,
        }),
      ],
      conditions: { StringEquals: { 'iam:PassedToService': 'scheduler.amazonaws.com' } },
      reason: REASON,
    });
  }

  /** Lets a function tell agents that something is due at once. */
  bindSend(grantee: Grantee): void {
    grantee.setEnvironment({ AGENT_PREFIX: this.#prefix } satisfies ValuesOf<typeof agentsVariables>);
    this.#grant(grantee, ['sqs:SendMessage'], 'dueQueue');
  }

  /** Lets somebody at a terminal see whether an agent is there, and how many messages its queues hold. */
  bindCount(grantee: Grantee): void {
    for (const queue of ['dueQueue', 'dueDeadLetters'] as const)
      this.#grant(grantee, ['sqs:GetQueueUrl', 'sqs:GetQueueAttributes'], queue);
  }

  /** Lets somebody at a terminal have something tried again, read dead letters of agents, and send them again. */
  bindRedrive(grantee: Grantee): void {
    this.bindSend(grantee);
    this.#grant(
      grantee,
      [
        ...['sqs:ReceiveMessage', 'sqs:ChangeMessageVisibility'],
        ...['sqs:StartMessageMoveTask', 'sqs:DeleteMessage'],
      ],
      'dueDeadLetters',
    );
  }

  #grant(grantee: Grantee, actions: readonly string[], queue: 'dueQueue' | 'dueDeadLetters'): void {
    const resources = [Stack.of(this).formatArn({ service: 'sqs', resource: this.#all[queue] })];
    for (const action of actions) grantWildcard(grantee, { action, resources, reason: REASON });
  }

  /** The names of all of them. */
  get #all(): AgentNames {
    return agentNames(this.#prefix, '*', Stack.of(this).region);
  }
}

import { Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { type AgentNames, agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import type { agentsVariables, ValuesOf } from '#shared/aws/environment.ts';
import { type Grantee, grantWildcard } from './grantee.ts';

const REASON =
  'Agents have stacks of their own, which come and go without this one; theirs are all of these.';

/** The service's permissions for resources of agents. They match by the prefix of names, because no list of agents exists. */
export class Agents extends Construct {
  readonly #prefix: string;

  /** `installation`: the name of the service's stack. */
  constructor(scope: Construct, id: string, { installation }: { readonly installation: string }) {
    super(scope, id);
    this.#prefix = agentsPrefix(installation);
  }

  /** Allows a function to arm timers of agents: delayed messages and one-time schedules. */
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

  /** Allows a function to send agents a message that is due immediately. */
  bindSend(grantee: Grantee): void {
    grantee.setEnvironment({ AGENT_PREFIX: this.#prefix } satisfies ValuesOf<typeof agentsVariables>);
    this.#grant(grantee, ['sqs:SendMessage'], 'dueQueue');
  }

  /** Allows an operator to see whether an agent is installed, and how many messages its queues hold. */
  bindCount(grantee: Grantee): void {
    for (const queue of ['dueQueue', 'dueDeadLetters'] as const)
      this.#grant(grantee, ['sqs:GetQueueUrl', 'sqs:GetQueueAttributes'], queue);
  }

  /** Allows an operator to retry evictions, and to read and resend dead letters of agents. */
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

  /** The name patterns that match all agents. */
  get #all(): AgentNames {
    return agentNames(this.#prefix, '*', Stack.of(this).region);
  }
}

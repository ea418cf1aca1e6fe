import { RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Grant, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { ScheduleGroup } from 'aws-cdk-lib/aws-scheduler';
import { Construct } from 'constructs';
import { type AgentNames, agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import type {
  agentsVariables,
  dueQueueVariables,
  timerVariables,
  ValuesOf,
} from '#shared/aws/environment.ts';
import { QUEUES } from '#shared/queues/queue-set.ts';
import { type Grantee, grantWildcard } from './grantee.ts';
import { ServiceQueue } from './service-queue.ts';

const OF_AGENTS = 'Agents have stacks of their own, which come and go without this one.';

/** What says "look at this node at that time": the queue of what is due, and the schedules that send to it. */
export class Timers extends Construct {
  readonly due: ServiceQueue;
  readonly groupName: string;
  readonly #role: Role;
  readonly #agents: string;

  constructor(scope: Construct, id: string, { prefix }: { readonly prefix: string }) {
    super(scope, id);
    this.#agents = agentsPrefix(prefix);
    this.due = new ServiceQueue(this, 'Due', { spec: QUEUES.evictionsDue, prefix });
    // With the group go its schedules, so a destroyed stack leaves none behind.
    const group = new ScheduleGroup(this, 'Group', {
      scheduleGroupName: prefix,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.groupName = prefix;
    this.#role = new Role(this, 'Role', {
      description: 'Lets the schedules of timed evictions send to evictions-due.',
      assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
        conditions: {
          StringEquals: {
            'aws:SourceAccount': Stack.of(this).account,
            'aws:SourceArn': group.scheduleGroupArn,
          },
        },
      }),
    });
    Grant.addToPrincipal({
      grantee: this.#role,
      actions: ['sqs:SendMessage'],
      resourceArns: [this.due.queue.queueArn],
    });
  }

  /** Lets a function arm timers: delayed messages and one-time schedules. */
  bindArm(grantee: Grantee): void {
    this.bindSend(grantee);
    grantee.setEnvironment({
      EVICTIONS_DUE_ARN: this.due.queue.queueArn,
      SCHEDULE_GROUP_NAME: this.groupName,
      SCHEDULE_ROLE_ARN: this.#role.roleArn,
    } satisfies ValuesOf<typeof timerVariables>);
    const schedulesOf = (group: string) =>
      Stack.of(this).formatArn({ service: 'scheduler', resource: 'schedule', resourceName: `${group}/*` });
    grantWildcard(grantee, {
      action: 'scheduler:CreateSchedule',
      resources: [schedulesOf(this.groupName), schedulesOf(this.#ofAnyAgent('scheduleGroup'))],
      reason:
        'Schedules of our own groups and those of agents, which nobody else uses; their names are hashes of node and moment.',
    });
    const passedToScheduler = { StringEquals: { 'iam:PassedToService': 'scheduler.amazonaws.com' } };
    Grant.addToPrincipal({
      grantee,
      actions: ['iam:PassRole'],
      resourceArns: [this.#role.roleArn],
      conditions: passedToScheduler,
    });
    const resourceName = this.#ofAnyAgent('scheduleRole');
    grantWildcard(grantee, {
      action: 'iam:PassRole',
      resources: [Stack.of(this).formatArn({ service: 'iam', region: '', resource: 'role', resourceName })],
      conditions: passedToScheduler,
      reason: OF_AGENTS,
    });
  }

  /** Lets somebody at a terminal have something tried again. */
  bindRetry(grantee: Grantee): void {
    this.bindSend(grantee);
    Grant.addToPrincipal({
      grantee,
      actions: ['sqs:GetQueueUrl'],
      resourceArns: [this.due.queue.queueArn],
    });
    this.#grantAgents(grantee, 'sqs:GetQueueUrl');
  }

  /** Lets a function say that something is due at once. */
  bindSend(grantee: Grantee): void {
    grantee.setEnvironment({
      EVICTIONS_DUE_URL: this.due.queue.queueUrl,
      AGENT_PREFIX: this.#agents,
    } satisfies ValuesOf<typeof dueQueueVariables & typeof agentsVariables>);
    this.due.grantSend(grantee);
    this.#grantAgents(grantee, 'sqs:SendMessage');
  }

  /** Lets somebody do that to the queues of what is due that agents have. */
  #grantAgents(grantee: Grantee, action: string): void {
    const resource = this.#ofAnyAgent('dueQueue');
    grantWildcard(grantee, {
      action,
      resources: [Stack.of(this).formatArn({ service: 'sqs', resource })],
      reason: OF_AGENTS,
    });
  }

  #ofAnyAgent(what: keyof AgentNames): string {
    return agentNames(this.#agents, '*', Stack.of(this).region)[what];
  }
}

import { RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { ScheduleGroup } from 'aws-cdk-lib/aws-scheduler';
import { Construct } from 'constructs';
import type { dueQueueVariables, timerVariables, ValuesOf } from '#shared/aws/environment.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { accountWideName } from './account-wide-name.ts';
import { grantDataKey } from './data-key.ts';
import { type Grantee, grant, grantWildcard } from './grantee.ts';
import { ServiceQueue } from './service-queue.ts';

/** The timers that report due nodes: the queue of due messages, and the schedules that send to it. */
export class Timers extends Construct {
  readonly due: ServiceQueue;
  readonly groupName: string;
  readonly #role: Role;

  constructor(scope: Construct, id: string, { prefix }: { readonly prefix: string }) {
    super(scope, id);
    this.due = new ServiceQueue(this, 'Due', { spec: QUEUES.evictionsDue, prefix });
    // Deleting the group deletes its schedules, so a destroyed stack leaves none behind.
    const group = new ScheduleGroup(this, 'Group', {
      scheduleGroupName: prefix,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.groupName = prefix;
    this.#role = new Role(this, 'Role', {
      roleName: accountWideName(this, `${prefix}-schedules`),
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
    grant(this.#role, ['sqs:SendMessage'], [this.due.queue.queueArn]);
    grantDataKey(this.#role);
  }

  /** Allows a function to arm timers: delayed messages and one-time schedules. */
  bindArm(grantee: Grantee): void {
    this.bindSend(grantee);
    grantee.setEnvironment({
      EVICTIONS_DUE_ARN: this.due.queue.queueArn,
      SCHEDULE_GROUP_NAME: this.groupName,
      SCHEDULE_ROLE_ARN: this.#role.roleArn,
    } satisfies ValuesOf<typeof timerVariables>);
    const resourceName = `${this.groupName}/*`;
    grantWildcard(grantee, {
      action: 'scheduler:CreateSchedule',
      resources: [Stack.of(this).formatArn({ service: 'scheduler', resource: 'schedule', resourceName })],
      reason:
        'Schedules of our own group, which nobody else uses; their names are hashes of node and moment.',
    });
    grant(grantee, ['iam:PassRole'], [this.#role.roleArn], {
      StringEquals: { 'iam:PassedToService': 'scheduler.amazonaws.com' },
    });
  }

  bindRetry(grantee: Grantee): void {
    this.bindSend(grantee);
    grant(grantee, ['sqs:GetQueueUrl'], [this.due.queue.queueArn]);
  }

  /** Allows a function to report that a node is due immediately. */
  bindSend(grantee: Grantee): void {
    grantee.setEnvironment({
      EVICTIONS_DUE_URL: this.due.queue.queueUrl,
    } satisfies ValuesOf<typeof dueQueueVariables>);
    this.due.grantSend(grantee);
  }
}

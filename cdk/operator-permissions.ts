import { Stack } from 'aws-cdk-lib';
import { type IPrincipal, ManagedPolicy } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { accountWideName } from './account-wide-name.ts';
import type { Agents } from './agents.ts';
import type { Deltas } from './deltas.ts';
import type { Functions } from './functions.ts';
import { type Grantee, grantWildcard } from './grantee.ts';
import type { State } from './state.ts';
import type { Timers } from './timers.ts';

export interface OperatorPermissionsProps {
  readonly prefix: string;
  readonly state: State;
  readonly deltas: Deltas;
  readonly timers: Timers;
  readonly agents: Agents;
  readonly functions: Functions;
}

/** The permissions of command line users, in three sizes: a managed policy each, to attach to their roles. */
export class OperatorPermissions extends Construct {
  constructor(
    scope: Construct,
    id: string,
    { prefix, state, deltas, timers, agents, functions }: OperatorPermissionsProps,
  ) {
    super(scope, id);
    const viewer = new Size(
      this,
      'Viewer',
      `${prefix}-viewer`,
      // A new description would replace the policy, and CloudFormation rejects that for a resource with a fixed name.
      'May see what Taintward does and is told to do.',
    );
    const operator = new Size(
      this,
      'Operator',
      `${prefix}-operator`,
      'May see what Taintward does, and stop, hold, release, retry and redrive evictions.',
    );
    const admin = new Size(
      this,
      'Admin',
      `${prefix}-admin`,
      'May do all that the command line of Taintward can, policies and clusters included.',
    );
    const queues = [deltas.nodes, deltas.pods, timers.due];
    for (const size of [viewer, operator, admin]) {
      state.bindView(size);
      bindAccount(size);
      for (const queue of [...queues, functions.expiryDeadLetters]) queue.bindCount(size);
      agents.bindCount(size);
    }
    for (const size of [operator, admin]) {
      timers.bindRetry(size);
      // Commands ask `evict` for its access to a cluster. As an event, the call gives no more permissions than sending to the queue.
      functions.evict.bindInvoke(size);
      for (const queue of queues) queue.bindRedrive(size);
      functions.expiryDeadLetters.bindRead(size);
      agents.bindRedrive(size);
    }
    state.bindHolding(operator);
    state.bindRuling(admin);
  }
}

/** Allows an operator to see the quotas of the account that limit the service, and its alarms. */
function bindAccount(size: Size): void {
  grantWildcard(size, {
    action: 'cloudwatch:DescribeAlarms',
    resources: [Stack.of(size).formatArn({ service: 'cloudwatch', resource: 'alarm:*' })],
    reason:
      'A list of alarms is asked of all alarms of the account, also where only some names are asked for.',
  });
  for (const action of [
    'lambda:GetAccountSettings',
    'lambda:ListEventSourceMappings',
    'dynamodb:DescribeLimits',
  ]) {
    grantWildcard(size, {
      action,
      resources: ['*'],
      reason: 'The action knows no resource: it is of the account.',
    });
  }
}

/** Permissions as a policy. A user passes the table's name to the command line as an option. */
class Size extends Construct implements Grantee {
  readonly grantPrincipal: IPrincipal;

  constructor(scope: Construct, id: string, name: string, description: string) {
    super(scope, id);
    this.grantPrincipal = new ManagedPolicy(this, 'Policy', {
      managedPolicyName: accountWideName(this, name),
      description,
    }).grantPrincipal;
  }

  setEnvironment(): void {}
}

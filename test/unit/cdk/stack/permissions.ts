import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { readable, resourcesOf, type Statement, statementsIn } from './resources.ts';
import { synthesized } from './synthesized.ts';

let fargate: Template;
let external: Template;
before(() => {
  fargate = synthesized();
  external = synthesized({ 'taintward:relay': 'external' });
});

/** Who may do what, as a reviewer would write it down. */
function permissions(template: Template): string {
  const policies = [
    ...resourcesOf(template, 'AWS::IAM::Policy'),
    ...resourcesOf(template, 'AWS::IAM::ManagedPolicy'),
  ];
  return policies
    .map(([id, { PolicyDocument, Roles }]) => {
      const lines = statementsIn(PolicyDocument).map(({ Effect, Action, Resource, Condition }) =>
        [
          `  ${Effect} ${Action.join(', ')}`,
          ...Resource.map((resource) => `    on ${resource}`),
          ...(Condition ? [`    if ${JSON.stringify(Condition)}`] : []),
        ].join('\n'),
      );
      return [Roles ? (readable(Roles) as string[]).join(', ') : id, ...lines].join('\n');
    })
    .sort()
    .join('\n');
}

function statementsOf(template: Template): readonly Statement[] {
  const types = ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy'];
  return types
    .flatMap((type) => [...resourcesOf(template, type).values()])
    .flatMap(({ PolicyDocument }) => statementsIn(PolicyDocument));
}

describe('what is allowed', () => {
  test('with the relay on Fargate is what was last reviewed', (t) => {
    t.assert.snapshot(permissions(fargate), { serializers: [String] });
  });

  test('with a relay of your own is what was last reviewed', (t) => {
    t.assert.snapshot(permissions(external), { serializers: [String] });
  });

  test('names every action, and every resource but where AWS knows none', () => {
    for (const { Action, Resource } of [fargate, external].flatMap(statementsOf)) {
      for (const action of Action) assert.doesNotMatch(action, /\*/);
      if (Resource.includes('*')) assert.deepEqual(Action, ['ecr:GetAuthorizationToken']);
    }
  });

  test('to whom: the services that run things, and the scheduler for our own schedules alone', () => {
    const trusts = [...resourcesOf(fargate, 'AWS::IAM::Role').values()].flatMap(
      ({ AssumeRolePolicyDocument }) => statementsIn(AssumeRolePolicyDocument),
    );
    assert.deepEqual(
      new Set(trusts.map(({ Principal }) => Principal?.['Service'])),
      new Set(['lambda.amazonaws.com', 'ecs-tasks.amazonaws.com', 'scheduler.amazonaws.com']),
    );
    const scheduler = trusts.find(({ Principal }) => Principal?.['Service'] === 'scheduler.amazonaws.com');
    const [[group = ''] = []] = [...resourcesOf(fargate, 'AWS::Scheduler::ScheduleGroup')];
    assert.deepEqual(scheduler?.['Condition'], {
      StringEquals: { 'aws:SourceAccount': '<AWS::AccountId>', 'aws:SourceArn': `<${group}.Arn>` },
    });
  });
});

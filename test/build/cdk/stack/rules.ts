import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { QUEUES, visibilitySeconds } from '#shared/aws/queue-set.ts';
import { type Properties, readable, resourcesOf, statementsIn } from './resources.ts';
import { synthesized, synthesizedAgent } from './synthesized.ts';

const AGENTS = {
  'taintward:agents': {
    pods: { cluster: 'a', podIdentity: { clusterArns: 'arn:aws:eks:eu-west-1:123456789012:cluster/a' } },
    tokens: { cluster: 'b', irsa: { oidcProvider: 'arn:aws:iam::123456789012:oidc-provider/example.com' } },
  },
};

let service: Template;
let inPrivate: Template;
let all: readonly Template[];
before(() => {
  service = synthesized();
  inPrivate = synthesized({ 'taintward:staticEgressIps': 'true' });
  all = [
    service,
    inPrivate,
    ...Object.keys(AGENTS['taintward:agents']).map((id) => synthesizedAgent(id, AGENTS)),
  ];
});

/** Returns the properties of all resources of a type in all stacks, with references as text. */
const propertiesOf = (type: string, templates = all): readonly Properties[] =>
  templates.flatMap((template) =>
    [...resourcesOf(template, type).values()].map((one) => readable(one) as Properties),
  );

/** Returns the only resource of a type in the service's stack. */
function only(type: string, template = service): Properties {
  const [found, ...others] = propertiesOf(type, [template]);
  assert.ok(found && others.length === 0, `${type}: ${others.length + 1}`);
  return found;
}

describe('each queue', () => {
  test('is encrypted', () => {
    for (const queue of propertiesOf('AWS::SQS::Queue')) assert.equal(queue['SqsManagedSseEnabled'], true);
  });

  test('has a dead-letter queue of its own, which accepts from no other, and keeps messages for longer', () => {
    const specs = Object.values(QUEUES);
    for (const template of all) {
      const queues = [...resourcesOf(template, 'AWS::SQS::Queue')].map(
        ([id, one]) => [id, readable(one)] as const,
      );
      const byArn = new Map(queues.map(([id, queue]) => [`<${id}.Arn>`, queue as Properties]));
      const deadLetters = new Set<unknown>();
      for (const queue of byArn.values()) {
        const { RedrivePolicy: redrive, QueueName: name } = queue;
        if (redrive === undefined) continue;
        const { deadLetterTargetArn, maxReceiveCount } = redrive as Properties;
        const target = byArn.get(String(deadLetterTargetArn));
        assert.ok(target && !deadLetters.has(target), `${name}`);
        deadLetters.add(target);
        const { redrivePermission, sourceQueueArns } = target['RedriveAllowPolicy'] as Properties;
        assert.equal(redrivePermission, 'byQueue');
        assert.deepEqual(
          (sourceQueueArns as string[]).map((arn) => arn.split(':').at(-1)),
          [name],
        );
        assert.equal(target['FifoQueue'], queue['FifoQueue']);
        assert.equal(target['MessageRetentionPeriod'], 14 * 86_400);
        assert.ok(Number(queue['MessageRetentionPeriod']) <= 4 * 86_400);
        const spec = specs.find((one) => String(name).endsWith(`-${one.name}`));
        assert.equal(maxReceiveCount, spec?.maxReceiveCount);
        assert.equal(queue['VisibilityTimeout'], spec && visibilitySeconds(spec));
      }
      const others = [...byArn.values()].filter(
        (queue) => !queue['RedrivePolicy'] && !deadLetters.has(queue),
      );
      for (const { RedriveAllowPolicy } of others)
        assert.deepEqual(RedriveAllowPolicy, { redrivePermission: 'denyAll' });
    }
  });

  test('in order delays and deduplicates no other node', () => {
    const ordered = propertiesOf('AWS::SQS::Queue').filter(({ FifoQueue }) => FifoQueue);
    assert.ok(ordered.length >= 4);
    for (const { DeduplicationScope, FifoThroughputLimit } of ordered)
      assert.deepEqual([DeduplicationScope, FifoThroughputLimit], ['messageGroup', 'perMessageGroupId']);
  });
});

test('the table outlives its stack, is deleted by deployments only, and can be restored to any time of 35 days', () => {
  const [table] = Object.values(service.findResources('AWS::DynamoDB::Table'));
  assert.deepEqual(
    [table?.['DeletionPolicy'], table?.['UpdateReplacePolicy']],
    ['RetainExceptOnCreate', 'Retain'],
  );
  const { PointInTimeRecoverySpecification, StreamSpecification, TimeToLiveSpecification, ResourcePolicy } =
    only('AWS::DynamoDB::Table');
  assert.deepEqual(PointInTimeRecoverySpecification, { PointInTimeRecoveryEnabled: true });
  assert.partialDeepStrictEqual(
    [StreamSpecification, TimeToLiveSpecification],
    [{ StreamViewType: 'OLD_IMAGE' }, { Enabled: true }],
  );
  const denied = statementsIn((ResourcePolicy as Properties)['PolicyDocument']).filter(
    ({ Effect, Action }) => Effect === 'Deny' && Action.includes('dynamodb:DeleteTable'),
  );
  assert.equal(denied.length, 1);
  assert.partialDeepStrictEqual(Object.keys(denied[0]?.Condition ?? {}), ['ArnNotEquals']);
});

describe('the network', () => {
  test('lets nobody in, and out only by TCP, and to DNS', () => {
    assert.deepEqual(propertiesOf('AWS::EC2::SecurityGroupIngress'), []);
    for (const { SecurityGroupIngress = [], SecurityGroupEgress } of propertiesOf(
      'AWS::EC2::SecurityGroup',
    )) {
      assert.deepEqual(SecurityGroupIngress, []);
      const out = (SecurityGroupEgress as Properties[]).map(
        ({ IpProtocol, FromPort, ToPort }) => `${IpProtocol} ${FromPort}-${ToPort}`,
      );
      assert.deepEqual(out, ['tcp 0-65535', 'udp 53-53']);
    }
  });

  test('is in two zones, and gives public addresses only where it has no NAT gateways', () => {
    for (const [template, isPublic] of [
      [service, 'ENABLED'],
      [inPrivate, 'DISABLED'],
    ] as const) {
      const { NetworkConfiguration } = only('AWS::ECS::Service', template);
      const { AwsvpcConfiguration } = NetworkConfiguration as { AwsvpcConfiguration: Properties };
      const used = (AwsvpcConfiguration['Subnets'] as string[]).map((id) => id.slice(1, -1));
      assert.equal(AwsvpcConfiguration['AssignPublicIp'], isPublic);
      const subnets = resourcesOf(template, 'AWS::EC2::Subnet');
      const zones = new Set(used.map((id) => JSON.stringify(subnets.get(id)?.['AvailabilityZone'])));
      assert.equal(zones.size, 2);
    }
  });
});

describe('a relay of the stack', () => {
  test('may write no file, is not root, and waits for no log', () => {
    const { ContainerDefinitions } = only('AWS::ECS::TaskDefinition');
    const options = { mode: 'non-blocking' };
    assert.partialDeepStrictEqual(ContainerDefinitions, [
      { ReadonlyRootFilesystem: true, User: 'node', LogConfiguration: { Options: options } },
    ]);
  });

  test('is replaced only by one that runs, and has a standby', () => {
    const { DesiredCount, DeploymentConfiguration } = only('AWS::ECS::Service');
    assert.ok(Number(DesiredCount) >= 2);
    assert.partialDeepStrictEqual(DeploymentConfiguration, {
      MinimumHealthyPercent: 100,
      DeploymentCircuitBreaker: { Enable: true, Rollback: true },
    });
  });
});

describe('an event source', () => {
  test('redelivers single messages, and has a limit on concurrency where it is a queue', () => {
    for (const { FunctionResponseTypes, ScalingConfig, StartingPosition } of propertiesOf(
      'AWS::Lambda::EventSourceMapping',
    )) {
      assert.deepEqual(FunctionResponseTypes, ['ReportBatchItemFailures']);
      if (StartingPosition === undefined) assert.deepEqual(ScalingConfig, { MaximumConcurrency: 50 });
    }
  });

  test('of the table retries each record for nearly as long as the stream keeps it, and then keeps it', () => {
    const [stream, ...others] = propertiesOf('AWS::Lambda::EventSourceMapping', [service]).filter(
      ({ StartingPosition }) => StartingPosition !== undefined,
    );
    assert.equal(others.length, 0);
    assert.deepEqual(
      [stream?.['StartingPosition'], stream?.['BisectBatchOnFunctionError']],
      ['TRIM_HORIZON', true],
    );
    assert.equal(stream?.['MaximumRecordAgeInSeconds'], 23 * 3600);
    assert.ok((stream['DestinationConfig'] as Properties)['OnFailure']);
  });

  test('calls heartbeat every minute', () => {
    assert.partialDeepStrictEqual(only('AWS::Events::Rule'), {
      ScheduleExpression: 'rate(1 minute)',
      State: 'ENABLED',
    });
  });
});

test('logs are kept for a month', () => {
  for (const { RetentionInDays } of propertiesOf('AWS::Logs::LogGroup')) assert.equal(RetentionInDays, 30);
});

test('each role is assumed by one service, or by the pods of one service account', () => {
  const conditions: Readonly<Record<string, readonly string[]>> = {
    'lambda.amazonaws.com': [],
    'ecs-tasks.amazonaws.com': [],
    'scheduler.amazonaws.com': ['aws:SourceAccount', 'aws:SourceArn'],
    'pods.eks.amazonaws.com': [
      'aws:SourceAccount',
      ...['eks-cluster-arn', 'kubernetes-namespace', 'kubernetes-service-account'].map(
        (tag) => `aws:RequestTag/${tag}`,
      ),
    ],
    'arn:aws:iam::123456789012:oidc-provider/example.com': ['example.com:sub', 'example.com:aud'],
  };
  const found = new Set<string>();
  for (const { AssumeRolePolicyDocument } of propertiesOf('AWS::IAM::Role')) {
    const { Statement } = AssumeRolePolicyDocument as { Statement: Properties[] };
    assert.equal(Statement.length, 1);
    const { Principal, Condition } = Statement[0] as { Principal: Properties; Condition?: Properties };
    const who = String(Object.values(Principal));
    found.add(who);
    assert.deepEqual(Object.keys(Condition?.['StringEquals'] ?? {}), conditions[who], who);
  }
  assert.deepEqual([...found].toSorted(), Object.keys(conditions).toSorted());
});

test('a role is passed to EventBridge Scheduler alone', () => {
  const passes = propertiesOf('AWS::IAM::Policy')
    .flatMap(({ PolicyDocument }) => statementsIn(PolicyDocument))
    .filter(({ Action }) => Action.includes('iam:PassRole'));
  assert.ok(passes.length > 0);
  for (const { Condition } of passes)
    assert.deepEqual(Condition, { StringEquals: { 'iam:PassedToService': 'scheduler.amazonaws.com' } });
});

describe('an alarm', () => {
  test('that fires when too little is measured fires also when nothing is', () => {
    const low = propertiesOf('AWS::CloudWatch::Alarm').filter(
      ({ ComparisonOperator, AlarmName }) =>
        ComparisonOperator === 'LessThanThreshold' || AlarmName === 'taintward: Cluster without relay',
    );
    assert.ok(low.length >= 3);
    for (const { TreatMissingData } of low) assert.equal(TreatMissingData, 'breaching');
  });

  test('fires for a single dead letter, within a minute', () => {
    const [first, ...others] = propertiesOf('AWS::CloudWatch::Alarm').filter(({ AlarmName }) =>
      String(AlarmName).startsWith('taintward: Dead letters'),
    );
    assert.ok(first && others.length >= 3);
    for (const { Threshold, Period, EvaluationPeriods } of [first, ...others])
      assert.deepEqual([Threshold, Period, EvaluationPeriods], [1, 60, 1]);
  });
});

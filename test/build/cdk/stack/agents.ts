import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import { agentEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { QUEUES, visibilitySeconds } from '#shared/queues/queue-set.ts';
import { ALARMS_OF_AGENT } from '#test/scale/bill.ts';
import { permissions } from './permissions.ts';
import { readIn } from './place.ts';
import { readable, resourcesOf, resourceWith, type Statement, statementsIn } from './resources.ts';
import { synthesized, synthesizedAgent } from './synthesized.ts';

const CLUSTER_ARN = 'arn:aws:eks:eu-west-1:123456789012:cluster/prod';
const ISSUER = 'oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE';
const AGENTS = {
  'taintward:agents': {
    'edge-1': { cluster: 'prod', podIdentity: { clusterArns: CLUSTER_ARN } },
    'edge-2': {
      cluster: 'stage',
      namespace: 'ops',
      serviceAccount: 'evictor',
      irsa: { oidcProvider: `arn:aws:iam::123456789012:oidc-provider/${ISSUER}` },
    },
    'edge-3': { cluster: 'third' },
  },
};
const QUEUE = 'AWS::SQS::Queue';
const IRELAND = { partition: 'aws', region: 'eu-west-1', urlSuffix: 'amazonaws.com' };

let agent: Template;
before(() => {
  agent = synthesizedAgent('edge-1', AGENTS);
});

const outputOf = (of: Template, name: string): string => {
  const { Outputs } = readIn(IRELAND, of) as { Outputs: Record<string, { Value: string } | undefined> };
  const value = Outputs[name]?.Value;
  assert.ok(value !== undefined, name);
  return value;
};

/** Who becomes what `Timers` does not make. */
function trustOf(id: string): Statement {
  const template = synthesizedAgent(id, AGENTS);
  const { role } = agentNames(agentsPrefix('taintward'), id, '<AWS::Region>');
  const found = [...resourcesOf(template, 'AWS::IAM::Role').values()].filter(
    ({ RoleName }) => readable(RoleName) === role,
  );
  assert.equal(found.length, 1);
  const [statement, ...others] = statementsIn(found[0]?.['AssumeRolePolicyDocument']);
  assert.deepEqual(others, []);
  return statement ?? assert.fail('nobody becomes the agent');
}

describe('an agent is', () => {
  test('the pods of its service account in its EKS cluster, as EKS says who they are', () => {
    const { Action, Principal, Condition } = trustOf('edge-1');
    assert.deepEqual(Action, ['sts:AssumeRole', 'sts:TagSession']);
    assert.deepEqual(Principal, { Service: 'pods.eks.amazonaws.com' });
    assert.deepEqual(Condition, {
      StringEquals: {
        'aws:SourceAccount': '<AWS::AccountId>',
        'aws:RequestTag/eks-cluster-arn': [CLUSTER_ARN],
        'aws:RequestTag/kubernetes-namespace': 'taintward',
        'aws:RequestTag/kubernetes-service-account': 'taintward-agent',
      },
    });
  });

  test('whoever has a token of its service account, issued by its cluster and for STS', () => {
    const { Action, Principal, Condition } = trustOf('edge-2');
    assert.deepEqual(Action, ['sts:AssumeRoleWithWebIdentity']);
    assert.deepEqual(Principal, { Federated: `arn:aws:iam::123456789012:oidc-provider/${ISSUER}` });
    assert.deepEqual(Condition, {
      StringEquals: {
        [`${ISSUER}:sub`]: 'system:serviceaccount:ops:evictor',
        [`${ISSUER}:aud`]: 'sts.amazonaws.com',
      },
    });
  });

  test('or a role that somebody brings, to which its policy is attached', () => {
    const template = synthesizedAgent('edge-3', AGENTS);
    const [[id, { ManagedPolicyName } = {}] = []] = resourcesOf(template, 'AWS::IAM::ManagedPolicy');
    assert.equal(readable(ManagedPolicyName), 'taintward-agent-edge-3-<AWS::Region>');
    assert.equal(outputOf(template, 'Policy'), `<${id}>`);
    const roles = [...resourcesOf(template, 'AWS::IAM::Role').values()].map(({ RoleName }) =>
      readable(RoleName),
    );
    assert.deepEqual(roles, ['taintward-agent-edge-3-schedules-<AWS::Region>']);
  });
});

describe('what an agent has', () => {
  test('is named as those name it who send to it', () => {
    const names = agentNames(agentsPrefix('taintward'), 'edge-1', 'eu-west-1');
    const resources = readIn(IRELAND, agent)['Resources'] as Record<
      string,
      { Properties: Record<string, unknown> }
    >;
    const found = Object.values(resources).flatMap(({ Properties }) =>
      ['QueueName', 'RoleName', 'Name'].flatMap((property) => Properties[property] ?? []),
    );
    const { prefix: _prefix, ...all } = names;
    assert.deepEqual(found.toSorted(), Object.values(all).toSorted());
  });

  test('has names that AWS allows, whatever the region, with the longest ID', () => {
    const id = 'a'.repeat(21);
    synthesizedAgent(id, { 'taintward:agents': { [id]: { cluster: 'prod' } } });
    const { dueDeadLetters, scheduleRole, scheduleGroup } = agentNames(
      agentsPrefix('taintward'),
      id,
      'ap-southeast-1',
    );
    assert.ok(dueDeadLetters.length <= 80 && scheduleRole.length <= 64 && scheduleGroup.length <= 64);
  });

  test('has a queue like evictions-due, whose dead letters come from it alone', () => {
    const { properties } = resourceWith(agent, QUEUE, 'QueueName', 'taintward-agent-edge-1-evictions-due');
    const { properties: dead } = resourceWith(
      ...([agent, QUEUE, 'QueueName', 'taintward-agent-edge-1-evictions-due-dlq'] as const),
    );
    assert.equal(properties['VisibilityTimeout'], visibilitySeconds(QUEUES.evictionsDue));
    assert.deepEqual(readable(dead['RedriveAllowPolicy']), {
      redrivePermission: 'byQueue',
      sourceQueueArns: [
        'arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:taintward-agent-edge-1-evictions-due',
      ],
    });
    for (const each of [properties, dead]) assert.equal(each['SqsManagedSseEnabled'], true);
  });

  test('refers to nothing of the service but by name, and goes without a trace', () => {
    assert.doesNotMatch(JSON.stringify(agent.toJSON()), /Fn::ImportValue/);
    const resources = Object.values(
      agent.toJSON()['Resources'] as Record<string, { DeletionPolicy?: string }>,
    );
    for (const { DeletionPolicy = 'Delete' } of resources) assert.equal(DeletionPolicy, 'Delete');
  });

  test('changes nothing of the stack of the service', () => {
    assert.deepEqual(synthesized(AGENTS).toJSON(), synthesized().toJSON());
  });

  test('is, of one agent, what was last reviewed', (t) => {
    const said = { permissions: permissions(agent), trust: trustOf('edge-1'), queues: queuePolicies(agent) };
    t.assert.snapshot(said.permissions, { serializers: [String] });
    t.assert.snapshot(said.queues);
  });
});

/** What is forbidden of which queue. */
function queuePolicies(of: Template): readonly unknown[] {
  return [...resourcesOf(of, 'AWS::SQS::QueuePolicy').values()].map(({ Queues, PolicyDocument }) => ({
    queues: readable(Queues),
    statements: statementsIn(PolicyDocument),
  }));
}

describe('an agent is told', () => {
  const variables = () =>
    Object.fromEntries(
      outputOf(agent, 'Environment')
        .split(' ')
        .map((each) => each.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );

  test('the environment that it reads, and nothing besides', () => {
    const { AWS_REGION, ...given } = Object.fromEntries(
      // URLs of its own queues are not known before these are there.
      Object.entries(variables()).map(([name, value]) => [
        name,
        value.replace(/^<\w+>$/, 'https://example.com/1/q'),
      ]),
    );
    assert.equal(AWS_REGION, 'eu-west-1');
    const read = readEnvironment(agentEnvironment, given);
    assert.deepEqual([read.AGENT, read.CLUSTER], ['edge-1', 'prod']);
    const known: readonly string[] = Object.keys(agentEnvironment.shape);
    assert.deepEqual(
      Object.keys(given).filter((name) => !known.includes(name)),
      [],
    );
  });

  test('where the queues of the service are, by name', () => {
    const { NODE_DELTAS_URL, POD_DELTAS_URL, TABLE_NAME } = variables();
    const base = 'https://sqs.eu-west-1.amazonaws.com/111122223333/taintward-';
    assert.deepEqual(
      [NODE_DELTAS_URL, POD_DELTAS_URL, TABLE_NAME],
      [`${base}node-deltas.fifo`, `${base}pod-deltas.fifo`, 'taintward'],
    );
  });
});

describe('whoever deploys an agent is told', () => {
  test('the values that the chart is installed with; of a role only where the pod has to name it', () => {
    const of = (id: string) => JSON.parse(outputOf(synthesizedAgent(id, AGENTS), 'Values'));
    const account = { region: 'eu-west-1', account: '111122223333', installation: 'taintward' };
    assert.deepEqual(of('edge-1'), { mode: 'agent', agent: { ...account, cluster: 'prod', id: 'edge-1' } });
    assert.match(of('edge-2').agent.roleArn, /^<Identity\w+\.Arn>$/);
  });

  test('how its pods become its role, in the region of the cluster', () => {
    assert.match(
      outputOf(agent, 'PodIdentity'),
      /^aws eks create-pod-identity-association --region eu-west-1 --cluster-name prod --namespace taintward --service-account taintward-agent --role-arn <\w+\.Arn>$/,
    );
  });

  test('how the cluster is registered', () => {
    assert.equal(outputOf(agent, 'NextStep'), 'npx taintward clusters add prod --agent edge-1');
  });
});

describe('alarms of an agent', () => {
  const alarms = (context: Readonly<Record<string, unknown>> = {}) =>
    [
      ...resourcesOf(
        synthesizedAgent('edge-1', { ...AGENTS, ...context }),
        'AWS::CloudWatch::Alarm',
      ).values(),
    ].map(readable) as Readonly<Record<string, unknown>>[];

  test('are named after the installation, so that its doctor finds them', () => {
    assert.deepEqual(
      alarms()
        .map(({ AlarmName }) => AlarmName)
        .toSorted(),
      ['agents are silent', 'dead letters', 'messages wait', 'schedules are dropped'].map(
        (title) => `taintward: ${title} (agent edge-1)`,
      ),
    );
  });

  test('are as many as its bill says', () => assert.equal(alarms().length, ALARMS_OF_AGENT));

  test('ring when nobody asks its queue, also when that is not counted any more', () => {
    const silent = alarms().find(({ AlarmName }) => String(AlarmName).includes('silent'));
    assert.deepEqual(
      [
        silent?.['MetricName'],
        silent?.['ComparisonOperator'],
        silent?.['Threshold'],
        silent?.['TreatMissingData'],
      ],
      ['NumberOfEmptyReceives', 'LessThanThreshold', 1, 'breaching'],
    );
  });

  test('tell those that alarms of the service tell', () => {
    const topic = 'arn:aws:sns:eu-west-1:123456789012:ops';
    const mail = 'arn:<AWS::Partition>:sns:<AWS::Region>:<AWS::AccountId>:taintward-alarms';
    const context = { 'taintward:alarmTopicArn': topic, 'taintward:alarmEmail': 'ops@example.com' };
    for (const { AlarmActions, OKActions } of alarms(context))
      assert.deepEqual(
        [AlarmActions, OKActions],
        [
          [topic, mail],
          [topic, mail],
        ],
      );
    const [made] = resourcesOf(synthesized(context), 'AWS::SNS::Topic').values();
    assert.equal(made?.['TopicName'], 'taintward-alarms');
  });
});

test('cluster names are patterns of themselves alone', () => {
  // As the schema of the setting lets none through that are more.
  const odd = clusterName("it's!a+name=(with)%{all}<that>[IAM]|reads~as^it`is");
  const template = synthesizedAgent('odd', { 'taintward:agents': { odd: { cluster: odd } } });
  assert.ok(JSON.stringify(template.toJSON()).includes(JSON.stringify(`CLUSTER#${odd}`)));
});

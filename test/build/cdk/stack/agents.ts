import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { App } from 'aws-cdk-lib';
import type { Template } from 'aws-cdk-lib/assertions';
import { agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import { agentEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { readConfig } from '../../../../cdk/config.ts';
import { allows } from '../permissions/policy.ts';
import { readIn } from './place.ts';
import { type Properties, readable, resourcesOf, statementsIn } from './resources.ts';
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
const IRELAND = { partition: 'aws', region: 'eu-west-1', urlSuffix: 'amazonaws.com' };

let agent: Template;
before(() => {
  agent = synthesizedAgent('edge-1', AGENTS);
});

const outputOf = (template: Template, name: string): string => {
  const { Outputs } = readIn(IRELAND, template) as { Outputs: Record<string, { Value: string } | undefined> };
  const value = Outputs[name]?.Value;
  assert.ok(value !== undefined, name);
  return value;
};

describe('the resources of an agent', () => {
  test('have the names that their senders derive', () => {
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

  test('have names that AWS allows, in any region, with the longest ID', () => {
    const id = 'a'.repeat(21);
    synthesizedAgent(id, { 'taintward:agents': { [id]: { cluster: 'prod' } } });
    const { dueDeadLetters, scheduleRole, scheduleGroup } = agentNames(
      agentsPrefix('taintward'),
      id,
      'ap-southeast-1',
    );
    assert.ok(dueDeadLetters.length <= 80 && scheduleRole.length <= 64 && scheduleGroup.length <= 64);
  });

  test('change nothing in the stack of the service', () => {
    assert.deepEqual(synthesized(AGENTS).toJSON(), synthesized().toJSON());
  });
});

describe('the role of an agent with EKS Pod Identity', () => {
  const account = '111122223333';
  const own = `arn:aws:eks:eu-west-1:${account}:cluster/prod`;
  const podIdentity = (clusterArns: string) => ({
    'taintward:agents': { a: { cluster: 'prod', podIdentity: { clusterArns } } },
  });

  test('trusts the pods of its service account in its cluster, and no others', () => {
    const resources = readIn(IRELAND, synthesizedAgent('a', podIdentity(own)))['Resources'];
    const { AssumeRolePolicyDocument } =
      Object.values(resources as Record<string, { Properties: Properties }>)
        .map(({ Properties }) => Properties)
        .find(({ RoleName }) => RoleName === 'taintward-agent-a-eu-west-1') ?? {};
    const trust = statementsIn(AssumeRolePolicyDocument).map((each) => ({ ...each, Resource: ['*'] }));
    assert.deepEqual(
      trust.map(({ Principal }) => Principal),
      [{ Service: 'pods.eks.amazonaws.com' }],
    );
    const pod = {
      'aws:SourceAccount': [account],
      'aws:RequestTag/eks-cluster-arn': [own],
      'aws:RequestTag/kubernetes-namespace': ['taintward'],
      'aws:RequestTag/kubernetes-service-account': ['taintward-agent'],
    };
    const isTrusted = (other: object, action = 'sts:AssumeRole') =>
      allows(trust, [], { action, resource: 'role', context: { ...pod, ...other } });
    assert.ok(isTrusted({}) && isTrusted({}, 'sts:TagSession'));
    for (const key of Object.keys(pod)) assert.ok(!isTrusted({ [key]: ['another'] }), key);
  });

  test('is rejected for a cluster of another account, whose pods cannot assume it', () => {
    const read = (ours?: string) =>
      readConfig(new App({ context: podIdentity(own) }).node, ours).agents?.['a']?.cluster;
    assert.deepEqual([read(account), read()], ['prod', 'prod']);
    assert.throws(() => read('210987654321'), {
      name: 'ConfigError',
      message: `The context key taintward:agents (podIdentity.clusterArns) names ${own}, but EKS Pod Identity gives roles of account 210987654321 to its own clusters only. Use irsa.`,
    });
  });
});

describe("an agent's environment", () => {
  const variables = () =>
    Object.fromEntries(
      outputOf(agent, 'Environment')
        .split(' ')
        .map((each) => each.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );

  test('contains exactly the variables that the agent reads', () => {
    const { AWS_REGION, ...given } = Object.fromEntries(
      // The URLs of its own queues are unknown until the queues exist.
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
});

describe("the outputs of an agent's stack", () => {
  test('contain the values for the chart; a role only where the pod has to name it', () => {
    const valuesOf = (id: string) => JSON.parse(outputOf(synthesizedAgent(id, AGENTS), 'Values'));
    const account = { region: 'eu-west-1', account: '111122223333', installation: 'taintward' };
    assert.deepEqual(valuesOf('edge-1'), {
      mode: 'agent',
      agent: { ...account, cluster: 'prod', id: 'edge-1' },
    });
    assert.match(valuesOf('edge-2').agent.roleArn, /^<Identity\w+\.Arn>$/);
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

  test('notify the same targets as the alarms of the service', () => {
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

test('cluster names match only themselves as patterns', () => {
  // The setting's schema rejects names with wildcards.
  const odd = clusterName("it's!a+name=(with)%{all}<that>[IAM]|reads~as^it`is");
  const template = synthesizedAgent('odd', { 'taintward:agents': { odd: { cluster: odd } } });
  assert.ok(JSON.stringify(template.toJSON()).includes(JSON.stringify(`CLUSTER#${odd}`)));
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { type Place, readIn } from './place.ts';
import { synthesized, synthesizedAgent } from './synthesized.ts';

/** Resource types whose names are unique in an account's region, with the property that names them. */
const NAMED_IN_REGION: Readonly<Record<string, string>> = {
  'AWS::CloudWatch::Alarm': 'AlarmName',
  'AWS::CloudWatch::CompositeAlarm': 'AlarmName',
  'AWS::DynamoDB::Table': 'TableName',
  'AWS::ECS::Cluster': 'ClusterName',
  'AWS::ECS::Service': 'ServiceName',
  'AWS::ECS::TaskDefinition': 'Family',
  'AWS::Lambda::Function': 'FunctionName',
  'AWS::Logs::LogGroup': 'LogGroupName',
  'AWS::SNS::Topic': 'TopicName',
  'AWS::SQS::Queue': 'QueueName',
  'AWS::SSM::Parameter': 'Name',
  'AWS::Scheduler::ScheduleGroup': 'Name',
};

/**
 * Resource types whose names are unique in an account across all regions. IAM has no regions; "all dashboards in your
 * account are global" (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html).
 */
const NAMED_IN_ACCOUNT: Readonly<Record<string, string>> = {
  'AWS::CloudWatch::Dashboard': 'DashboardName',
  'AWS::IAM::ManagedPolicy': 'ManagedPolicyName',
  'AWS::IAM::Role': 'RoleName',
};

/** Resource types without a name: parts of something else, or named by CloudFormation. */
const UNNAMED = [
  'AWS::EC2::InternetGateway',
  'AWS::EC2::Route',
  'AWS::EC2::RouteTable',
  'AWS::EC2::SecurityGroup',
  'AWS::EC2::Subnet',
  'AWS::EC2::SubnetRouteTableAssociation',
  'AWS::EC2::VPC',
  'AWS::EC2::VPCEndpoint',
  'AWS::EC2::VPCGatewayAttachment',
  'AWS::Events::Rule',
  'AWS::IAM::Policy',
  'AWS::Lambda::EventSourceMapping',
  'AWS::Lambda::Permission',
  'AWS::SNS::Subscription',
  'AWS::SNS::TopicPolicy',
  'AWS::SQS::QueuePolicy',
];

interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}

const IRELAND: Place = { partition: 'aws', region: 'eu-west-1', urlSuffix: 'amazonaws.com' };
const OHIO: Place = { ...IRELAND, region: 'us-east-2' };

const resourcesIn = (place: Place, template: Template): readonly Resource[] =>
  Object.values(readIn(place, template)['Resources'] as Readonly<Record<string, Resource>>);

/** Returns the names that a deployment takes, with their types. */
function taken(place: Place, template: Template, named: Readonly<Record<string, string>>): readonly string[] {
  return resourcesIn(place, template).flatMap(({ Type, Properties }) => {
    const name = named[Type] === undefined ? undefined : Properties[named[Type]];
    return name === undefined ? [] : [`${Type} ${String(name)}`];
  });
}

const common = (some: readonly string[], others: readonly string[]) =>
  some.filter((name) => others.includes(name));

describe('the resources of the stack', () => {
  const AGENTS = {
    'edge-1': { cluster: 'a', podIdentity: { clusterArns: 'arn:aws:eks:eu-west-1:123456789012:cluster/a' } },
    'edge-2': { cluster: 'b' },
  };
  const agentsOf = (installation: string) =>
    Object.keys(AGENTS).map((id) =>
      synthesizedAgent(id, { 'taintward:name': installation, 'taintward:agents': AGENTS }),
    );
  const deployments = () => [
    ...[synthesized(), synthesized({ 'taintward:relay': 'external' })],
    ...[synthesized({ 'taintward:alarmEmail': 'ops@example.com' }), ...agentsOf('taintward')],
  ];

  test('are known here, type by type', () => {
    const known = [...Object.keys(NAMED_IN_REGION), ...Object.keys(NAMED_IN_ACCOUNT), ...UNNAMED];
    const found = new Set(
      deployments().flatMap((each) => resourcesIn(IRELAND, each).map(({ Type }) => Type)),
    );
    assert.deepEqual(
      [...found].filter((type) => !known.includes(type)),
      [],
    );
  });

  test('have a region-specific name if the name is global, so that one account can hold the stack twice', () => {
    for (const template of deployments()) {
      const here = taken(IRELAND, template, NAMED_IN_ACCOUNT);
      assert.ok(here.length > 1);
      assert.deepEqual(common(here, taken(OHIO, template, NAMED_IN_ACCOUNT)), []);
    }
  });

  test('have different names in a stage of another name, so that one region can hold both', () => {
    const all = { ...NAMED_IN_REGION, ...NAMED_IN_ACCOUNT };
    const takenBy = (...templates: readonly Template[]) =>
      templates.flatMap((template) => taken(IRELAND, template, all));
    const staging = takenBy(synthesized({ 'taintward:name': 'staging' }), ...agentsOf('staging'));
    assert.ok(staging.length > 40);
    assert.deepEqual(common(staging, takenBy(synthesized(), ...agentsOf('taintward'))), []);
  });

  test('have role names that IAM allows, in any region, with the longest name of an installation', () => {
    const place = { ...IRELAND, region: 'ap-southeast-1' };
    const roles = taken(place, synthesized({ 'taintward:name': 'a'.repeat(31) }), {
      'AWS::IAM::Role': 'RoleName',
    }).map((role) => role.replace('AWS::IAM::Role ', ''));
    assert.equal(roles.length, 7);
    for (const role of roles) assert.ok(role.length <= 64, role);
  });

  test('have the ARNs that policies outside need as outputs, and as parameters of the same names', () => {
    const ARNS = {
      RelayRoleArn: /^<RelayRole\w+\.Arn>$/,
      EvictRoleArn: /^<FunctionsEvictRole\w+\.Arn>$/,
      TableArn: /^<StateTable\w+\.Arn>$/,
      NodeDeltasArn: /^<DeltasNodesQueue\w+\.Arn>$/,
      NodeDeltasDeadLettersArn: /^<DeltasNodesDeadLettersQueue\w+\.Arn>$/,
      PodDeltasArn: /^<DeltasPodsQueue\w+\.Arn>$/,
      PodDeltasDeadLettersArn: /^<DeltasPodsDeadLettersQueue\w+\.Arn>$/,
      EvictionsDueArn: /^<TimersDueQueue\w+\.Arn>$/,
      EvictionsDueDeadLettersArn: /^<TimersDueDeadLettersQueue\w+\.Arn>$/,
      ExpiryDeadLettersArn: /^<FunctionsExpiryDeadLettersQueue\w+\.Arn>$/,
      AlarmTopicArn: /^arn:aws:sns:eu-west-1:\d{12}:taintward-alarms$/,
    };
    const template = synthesized({ 'taintward:alarmEmail': 'ops@example.com' });
    const { Outputs } = readIn(IRELAND, template) as { Outputs: Record<string, { Value: string }> };
    const parameters = resourcesIn(IRELAND, template)
      .filter(({ Type }) => Type === 'AWS::SSM::Parameter')
      .map(({ Properties }) => [Properties['Name'], Properties['Value']]);
    assert.deepEqual(
      parameters,
      Object.keys(ARNS).map((name) => [`/taintward/taintward/${name}`, Outputs[name]?.Value]),
    );
    for (const [name, arn] of Object.entries(ARNS)) assert.match(Outputs[name]?.Value ?? '', arn, name);
    const external = synthesized({ 'taintward:relay': 'external' }).findOutputs('*');
    assert.deepEqual(
      Object.keys(ARNS).filter((name) => !(name in external)),
      ['RelayRoleArn', 'AlarmTopicArn'],
    );
  });

  test('have different names for each agent', () => {
    const all = { ...NAMED_IN_REGION, ...NAMED_IN_ACCOUNT };
    const names = [synthesized(), ...agentsOf('taintward')].flatMap((each) => taken(IRELAND, each, all));
    assert.equal(new Set(names).size, names.length);
  });
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { releasedTemplate } from '#deploy/release/aws-template.ts';
import { pageText } from '#test/transcripts/page.ts';
import { synthesized } from './synthesized.ts';

type Fields = Readonly<Record<string, unknown>>;

const ACCOUNT = '123456789012';
const REGION = 'eu-west-1';
const DIGEST = `@sha256:${'0123456789abcdef'.repeat(4)}`;
const VPC = 'vpc-0123456789abcdef0';
const SUBNETS = ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1'];
const TOPIC = `arn:aws:sns:${REGION}:${ACCOUNT}:ops`;
const WARNINGS = `${TOPIC}-warnings`;
/** The logical ID of the subscription contains the address. */
const EMAIL = 'parameter@example.com';
const IMAGE = `ghcr.io/taintward/taintward${DIGEST}`;

/** A deployment by the CDK, and the same by parameters of the released template. */
const SAME: Readonly<Record<string, readonly [context: Fields, parameters: Fields, account?: string]>> = {
  'two relays in Fargate': [{ relayImage: IMAGE }, { RelayImage: IMAGE }],
  'relays in Fargate, and evict, in a given VPC': [
    { relayImage: IMAGE, vpcId: VPC, subnetIds: SUBNETS },
    { RelayImage: IMAGE, VpcId: VPC, SubnetIds: SUBNETS },
  ],
  'relays outside': [{ relay: 'external' }, { Relay: 'external' }],
  'relays outside, and evict in a given VPC': [
    { relay: 'external', vpcId: VPC, subnetIds: SUBNETS, historyDays: 30 },
    { Relay: 'external', VpcId: VPC, SubnetIds: SUBNETS, HistoryDays: '30' },
  ],
  'alarms by email': [
    { relayImage: IMAGE, alarmEmail: EMAIL },
    { RelayImage: IMAGE, AlarmEmail: EMAIL },
  ],
  'alarms to a topic': [
    { relay: 'external', alarmTopicArn: TOPIC },
    { Relay: 'external', AlarmTopicArn: TOPIC },
  ],
  'alarms to both, in a given VPC': [
    { relayImage: IMAGE, vpcId: VPC, subnetIds: SUBNETS, alarmEmail: EMAIL, alarmTopicArn: TOPIC },
    { RelayImage: IMAGE, VpcId: VPC, SubnetIds: SUBNETS, AlarmEmail: EMAIL, AlarmTopicArn: TOPIC },
  ],
  'pages to one topic, and warnings to another': [
    { relayImage: IMAGE, alarmTopicArn: TOPIC, warningTopicArn: WARNINGS },
    { RelayImage: IMAGE, AlarmTopicArn: TOPIC, WarningTopicArn: WARNINGS },
  ],
  'all alarms to the topic of warnings, and by email, in a given VPC': [
    { relayImage: IMAGE, vpcId: VPC, subnetIds: SUBNETS, alarmEmail: EMAIL, warningTopicArn: WARNINGS },
    { RelayImage: IMAGE, VpcId: VPC, SubnetIds: SUBNETS, AlarmEmail: EMAIL, WarningTopicArn: WARNINGS },
  ],
  LocalStack: [{ endpoint: 'localstack' }, { Relay: 'external' }, '000000000000'],
};

/** Returns resources and outputs with all values filled in, as CloudFormation does it; of other resources as `<Id.Arn>`. */
function deployed(template: Fields, parameters: Fields, account: string) {
  const { Conditions = {}, Parameters = {} } = template as { Conditions?: Fields; Parameters?: Fields };
  const values: Fields = {
    ...Object.fromEntries(
      Object.entries(Parameters).map(([name, parameter]) => [name, String((parameter as Fields)['Default'])]),
    ),
    ...parameters,
    'AWS::AccountId': account,
    'AWS::Region': REGION,
    'AWS::Partition': 'aws',
    'AWS::NoValue': undefined,
  };
  const holds = (name: unknown): boolean =>
    filled(Conditions[String(name)] ?? assert.fail(String(name))) === true;
  const filled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(filled).filter((item) => item !== undefined);
    if (typeof value !== 'object' || value === null) return value;
    const fields = value as Fields;
    const [[name = '', argument] = []] = Object.entries(fields);
    const list = argument as readonly unknown[];
    if (name === 'Ref') return String(argument) in values ? values[String(argument)] : `<${argument}>`;
    if (name === 'Fn::If') return filled(holds(list[0]) ? list[1] : list[2]);
    if (name === 'Condition' && typeof argument === 'string' && Object.keys(fields).length === 1)
      return holds(argument);
    if (name === 'Fn::Not') return filled(list[0]) === false;
    if (name === 'Fn::And') return list.every((item) => filled(item) === true);
    if (name === 'Fn::Or') return list.some((item) => filled(item) === true);
    if (name === 'Fn::Equals') return filled(list[0]) === filled(list[1]);
    if (name === 'Fn::GetAtt') return `<${list.join('.')}>`;
    if (name === 'Fn::Join') return (filled(list[1]) as string[]).join(String(list[0]));
    if (name === 'Fn::Sub')
      return String(argument).replace(/\$\{([^}]+)\}/g, (_, key: string) => String(filled({ Ref: key })));
    const entries = Object.entries(fields).map(([key, item]) => [key, filled(item)] as const);
    return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
  };
  const section = (name: string) =>
    Object.entries((template[name] ?? {}) as Readonly<Record<string, Fields>>).filter(
      ([, { Condition }]) => Condition === undefined || holds(Condition),
    );
  const ids = section('Resources').map(([id]) => id);
  const resources = section('Resources').map(([id, { Condition: _, DependsOn, Properties, ...other }]) => {
    // The hashes of code differ, because tests build none.
    const { Code: __, ...properties } = (filled(Properties) ?? {}) as Fields;
    const dependencies = [DependsOn ?? []].flat().filter((name) => ids.includes(String(name)));
    return [id, { ...other, properties, dependencies: dependencies.toSorted() }];
  });
  const outputs = section('Outputs').map(([id, { Condition: _, ...output }]) => [id, filled(output)]);
  return { resources: Object.fromEntries(resources), outputs: Object.fromEntries(outputs) };
}

describe('the released template', () => {
  const outdir = mkdtempSync(join(tmpdir(), 'taintward-released-'));
  let released: Fields;
  before(() => {
    released = releasedTemplate(outdir, { 'aws:cdk:bundling-stacks': [] });
  });
  after(() => rmSync(outdir, { recursive: true }));

  for (const [name, [context, parameters, account = ACCOUNT]] of Object.entries(SAME)) {
    test(`deploys the same as the CDK: ${name}`, () => {
      const settings = Object.entries(context).map(([key, value]) => [`taintward:${key}`, value]);
      const role = `arn:aws:iam::${account}:role/cdk-hnb659fds-cfn-exec-role-${account}-${REGION}`;
      const byCdk: Template = synthesized(Object.fromEntries(settings));
      assert.deepEqual(
        deployed(released, { ...parameters, DeploymentRoleArn: role }, account),
        deployed(byCdk.toJSON(), {}, account),
      );
    });
  }

  test('permits its own deployments alone to delete the table, without any role of cdk bootstrap', () => {
    const { resources } = deployed(released, { CodeBucket: 'code' }, ACCOUNT);
    const { Statement } = resources['StateTable962DE04C'].properties.ResourcePolicy.PolicyDocument;
    assert.deepEqual(Statement[1].Condition, {
      'ForAllValues:StringNotEquals': { 'aws:CalledVia': 'cloudformation.amazonaws.com' },
    });
    assert.doesNotMatch(JSON.stringify(released), /cdk-|bootstrap/i);
  });

  test('names every resource after the installation, and its code by bucket and prefix', () => {
    const { resources } = deployed(released, { Name: 'staging' }, ACCOUNT);
    const texts = JSON.stringify(
      Object.values(resources).map((resource) => (resource as Fields)['properties']),
    );
    assert.doesNotMatch(texts, /parameter|"taintward-|\/taintward-(?!(access|relay|evict)[*/])/);
    const { Code } =
      (released['Resources'] as Record<string, { Properties: Fields }>)['FunctionsEvictFunctionC9736A2D']
        ?.Properties ?? {};
    const { S3Bucket, S3Key } = Code as Fields;
    assert.match(
      JSON.stringify([S3Bucket, S3Key]),
      /^\[\{"Fn::Sub":"\$\{CodeBucket\}"\},\{"Fn::Sub":"\$\{CodePrefix\}[0-9a-f]{64}\.zip"\}\]$/,
    );
  });

  test('has a parameter in a group of the console for each value that it needs', () => {
    const { Parameters, Metadata, ...rest } = released as Readonly<Record<string, Fields>>;
    const { ParameterGroups } = Object(Metadata?.['AWS::CloudFormation::Interface']) as {
      readonly ParameterGroups: readonly Fields[];
    };
    const grouped = ParameterGroups.flatMap((group) => group['Parameters'] as readonly string[]);
    assert.deepEqual(grouped.toSorted(), Object.keys(Parameters ?? {}).toSorted());
    for (const name of grouped)
      assert.match(JSON.stringify(rest), new RegExp(`"Ref":"${name}"|\\$\\{${name}\\}`), name);
  });

  test('has the parameters that the page and its Terraform code name', () => {
    const page = pageText('how-to/install-by-cloudformation.md');
    const names = [...page.matchAll(/\b([A-Z][A-Za-z]+)(?= = [v"]|="?\$|=ext)|^\| (`[^|]+`) \|/gm)].flatMap(
      ([, one, row]) => one ?? row?.replaceAll('`', '').split(', ') ?? [],
    );
    assert.deepEqual(new Set(names), new Set(Object.keys(released['Parameters'] as Fields)));
  });

  test('is within the limits of CloudFormation', () => {
    assert.ok(JSON.stringify(released).length < 460_800);
    assert.ok(Object.keys(released['Resources'] as Fields).length < 500);
  });
});

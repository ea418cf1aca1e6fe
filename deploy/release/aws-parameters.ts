import { LOCALSTACK_ACCOUNT } from '#shared/aws/localstack.ts';
import { HISTORY_DAYS, MAX_HISTORY_DAYS, MIN_HISTORY_DAYS } from '#shared/state/stored.ts';
import { VERSION } from '#shared/version.ts';

/**
 * Settings whose values only the operator knows, with values that occur nowhere else in the template. The parameter of a
 * setting has its name, with a capital.
 */
export const STAND_INS = {
  name: 'taintward-name-parameter',
  relayImage: `parameter.example/relay@sha256:${'0'.repeat(64)}`,
  vpcId: 'vpc-0000000000000000f',
  // Not two, as in the VPC of the stack's own: lists of one length are merged by their elements.
  subnetIds: ['subnet-0000000000000000d', 'subnet-0000000000000000e', 'subnet-0000000000000000f'],
  alarmTopicArn: 'arn:aws:sns:us-east-1:999999999999:parameter',
  warningTopicArn: 'arn:aws:sns:us-east-1:999999999999:warnings',
  alarmEmail: 'parameter@example.com',
  historyDays: '1013',
} as const;

const text = (Description: string, other: Readonly<Record<string, string | number | readonly string[]>>) => ({
  Type: 'String',
  Description,
  ...other,
});
const optional = (Description: string, AllowedPattern: string, ConstraintDescription: string) =>
  text(Description, { Default: '', AllowedPattern: `^(${AllowedPattern})?$`, ConstraintDescription });

const topic = (purpose: string) =>
  optional(
    `${purpose} Without another topic, for all. Empty: none.`,
    'arn:[^:]+:sns:[^:]+:\\d{12}:.+',
    'must be the ARN of an SNS topic',
  );

export const PARAMETERS = {
  CodeBucket: text('Bucket of this region with the ZIP files of the release.', {
    AllowedPattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
    ConstraintDescription: 'must be the name of a bucket',
  }),
  CodePrefix: text('Text before the names of the ZIP files in the bucket, for example taintward/.', {
    Default: '',
  }),
  Name: text('Name of the installation, and prefix of its resources. A change replaces all of them.', {
    Default: 'taintward',
    AllowedPattern: '^(?!.*-agent-)[a-z][a-z0-9-]{0,30}$',
    ConstraintDescription:
      'must have only lowercase letters, digits, and hyphens, begin with a letter, and have at most 31 characters',
  }),
  Relay: text('fargate: the stack runs two relays. external: you run them.', {
    Default: 'fargate',
    AllowedValues: ['fargate', 'external'],
  }),
  RelayImage: text('Image of the relays in a public registry, of the same release.', {
    Default: `ghcr.io/taintward/taintward:${VERSION}`,
    AllowedPattern: '^[^\\s]+[:@][^\\s]+$',
    ConstraintDescription: 'must be an image with its tag or digest',
  }),
  VpcId: optional(
    'VPC of relays and evict. Empty: a small VPC for the relays.',
    'vpc-[0-9a-f]+',
    'must look like vpc-0123456789abcdef0',
  ),
  SubnetIds: {
    Type: 'CommaDelimitedList',
    Description:
      'Private subnets of that VPC, in two zones, with routes to the clusters and to the AWS APIs.',
    Default: '',
  },
  AlarmTopicArn: topic('SNS topic for the alarm that may wake somebody.'),
  WarningTopicArn: topic('SNS topic for all other alarms.'),
  AlarmEmail: optional(
    'Email address for all alarms. Its owner must confirm an email from AWS first. Empty: none.',
    '[^\\s@]+@[^\\s@]+\\.[^\\s@]+',
    'must be an email address',
  ),
  HistoryDays: {
    Type: 'Number',
    Description: 'Retention of history and audit log, in days.',
    Default: HISTORY_DAYS,
    MinValue: MIN_HISTORY_DAYS,
    MaxValue: MAX_HISTORY_DAYS,
  },
  DeploymentRoleArn: optional(
    'Role by which CloudFormation deploys this stack (--role-arn, StackSets), which alone may delete its table. Empty: the caller.',
    'arn:[^:]+:iam::\\d{12}:role/.+',
    'must be the ARN of a role',
  ),
};

const given = (parameter: keyof typeof PARAMETERS) => ({
  'Fn::Not': [{ 'Fn::Equals': [{ Ref: parameter }, ''] }],
});

export const CONDITIONS = {
  RelayInStack: { 'Fn::Equals': [{ Ref: 'Relay' }, 'fargate'] },
  HasVpc: given('VpcId'),
  HasAlarmTopic: given('AlarmTopicArn'),
  HasWarningTopic: given('WarningTopicArn'),
  HasAlarmEmail: given('AlarmEmail'),
  HasDeploymentRole: given('DeploymentRoleArn'),
  OnLocalStack: { 'Fn::Equals': [{ Ref: 'AWS::AccountId' }, LOCALSTACK_ACCOUNT] },
};

const group = (label: string, ...Parameters: readonly (keyof typeof PARAMETERS)[]) => ({
  Label: { default: label },
  Parameters,
});

/** The groups in which the AWS console shows the parameters. */
export const INTERFACE = {
  ParameterGroups: [
    group('Release', 'CodeBucket', 'CodePrefix'),
    group('Installation', 'Name', 'HistoryDays', 'DeploymentRoleArn'),
    group('Relays and network', 'Relay', 'RelayImage', 'VpcId', 'SubnetIds'),
    group('Alarms', 'AlarmTopicArn', 'WarningTopicArn', 'AlarmEmail'),
  ],
};

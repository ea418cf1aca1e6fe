import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { App, Aws } from 'aws-cdk-lib';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { type Config, ConfigError, fargateCpu, readConfig } from '../../../../cdk/config.ts';

function read(context: Readonly<Record<string, unknown>>): Config {
  return readConfig(new App({ context: { 'aws:cdk:some-flag': true, ...context } }).node);
}

const refusal = (context: Readonly<Record<string, unknown>>): string => {
  try {
    read(context);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  assert.fail('the configuration was accepted');
};

describe('the configuration', () => {
  test('works without any setting', () => {
    assert.deepEqual(read({}), {
      name: 'taintward',
      relay: 'fargate',
      relayCount: 2,
      relayMemoryMiB: 512,
      staticEgressIps: false,
      historyDays: 7,
      retainTable: true,
      concurrency: 50,
      kubeconfigSecrets: ['taintward/*'],
      clusterRoles: [`arn:${Aws.PARTITION}:iam::*:role/taintward-access*`],
      metricsByCluster: false,
      comparisonOperators: false,
      endpoint: 'aws',
    } satisfies Config);
  });

  test('is the same from the command line, where every value is text, and from cdk.json', () => {
    const text = {
      'taintward:relayCount': '3',
      'taintward:retainTable': 'false',
      'taintward:kubeconfigSecrets': 'prod/*,dev/*',
    };
    const typed = {
      'taintward:relayCount': 3,
      'taintward:retainTable': false,
      'taintward:kubeconfigSecrets': ['prod/*', 'dev/*'],
    };
    assert.deepEqual(read(text), read(typed));
    assert.deepEqual(read(typed).kubeconfigSecrets, ['prod/*', 'dev/*']);
  });
});

test('chooses the least CPU for each amount of memory that Fargate has, and takes any for a relay that is run elsewhere', () => {
  const cpus = [512, 1024, 2048, 3072, 4096, 5120, 8192, 16_384, 30_720, 32_768, 61_440, 65_536, 122_880].map(
    (memory) => fargateCpu(read({ 'taintward:relayMemoryMiB': memory }).relayMemoryMiB),
  );
  assert.deepEqual(cpus, [256, 256, 256, 512, 512, 1024, 1024, 2048, 4096, 8192, 8192, 16_384, 16_384]);
  const external = { 'taintward:relay': 'external', 'taintward:relayMemoryMiB': 600 };
  assert.equal(read(external).relayMemoryMiB, 600);
});

test('ignores keys of others', () => {
  assert.equal(read({ region: 'eu-west-1', 'acme:name': 'x', 'availability-zones:x': [] }).name, 'taintward');
});

test('reads relays by name from an object in cdk.json, and from JSON on the command line', () => {
  const relays = { edge: { clusters: ['edge-*'] }, core: { clusters: ['prod', 'stage'] } };
  const external = { 'taintward:relay': 'external' };
  assert.deepEqual(read({ ...external, 'taintward:relays': relays }).relays, relays);
  assert.deepEqual(read({ ...external, 'taintward:relays': JSON.stringify(relays) }).relays, relays);
});

test('reads agents by ID from an object in cdk.json, and from JSON on the command line', () => {
  const clusterArns = ['arn:aws:eks:eu-west-1:123456789012:cluster/prod'];
  const agents = { 'edge-1': { cluster: 'prod', podIdentity: { clusterArns } } };
  const read1 = read({ 'taintward:agents': agents }).agents?.['edge-1'];
  assert.deepEqual(read1, {
    cluster: 'prod',
    podIdentity: { clusterArns },
    namespace: 'taintward',
    serviceAccount: 'taintward-agent',
  });
  assert.deepEqual(read({ 'taintward:agents': JSON.stringify(agents) }).agents?.['edge-1'], read1);
});

test('takes each form of a setting, as text or as the only item of a list', () => {
  const external = { relay: 'external' };
  const vpc = { vpcId: 'vpc-0a1b' };
  const digest = `@sha256:${'0a'.repeat(32)}`;
  const forms: readonly [keyof Config, string, Readonly<Record<string, unknown>>?][] = [
    ['kubeconfigSecrets', 'prod/Eu_1+=.@-'],
    ['kubeconfigSecrets', 'prod/*'],
    ['clusterRoles', 'arn:aws:iam::123456789012:role/path/admin'],
    ['clusterRoles', 'arn:aws-us-gov:iam::*:role/taintward-*'],
    ['secretKmsKeys', 'arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd'],
    ['subnetIds', 'subnet-0a1b,subnet-1a1b', vpc],
    ['kmsKeyArn', 'arn:aws-cn:kms:cn-north-1:123456789012:key/mrk-1234abcd'],
    ['eventBus', 'default'],
    ['eventBus', 'arn:aws-cn:events:cn-north-1:123456789012:event-bus/my.bus_1-x'],
    ['alarmTopicArn', 'arn:aws-cn:sns:cn-north-1:123456789012:ops.fifo'],
    ['alarmEmail', 'on-call+eu@ops.example.co.uk'],
    ['organization', 'o-a1b2c3d4e5'],
    ['relayImage', `ghcr.io/taintward/taintward${digest}`],
    ['relayImage', `registry.example:5000/a/b_c${digest}`],
    ['relay', 'external'],
    ['endpoint', 'localstack', external],
  ];
  for (const [key, value, beside = {}] of forms) {
    const context = Object.entries({ ...beside, [key]: value });
    const found = read(Object.fromEntries(context.map(([name, each]) => [`taintward:${name}`, each])))[key];
    assert.deepEqual([found].flat(), key === 'subnetIds' ? value.split(',') : [value]);
  }
  for (const flag of ['staticEgressIps', 'metricsByCluster', 'comparisonOperators', 'retainTable'] as const)
    for (const value of [true, false])
      for (const given of [value, String(value)])
        assert.equal(read({ [`taintward:${flag}`]: given })[flag], value);
});

test("sets the CDK's recommended flags, so that no command of the CDK asks for them", () => {
  const read = (path: string) => JSON.parse(readFileSync(join(PROJECT_DIR, path), 'utf8'));
  const { context } = read('cdk.json');
  const recommended: object = read('node_modules/aws-cdk-lib/recommended-feature-flags.json');
  assert.deepEqual({ ...context, ...recommended }, context);
});

test('rejects topics, an event bus, and a key of another region than that of the deployment, where it is known', () => {
  for (const [key, value] of [
    ['alarmTopicArn', 'arn:aws:sns:eu-west-1:123456789012:ops'],
    ['warningTopicArn', 'arn:aws:sns:eu-west-1:123456789012:ops'],
    ['eventBus', 'arn:aws:events:eu-west-1:123456789012:event-bus/ops'],
    ['kmsKeyArn', 'arn:aws:kms:eu-west-1:123456789012:key/1234abcd'],
  ] as const) {
    const { node } = new App({ context: { [`taintward:${key}`]: value } });
    for (const region of ['eu-west-1', undefined])
      assert.equal(readConfig(node, undefined, region)[key], value);
    assert.throws(
      () => readConfig(node, undefined, 'us-east-1'),
      new ConfigError(`The context key taintward:${key} must be in the stack's region, us-east-1.`),
    );
  }
  const { node } = new App({ context: { 'taintward:eventBus': 'ops' } });
  assert.equal(readConfig(node, undefined, 'us-east-1').eventBus, 'ops');
});

test('takes each form of the settings of own relays and of agents', () => {
  const relays = {
    edge: {
      clusters: 'edge-1,edge-*',
      kubeconfigSecrets: 'edge,edge/*',
      clusterRoles: 'arn:aws:iam::*:role/edge,arn:aws:iam::123456789012:role/edge',
    },
  };
  assert.deepEqual(read({ 'taintward:relay': 'external', 'taintward:relays': relays }).relays, {
    edge: Object.fromEntries(Object.entries(relays.edge).map(([name, list]) => [name, list.split(',')])),
  });
  for (const oidcProvider of [
    'arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE',
    'arn:aws-cn:iam::123456789012:oidc-provider/issuer.example.com',
  ]) {
    const agent = {
      cluster: 'prod',
      namespace: 'evictions',
      serviceAccount: 'my.agent',
      irsa: { oidcProvider },
    };
    assert.deepEqual(read({ 'taintward:agents': { a: agent } }).agents?.['a'], agent);
  }
});

describe('a mistake is reported in one sentence that names the key:', () => {
  const agent = (of: object, id = 'edge-1') => ({ 'taintward:agents': { [id]: of } });
  const mistakes: readonly [string, Readonly<Record<string, unknown>>, RegExp][] = [
    [
      'relays by name beside those of the stack',
      { 'taintward:relays': { edge: { clusters: ['edge'] } } },
      /taintward:relays requires taintward:relay=external, /,
    ],
    [
      'a name of a cluster that IAM would take for a pattern',
      { 'taintward:relay': 'external', 'taintward:relays': { edge: { clusters: ['e*ge'] } } },
      /taintward:relays \(edge\.clusters\) must look like edge-1 or edge-\*/,
    ],
    [
      'a key of a relay that is not there',
      { 'taintward:relay': 'external', 'taintward:relays': { edge: { clusters: ['edge'], roles: [] } } },
      /taintward:relays \(edge\) has an unknown setting roles\.$/,
    ],
    [
      'agents that are no object',
      { 'taintward:agents': 'edge-1' },
      /taintward:agents must be like \{"edge-1": /,
    ],
    ['an ID of no agent', agent({ cluster: 'prod' }, 'Edge'), /taintward:agents .*must be like /],
    [
      'an agent of no cluster',
      agent({}),
      /\(edge-1\.cluster\) must be the name that the cluster is registered by\.$/,
    ],
    [
      'a cluster that is a pattern',
      agent({ cluster: 'pr*d' }),
      /\(edge-1\.cluster\) must not have \*, \? or \$ in it/,
    ],
    [
      'a cluster that the table uses',
      agent({ cluster: 'TAINTED' }),
      /\(edge-1\.cluster\) must be another for an agent/,
    ],
    [
      'a cluster of EKS by its name',
      agent({ cluster: 'prod', podIdentity: { clusterArns: 'prod' } }),
      /\(edge-1\.podIdentity\.clusterArns\) must look like arn:aws:eks:/,
    ],
    [
      'an issuer that is no provider of IAM',
      agent({ cluster: 'prod', irsa: { oidcProvider: 'https://oidc.example.com' } }),
      /\(edge-1\.irsa\.oidcProvider\) must look like arn:aws:iam::/,
    ],
    [
      'two ways to be an agent',
      agent({
        cluster: 'prod',
        irsa: { oidcProvider: 'arn:aws:iam::123456789012:oidc-provider/example.com' },
        podIdentity: { clusterArns: 'arn:aws:eks:eu-west-1:123456789012:cluster/prod' },
      }),
      /\(edge-1\.irsa\) must not be set together with podIdentity: /,
    ],
    [
      'two agents of a cluster',
      { 'taintward:agents': { a: { cluster: 'prod' }, b: { cluster: 'prod' } } },
      /taintward:agents must name each cluster once, /,
    ],
    [
      'an ID that no role can be named after',
      { 'taintward:name': 'a'.repeat(20), ...agent({ cluster: 'prod' }, 'b'.repeat(21)) },
      /taintward:agents has an ID that is too long\. The ID and taintward:name can have \d+ characters together/,
    ],
    [
      'a name like that of what agents have',
      { 'taintward:name': 'my-agent-fleet' },
      /taintward:name must not contain -agent: /,
    ],
    [
      'relays that are no object',
      { 'taintward:relay': 'external', 'taintward:relays': 'edge' },
      /taintward:relays must be like \{"edge": /,
    ],
    [
      'a key that is not there',
      { 'taintward:relya': 'x' },
      /taintward:relya is unknown\. Specify one of: name, relay, /,
    ],
    ['a choice that is none', { 'taintward:relay': 'ec2' }, /taintward:relay must be fargate or external\.$/],
    [
      'text for a number',
      { 'taintward:relayCount': 'many' },
      /taintward:relayCount must be a whole number from 1 to 20\.$/,
    ],
    [
      'a number out of range',
      { 'taintward:relayCount': 0 },
      /relayCount must be a whole number from 1 to 20\.$/,
    ],
    [
      'an image by a tag, which can be moved',
      { 'taintward:relayImage': 'ghcr.io/taintward/taintward:0.2.0' },
      /taintward:relayImage must look like ghcr\.io\/taintward\/taintward@sha256:/,
    ],
    [
      'an image for relays that somebody else starts',
      {
        'taintward:relay': 'external',
        'taintward:relayImage': `ghcr.io/taintward/taintward@sha256:${'0'.repeat(64)}`,
      },
      /taintward:relayImage requires taintward:relay=fargate, /,
    ],
    [
      'an organization by the name of its root',
      { 'taintward:organization': 'r-abcd' },
      /taintward:organization must look like o-a1b2c3d4e5\.$/,
    ],
    ['half a relay', { 'taintward:relayCount': 1.5 }, /relayCount must be a whole number from 1 to 20\.$/],
    ['text for a flag', { 'taintward:retainTable': 'no' }, /taintward:retainTable must be true or false\.$/],
    [
      'a topic that is none',
      { 'taintward:alarmTopicArn': 'ops' },
      /alarmTopicArn must look like arn:aws:sns:/,
    ],
    [
      'an address that is none',
      { 'taintward:alarmEmail': 'ops' },
      /alarmEmail must look like ops@example\.com\.$/,
    ],
    [
      'a name that queues cannot have',
      { 'taintward:name': 'My Fleet' },
      /taintward:name must have only lowercase letters, digits, and hyphens, begin with a letter, and have at most 31 characters, for example taintward-prod\.$/,
    ],
    [
      'a name with capitals and an underscore',
      { 'taintward:name': 'Prod_1' },
      /taintward:name must have only lowercase letters, /,
    ],
    [
      'a setting without the prefix',
      { relayCount: '3' },
      /^The context key relayCount lacks the prefix taintward:, so it would be ignored: use taintward:relayCount\.$/,
    ],
    [
      'a setting with a dot in the prefix',
      { 'taintward.relayCount': '3' },
      /^The context key taintward\.relayCount lacks the prefix taintward:, .* use taintward:relayCount\.$/,
    ],
    [
      'memory that Fargate does not have',
      { 'taintward:relayMemoryMiB': 600 },
      /taintward:relayMemoryMiB must be an amount that Fargate offers: 512, a multiple of 1024 /,
    ],
    [
      'a CPU, which follows from the memory',
      { 'taintward:relayCpu': '256' },
      /taintward:relayCpu is unknown\. /,
    ],
    [
      'a VPC without subnets',
      { 'taintward:vpcId': 'vpc-0123456789abcdef0' },
      /taintward:vpcId requires taintward:subnetIds, /,
    ],
    [
      'subnets without a VPC',
      { 'taintward:subnetIds': 'subnet-01234567,subnet-01234568' },
      /taintward:vpcId requires taintward:subnetIds, /,
    ],
    [
      'one subnet, in one zone',
      { 'taintward:vpcId': 'vpc-0123456789abcdef0', 'taintward:subnetIds': 'subnet-01234567' },
      /taintward:subnetIds must have at least two subnets, in different zones\.$/,
    ],
    [
      'fixed addresses of a VPC that is not ours',
      {
        'taintward:vpcId': 'vpc-0123456789abcdef0',
        'taintward:subnetIds': 'subnet-01234567,subnet-01234568',
        'taintward:staticEgressIps': 'true',
      },
      /taintward:staticEgressIps is mutually exclusive with taintward:vpcId\. .* NAT gateways\.$/,
    ],
    [
      'a KMS key by its alias, which no right can name',
      { 'taintward:secretKmsKeys': 'arn:aws:kms:eu-west-1:123456789012:alias/secrets' },
      /taintward:secretKmsKeys must look like arn:aws:kms:[^ ]*:key\/[-\w]+\.$/,
    ],
    [
      'more KMS keys than a policy has room for',
      { 'taintward:secretKmsKeys': Array(41).fill('arn:aws:kms:eu-west-1:123456789012:key/1234') },
      /taintward:secretKmsKeys must have at most 40 entries\.$/,
    ],
    [
      'a permissions boundary on the command line',
      { '@aws-cdk/core:permissionsBoundary': '{"name":"boundary"}' },
      /permissionsBoundary is ignored on the command line\. Set it in cdk\.context\.json\.$/,
    ],
    [
      'a role that is none',
      { 'taintward:clusterRoles': 'admin' },
      /clusterRoles must look like arn:aws:iam::/,
    ],
  ];
  for (const [name, context, message] of mistakes) {
    test(name, () => {
      const text = refusal(context);
      assert.match(text, /^The context key /);
      assert.match(text, message);
    });
  }
});

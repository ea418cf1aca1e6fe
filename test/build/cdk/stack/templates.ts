import { describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import * as z from 'zod';
import { VERSION } from '#shared/version.ts';
import { readable, statementsIn } from './resources.ts';
import { synthesized, synthesizedAgent } from './synthesized.ts';

const Body = z.looseObject({
  Resources: z.record(z.string(), z.looseObject({ Type: z.string() })),
  Outputs: z.record(z.string(), z.object({ Value: z.unknown() })).default({}),
});

/** Fields that other tests cover, or that are meaningless to a reviewer. */
const LEFT_OUT: readonly string[] = [
  ...['AlarmDescription', 'DashboardBody', 'DependsOn', 'Metadata', 'PolicyDocument', 'PolicyName'],
  ...['Properties', 'Queues', 'Roles', 'Type'],
];

/** A part of a template: the resource that it belongs to, and its text. */
interface Part {
  readonly owner: string;
  readonly text: string;
  /** True if the part is printed on one line with the others of its owner. */
  readonly isProperty?: boolean;
}

/**
 * Returns the deployed parts of a template, as a reviewer reads it: each resource with its properties, each statement
 * of a policy, each output. Hashes of code and images, and the release are left out.
 */
function partsOf(template: Template): readonly Part[] {
  const { Resources, Outputs } = Body.parse(readable(template.toJSON()));
  const resources = Object.entries(Resources).flatMap(([id, resource]) => {
    const properties = (resource['Properties'] ?? {}) as Readonly<Record<string, unknown>>;
    const { PolicyDocument, Roles } = properties;
    const suffix = Array.isArray(Roles) ? ` of ${Roles.join(', ')}` : '';
    const owner = `${id} ${resource.Type.replace('AWS::', '')}${suffix}`;
    const described = Object.entries({ ...resource, ...properties })
      .filter(([name, value]) => !LEFT_OUT.includes(name) && value !== 'Delete')
      .map(([name, value]) => ({ owner, text: `${name}=${plain(value)}`, isProperty: true }));
    const statements = (PolicyDocument === undefined ? [] : statementsIn(PolicyDocument)).map(
      ({ Effect, Action, Resource, Principal, Condition }) => ({
        owner,
        text:
          `${Effect} ${Action.join(', ')} on ${Resource.join(', ')}` +
          (Principal ? ` to ${plain(Principal)}` : '') +
          (Condition ? ` if ${plain(Condition)}` : ''),
      }),
    );
    return [...described, ...statements];
  });
  const outputs = Object.entries(Outputs).map(([name, { Value }]) => ({
    owner: 'Outputs',
    text: `${name}=${plain(Value)}`,
  }));
  return [...resources, ...outputs];
}

const plain = (value: unknown): string =>
  (typeof value === 'string' ? value : JSON.stringify(value).replaceAll(/"(\w+)":/g, '$1:'))
    .replaceAll(/\b[0-9a-f]{64}\b/g, '<hash>')
    .replaceAll(`"${VERSION}"`, '"<release>"');

const listed = (parts: readonly Part[]): string =>
  [...Map.groupBy(parts, ({ owner }) => owner)]
    .flatMap(([owner, own]) => {
      const properties = own.filter(({ isProperty }) => isProperty).map(({ text }) => text);
      const others = own.filter(({ isProperty }) => !isProperty).map(({ text }) => `  ${text}`);
      return [[owner, ...properties].join(' '), ...others];
    })
    .join('\n');

/** Returns the parts that a deployment has in addition to the default one, and the names of the parts that it lacks. */
function changes(template: Template): string {
  const before = partsOf(synthesized());
  const after = partsOf(template);
  const texts = new Set(before.map(({ owner, text }) => `${owner} ${text}`));
  const owners = new Set(after.map(({ owner }) => owner));
  const gone = new Set(before.map(({ owner }) => owner).filter((owner) => !owners.has(owner)));
  return [
    ...[...gone].map((owner) => `without ${owner}`),
    listed(after.filter(({ owner, text }) => !texts.has(`${owner} ${text}`))),
  ].join('\n');
}

/** Settings by their purpose; one deployment can have all settings of an entry. */
const VARIANTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'relays of your own': { 'taintward:relay': 'external' },
  'relays of your own for some clusters': {
    'taintward:relay': 'external',
    'taintward:relays': {
      edge: { clusters: ['edge-*'], kubeconfigSecrets: ['taintward-relay/edge-*'] },
      core: { clusters: ['prod', 'stage'] },
    },
  },
  'a VPC of yours': {
    'taintward:vpcId': 'vpc-0123456789abcdef0',
    'taintward:subnetIds': ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1'],
  },
  'addresses that stay': { 'taintward:staticEgressIps': 'true' },
  'more and larger relays, and functions': {
    'taintward:relayCount': '5',
    'taintward:relayMemoryMiB': 4096,
    'taintward:concurrency': '7',
  },
  'a released image': {
    'taintward:relayImage': `ghcr.io/taintward/taintward@sha256:${'0123456789abcdef'.repeat(4)}`,
  },
  'a released image in a repository of another account and region': {
    'taintward:relayImage': `210987654321.dkr.ecr.us-east-1.amazonaws.com/mirror/taintward@sha256:${'0123456789abcdef'.repeat(4)}`,
  },
  'more told, to an event bus, by cluster, and kept for longer': {
    'taintward:eventBus': 'ops',
    'taintward:metricsByCluster': 'true',
    'taintward:historyDays': 30,
  },
  'a key of yours for data': {
    'taintward:kmsKeyArn': 'arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab',
  },
  'a table that goes with the stack': { 'taintward:retainTable': 'false' },
};

describe('the deployed template', () => {
  test('matches the reviewed default', (t) => {
    t.assert.snapshot(listed(partsOf(synthesized())), { serializers: [String] });
  });

  for (const [name, context] of Object.entries(VARIANTS)) {
    test(`matches the reviewed changes with ${name}`, (t) => {
      t.assert.snapshot(changes(synthesized(context)), { serializers: [String] });
    });
  }

  test('matches the reviewed notification of an address for alarms', (t) => {
    const withAlarms = partsOf(synthesized({ 'taintward:alarmEmail': 'ops@example.com' }));
    const topic = withAlarms.filter(
      ({ owner, text }) => / SNS::/.test(owner) || text.startsWith('AlarmsTell='),
    );
    t.assert.snapshot(listed(topic), { serializers: [String] });
  });
});

describe('an agent', () => {
  const AGENTS = {
    pods: {
      cluster: 'prod',
      podIdentity: { clusterArns: 'arn:aws:eks:eu-west-1:123456789012:cluster/prod' },
    },
    tokens: {
      cluster: 'stage',
      namespace: 'ops',
      serviceAccount: 'evictor',
      irsa: {
        oidcProvider: 'arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE',
      },
    },
    brought: { cluster: 'third' },
  };
  const partsOfAgent = (id: string) => partsOf(synthesizedAgent(id, { 'taintward:agents': AGENTS }));

  test('matches the reviewed template with EKS Pod Identity', (t) => {
    t.assert.snapshot(listed(partsOfAgent('pods')), { serializers: [String] });
  });

  for (const id of ['tokens', 'brought']) {
    test(`matches the reviewed identity of another kind: ${id}`, (t) => {
      const who = partsOfAgent(id).filter(({ owner, isProperty }) => /^Identity/.test(owner) && isProperty);
      t.assert.snapshot(listed(who), { serializers: [String] });
    });
  }
});

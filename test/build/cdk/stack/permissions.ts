import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { clusterGrantsSchema } from '#shared/access/cluster-grants.ts';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { ACCOUNT, Granted, REGION } from '../permissions/granted.ts';
import { allows } from '../permissions/policy.ts';
import { type Place, readIn } from './place.ts';
import {
  type Properties,
  readable,
  resourcesOf,
  resourceWith,
  type Statement,
  statementsIn,
} from './resources.ts';
import { synthesized } from './synthesized.ts';

let fargate: Template;
let external: Template;
before(() => {
  fargate = synthesized();
  external = synthesized({ 'taintward:relay': 'external' });
});

const LONG_NAMES: Place = {
  partition: 'aws-us-gov',
  region: 'ap-southeast-1',
  urlSuffix: 'amazonaws.com',
};

/** Actions that support no resources. */
const OF_THE_ACCOUNT = [
  'dynamodb:DescribeLimits',
  'ecr:GetAuthorizationToken',
  'lambda:GetAccountSettings',
  'lambda:ListEventSourceMappings',
];

function statementsOf(template: Template): readonly Statement[] {
  const types = ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy'];
  return types
    .flatMap((type) => [...resourcesOf(template, type).values()])
    .flatMap(({ PolicyDocument }) => statementsIn(PolicyDocument));
}

test('a condition on keys rejects requests without keys', () => {
  const conditions = [fargate, external]
    .flatMap(statementsOf)
    .map(({ Condition }) => Condition as Record<string, object> | undefined)
    .filter((each) => JSON.stringify(each ?? {}).includes('dynamodb:LeadingKeys'));
  assert.ok(conditions.length > 0);
  for (const each of conditions) assert.deepEqual(each?.['Null'], { 'dynamodb:LeadingKeys': 'false' });
});

describe('an Allow statement', () => {
  test('names every action, and every resource except where AWS supports none', () => {
    for (const { Action, Resource } of [fargate, external].flatMap(statementsOf)) {
      for (const action of Action) assert.doesNotMatch(action, /\*/);
      if (Resource.includes('*'))
        for (const action of Action) assert.ok(OF_THE_ACCOUNT.includes(action), action);
    }
  });
});

test('functions write nodes alone, and evict also eviction rates', async () => {
  const fake = new FakeDynamoDb({ now: () => 0 });
  const written = new Set<string>();
  fake.onWritten = ({ pk }) => written.add(pk?.S ?? '');
  const client = fakeClient(async (command) => fake.perform(command));
  const table = new DynamoDbTable({ client, tableName: 'table' });
  const ref = aRef(clusterName('prod'));
  const store = new DynamoDbStore(table);
  await store.commit(ref, 0, { node: aNode(), schedule: [aRecord()], end: [], live: true }, 0);
  const permits = dynamoDbPermits(table);
  await permits.take(
    ref.cluster,
    [{ uid: podUid('u1'), drains: false, inTurn: false }],
    { evictionRate: 1, releaseRate: 1 },
    0,
  );
  const limit = { workload: 'default/Deployment/web', count: 1, windowMs: 60_000 };
  await permits.take(ref.cluster, [{ uid: podUid('u1'), drains: false, inTurn: false }], limit, 0);
  assert.deepEqual([...written].toSorted(), ['RATE#prod', 'prod#node-1']);
  const patterns = new Set(
    statementsOf(fargate).flatMap(({ Condition }) => {
      const condition = Condition as Record<string, Record<string, readonly string[]>> | undefined;
      return condition?.['ForAllValues:StringNotLike']?.['dynamodb:LeadingKeys'] ?? [];
    }),
  );
  assert.deepEqual([...patterns].toSorted(), ['CLUSTER#*', 'FLEET', 'LEASE#*', 'RATE#*']);
});

test('allows the keys of secrets only through Secrets Manager, for readers of those secrets', () => {
  const key = 'arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab';
  const template = synthesized({ 'taintward:secretKmsKeys': key });
  const uses = (action: string) => statementsOf(template).filter(({ Action }) => Action.includes(action));
  const decrypts = uses('kms:Decrypt');
  assert.equal(decrypts.length, uses('secretsmanager:GetSecretValue').length);
  for (const { Resource, Condition } of decrypts) {
    assert.deepEqual(Resource, [key]);
    assert.deepEqual(Condition, {
      StringEquals: { 'kms:ViaService': 'secretsmanager.<AWS::Region>.amazonaws.com' },
    });
  }
  assert.ok(!statementsOf(fargate).some(({ Action }) => Action.includes('kms:Decrypt')));
});

describe('permissions of users', () => {
  const lines = (size: string) => {
    const [, policy] =
      [...resourcesOf(fargate, 'AWS::IAM::ManagedPolicy')].find(
        ([, { ManagedPolicyName }]) => readable(ManagedPolicyName) === `taintward-${size}-<AWS::Region>`,
      ) ?? [];
    return statementsIn(policy?.['PolicyDocument']);
  };
  const conditionsOf = (size: string, action: string) =>
    lines(size)
      .filter(({ Action }) => Action.includes(action))
      .map(({ Condition }) => Condition as Record<string, Record<string, readonly string[]>>);
  const WRITES =
    /:(Put|Update|Delete|BatchWrite)Item|:Send|:ReceiveMessage|:DeleteMessage|:StartMessageMoveTask/;

  test('let viewers change nothing', () => {
    const actions = lines('viewer').flatMap(({ Action }) => Action);
    assert.ok(actions.includes('dynamodb:Query') && actions.includes('sqs:GetQueueAttributes'));
    assert.deepEqual(
      actions.filter((action) => WRITES.test(action)),
      [],
    );
  });

  test('let administrators and operators ask evict for its access to a cluster', () => {
    const sizeQuery = (size: string) =>
      lines(size)
        .filter(({ Action }) => Action.includes('lambda:InvokeFunction'))
        .map(({ Resource }) => Resource);
    const { id } = resourceWith(fargate, 'AWS::Lambda::Function', 'FunctionName', 'taintward-evict');
    assert.deepEqual(sizeQuery('admin'), [[`<${id}.Arn>`]]);
    assert.deepEqual([sizeQuery('operator'), sizeQuery('viewer')], [sizeQuery('admin'), []]);
  });

  test('let administrators write policies and register clusters, and write no lease or node', () => {
    const [condition] = conditionsOf('admin', 'dynamodb:UpdateItem');
    const attributes = condition?.['ForAllValues:StringEquals']?.['dynamodb:Attributes'] ?? [];
    assert.ok(attributes.includes('policy'));
    assert.ok(!attributes.includes('epoch'));
    const [put] = conditionsOf('admin', 'dynamodb:PutItem');
    assert.deepEqual(put?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'], ['CLUSTER#*']);
  });
});

describe('the secrets and roles that evict knows as granted', () => {
  const OWN = {
    edge: {
      clusters: ['edge-*'],
      kubeconfigSecrets: ['edge/*'],
      clusterRoles: ['arn:aws:iam::111122223333:role/edge'],
    },
    rest: { clusters: ['prod'] },
  };
  const ROLES = (count: number) =>
    Array.from({ length: count }, (_, n) => `arn:aws:iam::${String(n).padStart(12, '0')}:role/taintward`);
  /** The ARNs that these statements let a part use. */
  const used = (statements: readonly Statement[]) =>
    statements
      .filter(({ Action }) =>
        Action.some((action) => ['sts:AssumeRole', 'secretsmanager:GetSecretValue'].includes(action)),
      )
      .flatMap(({ Resource }) => Resource);

  test('are the patterns in the IAM policies of evict and of all relays', () => {
    const fargateRelay = (granted: Granted) => granted.ofTasks();
    for (const [context, relayOf] of [
      [{}, fargateRelay],
      [
        {
          'taintward:kubeconfigSecrets': 'both/*,mycorp/all-*',
          'taintward:clusterRoles': ROLES(3).join(','),
        },
        fargateRelay,
      ],
      [{ 'taintward:relay': 'external' }, (granted: Granted) => granted.ofPolicy('taintward-relay')],
      [
        { 'taintward:relay': 'external', 'taintward:relays': OWN },
        (granted: Granted) => Object.keys(OWN).flatMap((name) => granted.ofPolicy(`taintward-relay-${name}`)),
      ],
    ] as const) {
      const granted = new Granted(synthesized(context));
      const { CLUSTER_GRANTS = '' } = granted.environmentOf('taintward-evict');
      const { both, relay, evict } = clusterGrantsSchema.parse(JSON.parse(CLUSTER_GRANTS));
      const sorted = (arns: readonly string[]) => [...new Set(arns)].toSorted();
      assert.deepEqual(sorted([...both, ...evict]), sorted(used(granted.ofFunction('taintward-evict'))));
      assert.deepEqual(sorted([...both, ...relay]), sorted(used(relayOf(granted))));
      assert.ok([...both, ...relay, ...evict].length > 0);
      const all = JSON.stringify(granted.environmentOf('taintward-evict'));
      assert.ok(all.length - CLUSTER_GRANTS.length < 1_300, `${all.length - CLUSTER_GRANTS.length}`);
    }
  });

  test('are rejected if they are too long for the environment of a function', () => {
    const roles = (count: number) => ({ 'taintward:clusterRoles': ROLES(count).join(',') });
    synthesized(roles(40));
    assert.throws(() => synthesized(roles(60)), {
      name: 'ConfigError',
      message: /^The secrets and roles of clusters .* Combine them to names that end with \*\.$/,
    });
  });
});

test('allows a secret and a role by full names, and a bus by its ARN, and denies those whose names only begin so', () => {
  const role = 'arn:aws:iam::111122223333:role/edge';
  const bus = 'arn:aws:events:eu-west-1:210987654321:event-bus/ops';
  const granted = new Granted(
    synthesized({
      'taintward:kubeconfigSecrets': 'staging,prod/*',
      'taintward:clusterRoles': role,
      'taintward:eventBus': bus,
    }),
  );
  const statements = granted.ofFunction('taintward-evict');
  const isAllowed = (action: string, resource: string) =>
    allows(statements, [], { action, resource, context: {} });
  const secret = (name: string) => `arn:aws:secretsmanager:${REGION}:${ACCOUNT}:secret:${name}-AbCdEf`;
  for (const [action, allowed, denied] of [
    ['secretsmanager:GetSecretValue', secret('staging'), secret('staging-2')],
    ['secretsmanager:GetSecretValue', secret('prod/eu'), secret('production')],
    ['sts:AssumeRole', role, `${role}-admin`],
    ['sts:AssumeRole', role, role.replace('111122223333', '210987654321')],
    ['events:PutEvents', bus, `${bus}-2`],
    ['events:PutEvents', bus, bus.replace('210987654321', ACCOUNT)],
  ] as const) {
    assert.deepEqual(
      [allowed, denied].map((each) => isAllowed(action, each)),
      [true, false],
      denied,
    );
  }
  assert.equal(granted.environmentOf('taintward-evict')['EVENT_BUS'], bus);
});

describe('at 60 accounts', () => {
  const list = (text: (n: number) => string, length = 60) => Array.from({ length }, (_, n) => text(n));
  const account = (n: number) => String(100_000_000_000 + n);
  const role = (n: number) => `arn:aws-us-gov:iam::${account(n)}:role/taintward-access`;
  const key = (n: number) =>
    `arn:aws-us-gov:kms:us-gov-west-1:${account(n)}:key/1234abcd-12ab-34cd-56ef-1234567890ab`;
  const edge = (clusters: readonly string[]) => ({ 'taintward:relays': { edge: { clusters } } });
  const own = (more: object) => ({
    'taintward:name': 'a'.repeat(31),
    'taintward:relay': 'external',
    ...more,
  });

  test('each policy has a size that IAM allows, or the setting is rejected with the fix', () => {
    for (const [context, isDeployed] of [
      [own({}), true],
      [own({ 'taintward:clusterRoles': list(role, 35) }), true],
      [own({ 'taintward:clusterRoles': list(role) }), false],
      [own({ 'taintward:secretKmsKeys': list(key, 40) }), true],
      [own(edge(list((n) => `prod-eu-west-1-${n}`))), true],
      [own(edge(list((n) => `prod-eu-west-1-${n}`, 150))), true],
      [own(edge(list(account, 250))), false],
      [{ 'taintward:secretKmsKeys': list(key, 40), 'taintward:clusterRoles': list(role, 35) }, true],
    ] as const) {
      if (!isDeployed) {
        assert.throws(() => synthesized(context), {
          name: 'ConfigError',
          message: / to names that end with \*/,
        });
        continue;
      }
      const resources = Object.values(
        readIn(LONG_NAMES, synthesized(context))['Resources'] as Record<string, Properties>,
      );
      for (const { Type, Properties } of resources) {
        const limit = { 'AWS::IAM::ManagedPolicy': 6_144, 'AWS::IAM::Policy': 10_240 }[String(Type)];
        const { PolicyDocument } = Properties as { readonly PolicyDocument?: unknown };
        // An attribute is the ARN of a queue at most.
        const text = JSON.stringify(PolicyDocument)?.replaceAll(/<[^<>"]+>/g, 'x'.repeat(100)) ?? '';
        assert.ok(text.length <= (limit ?? Number.POSITIVE_INFINITY), `${text.length} ${text.slice(0, 200)}`);
      }
    }
  });
});

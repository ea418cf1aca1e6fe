import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { agentClusterSchema } from '#shared/aws/agent-names.ts';
import { type ClusterName, nodeKey, nodeName } from '#shared/eviction/identity.ts';
import { CLUSTER_PREFIX } from '#shared/state/dynamodb/dynamodb-item.ts';
import { LEASE_PREFIX } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { RATE_PREFIX } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { historyKeys } from '#shared/state/dynamodb/history-items.ts';
import { taintedKeys } from '#shared/state/dynamodb/items.ts';
import { clusterNameSchema } from '#shared/state/registry.ts';
import { clusterKeys } from '../../../cdk/cluster-items.ts';
import { onlyKeys } from '../../../cdk/state.ts';
import { allows } from './permissions/policy.ts';
import type { Statement } from './stack/resources.ts';

/** The visible ASCII characters (cluster names consist of them), and the prefixes of the table's keys. */
const character = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
const word = fc.constantFrom(
  'CLUSTER',
  'CLUSTERS',
  'LEASE',
  'RATE',
  'FLEET',
  'AUDIT',
  'TAINTED',
  'HISTORY',
  'a',
  '*',
  '?',
  '${',
);
const text = fc
  .array(fc.oneof(character, word), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.join(''));
const registrable = text
  .map((name) => clusterNameSchema.safeParse(name).data)
  .filter((name): name is ClusterName => name !== undefined);
const ofAgent = text
  .map((name) => agentClusterSchema.safeParse(name).data)
  .filter((name): name is ClusterName => name !== undefined);
/** Returns names that are similar to `name`: longer, shorter, or the same with a pattern in place of a character. */
const alike = (name: string) =>
  [
    `${name}a`,
    `a${name}`,
    `${name}*`,
    name.slice(1),
    name.slice(0, -1),
    `${name}${name}`,
    name.replace(/./, '?'),
  ]
    .map((each) => clusterNameSchema.safeParse(each).data)
    .filter((each): each is ClusterName => each !== undefined && each !== name);

/** Returns a cluster's keys in the table and in its index. */
const inTable = (cluster: ClusterName) => [
  ...['n1', 'a.b-c', '*'].map((node) => nodeKey({ cluster, node: nodeName(node) })),
  ...[CLUSTER_PREFIX, LEASE_PREFIX, RATE_PREFIX].map((prefix) => `${prefix}${cluster}`),
];
const inIndex = (cluster: ClusterName) => [...taintedKeys(cluster), ...historyKeys(cluster)];

type Kind = keyof ReturnType<typeof clusterKeys>;

/** Reports whether the agent of a cluster may use these keys in one request, by one kind of its permissions. */
function may(own: ClusterName, kind: Kind, ...keys: readonly string[]): boolean {
  const statement: Statement = {
    Effect: 'Allow',
    Action: ['dynamodb:Any'],
    Resource: ['*'],
    Condition: onlyKeys(...clusterKeys(own)[kind]),
  };
  return allows([statement], [], {
    action: 'dynamodb:Any',
    resource: 'table',
    context: { 'dynamodb:LeadingKeys': keys },
  });
}

const KINDS: readonly Kind[] = ['read', 'found', 'put', 'updated'];

describe('an agent of a cluster with any name', () => {
  const others = (own: ClusterName, other: ClusterName) =>
    [other, ...alike(own)].filter((each) => each !== own);

  test('has no permission for a key of another cluster', () => {
    fc.assert(
      fc.property(ofAgent, registrable, (own, other) => {
        for (const denied of others(own, other))
          for (const key of [...inTable(denied), ...inIndex(denied), 'CLUSTERS', 'AUDIT'])
            for (const kind of KINDS) assert.ok(!may(own, kind, key), `${own} ${kind} ${key}`);
      }),
      { numRuns: 500 },
    );
  });

  test('has no permission for a key of another cluster together with its own', () => {
    fc.assert(
      fc.property(ofAgent, registrable, (own, other) => {
        const mine = nodeKey({ cluster: own, node: nodeName('n1') });
        for (const denied of others(own, other))
          for (const kind of ['read', 'put', 'updated'] as const)
            assert.ok(!may(own, kind, mine, nodeKey({ cluster: denied, node: nodeName('n1') })));
      }),
      { numRuns: 200 },
    );
  });

  test('reads its own items and the stop of the fleet, and writes the items of its cluster that relay and evict write', () => {
    fc.assert(
      fc.property(ofAgent, (own) => {
        const node = nodeKey({ cluster: own, node: nodeName('n1') });
        const [rules, lease, rate] = inTable(own).slice(-3);
        assert.ok(rules && lease && rate);
        for (const key of [node, rules, lease, 'FLEET']) assert.ok(may(own, 'read', key), key);
        for (const key of inIndex(own)) assert.ok(may(own, 'found', key), key);
        for (const key of [node, lease, rate]) assert.ok(may(own, 'updated', key), key);
        assert.ok(may(own, 'put', node));
        for (const key of [rules, 'FLEET'])
          for (const kind of ['put', 'updated'] as const) assert.ok(!may(own, kind, key), key);
        for (const key of [lease, rate]) assert.ok(!may(own, 'put', key), key);
      }),
    );
  });
});

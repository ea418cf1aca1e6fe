import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readable, resourcesOf } from './stack/resources.ts';
import { synthesized } from './stack/synthesized.ts';

/**
 * Stateful resources by their logical IDs, with the properties whose change makes CloudFormation replace them (Template
 * Reference, "Update requires: Replacement"). A new logical ID also replaces a resource, and fails where the name is
 * taken. A change of a line here makes every deployment a migration: docs/how-to/migrate-a-deployment.md.
 */
const KEPT: Readonly<Record<string, readonly [string, Readonly<Record<string, unknown>>]>> = {
  StateTable962DE04C: [
    'AWS::DynamoDB::Table',
    {
      TableName: 'taintward',
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
    },
  ],
  DeltasNodesQueueCE62B1D3: fifo('node-deltas'),
  DeltasNodesDeadLettersQueue92DADDD0: fifo('node-deltas-dlq'),
  DeltasPodsQueue671AF337: fifo('pod-deltas'),
  DeltasPodsDeadLettersQueueF59DEB35: fifo('pod-deltas-dlq'),
  TimersDueQueueA2A28235: standard('evictions-due'),
  TimersDueDeadLettersQueueA42C291E: standard('evictions-due-dlq'),
  FunctionsExpiryDeadLettersQueueBBD1BD75: standard('expiry-dlq'),
  TimersGroup2EF8D443: ['AWS::Scheduler::ScheduleGroup', { Name: 'taintward' }],
};

function fifo(name: string): (typeof KEPT)[string] {
  return ['AWS::SQS::Queue', { QueueName: `taintward-${name}.fifo`, FifoQueue: true }];
}
function standard(name: string): (typeof KEPT)[string] {
  return ['AWS::SQS::Queue', { QueueName: `taintward-${name}`, FifoQueue: undefined }];
}

test('no release replaces stateful resources: logical IDs and immutable properties are on record', () => {
  const template = synthesized();
  const found = new Map<string, readonly [string, Readonly<Record<string, unknown>>]>();
  for (const type of new Set(Object.values(KEPT).map(([each]) => each))) {
    for (const [id, properties] of resourcesOf(template, type)) {
      const names = Object.keys(KEPT[id]?.[1] ?? {});
      found.set(id, [type, Object.fromEntries(names.map((name) => [name, properties[name]]))]);
    }
  }
  assert.deepEqual(Object.fromEntries(found), KEPT);
});

test('no release replaces the roles to which clusters and other accounts give access', () => {
  const named = [...resourcesOf(synthesized(), 'AWS::IAM::Role')].map(([id, { RoleName }]) => [
    readable(RoleName),
    id,
  ]);
  const { 'taintward-relay-<AWS::Region>': relay, 'taintward-evict-<AWS::Region>': evict } =
    Object.fromEntries(named);
  assert.deepEqual([relay, evict], ['RelayRoleDB2B1DF8', 'FunctionsEvictRoleBEC579AD']);
});

test('no setting replaces stateful resources, except the name of the installation', () => {
  const stateOf = (context: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(
      Object.entries(KEPT).map(([id, [type, kept]]) => {
        const properties = resourcesOf(synthesized(context), type).get(id) ?? assert.fail(id);
        return [id, Object.keys(kept).map((name) => properties[name])];
      }),
    );
  const before = stateOf({});
  for (const context of [
    { 'taintward:relay': 'external' },
    { 'taintward:staticEgressIps': 'true' },
    {
      'taintward:retainTable': 'false',
      'taintward:historyDays': '30',
    },
    { 'taintward:metricsByCluster': 'true' },
  ]) {
    assert.deepEqual(stateOf(context), before, JSON.stringify(context));
  }
  assert.notDeepEqual(stateOf({ 'taintward:name': 'taintward-2' }), before);
});

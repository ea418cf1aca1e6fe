import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, nodeKey, nodeName, parseNodeKey } from '#shared/eviction/identity.ts';

test('parses a node key back into the node', () => {
  const ref = { cluster: clusterName('eu-west-1/prod'), node: nodeName('ip-10-0-0-1.ec2.internal') };
  assert.equal(nodeKey(ref), 'eu-west-1/prod#ip-10-0-0-1.ec2.internal');
  assert.deepEqual(parseNodeKey(nodeKey(ref)), ref);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, isSameCluster, nodeKey, nodeName, parseNodeKey } from '#shared/eviction/identity.ts';

test('parses a node key back into the node', () => {
  const ref = { cluster: clusterName('eu-west-1/prod'), node: nodeName('ip-10-0-0-1.ec2.internal') };
  assert.equal(nodeKey(ref), 'eu-west-1/prod#ip-10-0-0-1.ec2.internal');
  assert.deepEqual(parseNodeKey(nodeKey(ref)), ref);
});

test('tells clusters apart by kube-system, or by nodes where one of them has none to show', () => {
  const [a, b] = [
    { system: 's1', nodes: ['n1', 'n2'] },
    { system: 's2', nodes: ['n2'] },
  ];
  assert.equal(isSameCluster(a, { ...b, system: 's1', nodes: [] }), true);
  assert.equal(isSameCluster(a, b), false, 'a virtual cluster may show the nodes of its host');
  assert.equal(isSameCluster(a, { nodes: ['n2', 'n3'] }), true);
  assert.equal(isSameCluster({ nodes: ['n3'] }, a), false);
  assert.equal(isSameCluster({ nodes: [] }, { nodes: [] }), false, 'nothing is known of either');
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { aNode, inDefault, podsOf } from '../builders.ts';
import { runningCluster, templateOf } from './running-cluster.ts';

const cluster = runningCluster();

const create = (podSpec: object = {}) => cluster.run('daemonsets', 'logs', podsOf('logs', podSpec));
const status = () => cluster.store.get('daemonsets', inDefault('logs')).status;
const nodes = () => cluster.nodesOf('logs');

describe('a DaemonSet', () => {
  test('reports the number of its nodes', () => {
    create();
    cluster.pass(5);
    assert.deepEqual(status(), {
      currentNumberScheduled: 3,
      numberMisscheduled: 0,
      desiredNumberScheduled: 3,
      numberReady: 3,
      observedGeneration: 1,
      updatedNumberScheduled: 3,
      numberAvailable: 3,
    });
  });

  test('runs one pod on each node, new ones included', () => {
    create();
    cluster.pass(1);
    assert.deepEqual(nodes(), ['node-1', 'node-2', 'node-3']);
    cluster.store.create('nodes', '', aNode('node-4'));
    cluster.pass(1);
    assert.deepEqual(nodes(), ['node-1', 'node-2', 'node-3', 'node-4']);
  });

  test('runs only on the nodes that its template selects', () => {
    cluster.label('node-2', { disk: 'ssd' });
    create({ nodeSelector: { disk: 'ssd' } });
    cluster.pass(5);
    assert.deepEqual(nodes(), ['node-2']);
  });

  test('replaces its pods one by one when its template changes', () => {
    create();
    cluster.pass(5);
    cluster.change('daemonsets', 'logs', { template: templateOf('logs', 'x:2') });
    for (let second = 0; second < 30; second += 1) {
      cluster.pass(1);
      assert.ok((Number(status()['numberReady']) || 0) >= 2);
    }
    assert.deepEqual(nodes(), ['node-1', 'node-2', 'node-3']);
    assert.deepEqual(new Set(cluster.images('logs')), new Set(['x:2']));
  });

  test('restores its pod on a node, but not on a node with an untolerated NoExecute taint, as upstream', () => {
    create();
    cluster.pass(5);
    cluster.taint('node-1', { key: 'a', effect: 'NoExecute' });
    cluster.pass(5);
    assert.deepEqual(nodes(), ['node-2', 'node-3']);
    const [pod] = cluster.names('logs');
    cluster.store.delete('pods', inDefault(pod ?? ''));
    cluster.pass(6);
    assert.deepEqual(nodes(), ['node-2', 'node-3']);
  });

  test('runs on every node indefinitely if it tolerates everything, even on an unreachable node', () => {
    cluster.taint('node-1', { key: 'a', effect: 'NoExecute' }, { key: 'gpu', effect: 'NoSchedule' });
    create({ tolerations: [{ operator: 'Exists' }] });
    cluster.pass(1);
    assert.deepEqual(nodes(), ['node-1', 'node-2', 'node-3']);
    const tolerations = cluster.pods('logs').flatMap(({ spec }) => spec.tolerations ?? []);
    assert.ok(tolerations.every(({ tolerationSeconds }) => tolerationSeconds === undefined));
  });
});

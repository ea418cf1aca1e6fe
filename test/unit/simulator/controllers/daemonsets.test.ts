import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { inDefault, podsOf, unscoped } from '../builders.ts';
import { RunningCluster, SECOND_MS } from './running-cluster.ts';

let cluster: RunningCluster;
beforeEach(() => {
  cluster = new RunningCluster();
});
afterEach(() => cluster.stop());

const create = (spec: object = {}) =>
  cluster.store.create('daemonsets', 'default', {
    metadata: { name: 'logs' },
    spec: { ...podsOf('logs'), ...spec },
  });
const status = () => cluster.store.get('daemonsets', inDefault('logs')).status;
const nodes = () =>
  cluster
    .pods('logs')
    .map(({ spec }) => spec.nodeName)
    .sort();

describe('a DaemonSet', () => {
  test('reports the number of its nodes', () => {
    create();
    cluster.pass(5 * SECOND_MS);
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

  test('runs only on the nodes that its template selects', () => {
    cluster.store.update('nodes', unscoped('node-2'), 'main', (node) => ({
      ...node,
      metadata: { ...node.metadata, labels: { disk: 'ssd' } },
    }));
    create({ ...podsOf('logs', { nodeSelector: { disk: 'ssd' } }) });
    cluster.pass(5 * SECOND_MS);
    assert.deepEqual(nodes(), ['node-2']);
  });

  test('replaces its pods one by one when its template changes', () => {
    create();
    cluster.pass(5 * SECOND_MS);
    const { template } = podsOf('logs', { containers: [{ name: 'main', image: 'x:2' }] });
    cluster.store.update('daemonsets', inDefault('logs'), 'main', (current) => ({
      ...current,
      spec: { ...current.spec, template },
    }));
    for (let second = 0; second < 30; second += 1) {
      cluster.pass(SECOND_MS);
      assert.ok((Number(status()['numberReady']) || 0) >= 2);
    }
    assert.deepEqual(nodes(), ['node-1', 'node-2', 'node-3']);
    const images = cluster.pods('logs').map(({ spec }) => spec.containers[0]?.image);
    assert.deepEqual(new Set(images), new Set(['x:2']));
  });

  test('keeps a pod on a node with an untolerated NoExecute taint, as upstream', () => {
    create();
    cluster.pass(5 * SECOND_MS);
    cluster.store.update('nodes', unscoped('node-1'), 'main', (node) => ({
      ...node,
      spec: { taints: [{ key: 'a', effect: 'NoExecute' }] },
    }));
    cluster.pass(5 * SECOND_MS);
    assert.deepEqual(nodes(), ['node-2', 'node-3']);
  });
});

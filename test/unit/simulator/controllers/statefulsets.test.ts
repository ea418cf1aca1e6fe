import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inDefault } from '../builders.ts';
import { runningCluster, templateOf } from './running-cluster.ts';

const cluster = runningCluster();

const create = (spec: object = {}) =>
  cluster.run('statefulsets', 'db', { replicas: 3, serviceName: 'db', ...spec });
const set = () => cluster.store.get('statefulsets', inDefault('db'));
const names = () => cluster.names('db');

describe('a StatefulSet', () => {
  test('starts its pods one after the other, from ordinal 0 on', () => {
    create();
    for (const [seconds, expected] of [
      [1, ['db-0']],
      [3, ['db-0', 'db-1']],
      [6, ['db-0', 'db-1', 'db-2']],
    ] as const) {
      cluster.pass(seconds);
      assert.deepEqual(names(), expected);
    }
    assert.equal(cluster.pods('db-1')[0]?.metadata.labels?.['apps.kubernetes.io/pod-index'], '1');
  });

  test('starts its pods together with policy Parallel', () => {
    create({ podManagementPolicy: 'Parallel' });
    cluster.pass(1);
    assert.deepEqual(names(), ['db-0', 'db-1', 'db-2']);
  });

  test('replaces a removed pod under the same name with another UID', () => {
    create({ podManagementPolicy: 'Parallel' });
    cluster.pass(4);
    const uid = () => cluster.store.get('pods', inDefault('db-0')).metadata.uid;
    const before = uid();
    cluster.store.delete('pods', inDefault('db-0'));
    cluster.pass(2);
    assert.equal(uid(), before);
    cluster.pass(2);
    assert.notEqual(uid(), before);
    assert.deepEqual(names(), ['db-0', 'db-1', 'db-2']);
  });

  test('reports how many of its pods exist and are ready', () => {
    create();
    cluster.pass(12);
    const { currentRevision, updateRevision, ...status } = set().status;
    assert.deepEqual(status, {
      observedGeneration: 1,
      replicas: 3,
      readyReplicas: 3,
      currentReplicas: 3,
      updatedReplicas: 3,
      availableReplicas: 3,
      collisionCount: 0,
    });
    assert.equal(currentRevision, updateRevision);
  });

  test('scales down from the highest ordinal, one at a time', () => {
    create();
    cluster.pass(12);
    cluster.change('statefulsets', 'db', { replicas: 1 });
    cluster.pass(1);
    const leaving = cluster.pods('db').filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    assert.deepEqual(
      leaving.map(({ metadata }) => metadata.name),
      ['db-2'],
    );
    cluster.pass(10);
    assert.deepEqual(names(), ['db-0']);
  });

  test('changes its template from the highest ordinal down to the partition', () => {
    create({ updateStrategy: { rollingUpdate: { partition: 1 } } });
    cluster.pass(12);
    cluster.change('statefulsets', 'db', { template: templateOf('db', 'x:2') });
    cluster.pass(30);
    assert.deepEqual(
      names().map((name) => cluster.images(name)),
      [['example.com/main:1'], ['x:2'], ['x:2']],
    );
    assert.notEqual(set().status.currentRevision, set().status['updateRevision']);
  });
});

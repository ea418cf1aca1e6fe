import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { inDefault, podsOf } from '../builders.ts';
import { RunningCluster, SECOND_MS } from './running-cluster.ts';

let cluster: RunningCluster;
beforeEach(() => {
  cluster = new RunningCluster();
});
afterEach(() => cluster.stop());

const create = (spec: object = {}) =>
  cluster.store.create('statefulsets', 'default', {
    metadata: { name: 'db' },
    spec: { replicas: 3, serviceName: 'db', ...podsOf('db'), ...spec },
  });
const set = () => cluster.store.get('statefulsets', inDefault('db'));
const change = (spec: object) =>
  cluster.store.update('statefulsets', inDefault('db'), 'main', (current) => ({
    ...current,
    spec: { ...current.spec, ...spec },
  }));
const names = () =>
  cluster
    .pods('db')
    .map(({ metadata }) => metadata.name)
    .sort();

describe('a StatefulSet', () => {
  test('starts its pods one after the other, from ordinal 0 on', () => {
    create();
    cluster.pass(SECOND_MS);
    assert.deepEqual(names(), ['db-0']);
    cluster.pass(3 * SECOND_MS);
    assert.deepEqual(names(), ['db-0', 'db-1']);
    cluster.pass(6 * SECOND_MS);
    assert.deepEqual(names(), ['db-0', 'db-1', 'db-2']);
    assert.equal(cluster.pods('db-1')[0]?.metadata.labels?.['apps.kubernetes.io/pod-index'], '1');
  });

  test('starts its pods together with policy Parallel', () => {
    create({ podManagementPolicy: 'Parallel' });
    cluster.pass(SECOND_MS);
    assert.deepEqual(names(), ['db-0', 'db-1', 'db-2']);
  });

  test('reports how many of its pods exist and are ready', () => {
    create();
    cluster.pass(12 * SECOND_MS);
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
    cluster.pass(12 * SECOND_MS);
    change({ replicas: 1 });
    cluster.pass(SECOND_MS);
    const leaving = cluster.pods('db').filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    assert.deepEqual(
      leaving.map(({ metadata }) => metadata.name),
      ['db-2'],
    );
    cluster.pass(10 * SECOND_MS);
    assert.deepEqual(names(), ['db-0']);
  });

  test('changes its template from the highest ordinal down to the partition', () => {
    create({ updateStrategy: { rollingUpdate: { partition: 1 } } });
    cluster.pass(12 * SECOND_MS);
    change({ template: podsOf('db', { containers: [{ name: 'main', image: 'x:2' }] }).template });
    cluster.pass(30 * SECOND_MS);
    assert.deepEqual(
      names().map((name) => cluster.store.get('pods', inDefault(name)).spec.containers[0]?.image),
      ['example.com/main:1', 'x:2', 'x:2'],
    );
    assert.notEqual(set().status.currentRevision, set().status['updateRevision']);
  });
});

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { disown } from '#simulator/objects/ownership.ts';
import { inDefault, podsOf } from '../builders.ts';
import { RunningCluster, SECOND_MS } from './running-cluster.ts';

let cluster: RunningCluster;
beforeEach(() => {
  cluster = new RunningCluster();
});
afterEach(() => cluster.stop());

const create = (spec: object = {}) =>
  cluster.store.create('deployments', 'default', {
    metadata: { name: 'web' },
    spec: { replicas: 4, ...podsOf('web'), ...spec },
  });

const deployment = () => cluster.store.get('deployments', inDefault('web'));
const change = (spec: object) =>
  cluster.store.update('deployments', inDefault('web'), 'main', (current) => ({
    ...current,
    spec: { ...current.spec, ...spec },
  }));
const anotherImage = (image: string) =>
  change({ template: podsOf('web', { containers: [{ name: 'main', image }] }).template });
const sets = () => cluster.store.all('replicasets');
const images = () => cluster.pods('web').map(({ spec }) => spec.containers[0]?.image);

describe('a Deployment', () => {
  test('owns a ReplicaSet, which owns the pods', () => {
    const { metadata } = create();
    cluster.pass(3 * SECOND_MS);
    const [set] = sets();
    assert.equal(set?.metadata.ownerReferences?.[0]?.uid, metadata.uid);
    assert.match(set?.metadata.name ?? '', /^web-[a-z0-9]{10}$/);
    const [pod] = cluster.pods();
    assert.equal(pod?.metadata.ownerReferences?.[0]?.uid, set?.metadata.uid);
    assert.match(pod?.metadata.name ?? '', /^web-[a-z0-9]{10}-[a-z0-9]{5}$/);
    assert.equal(pod?.metadata.labels?.['pod-template-hash'], set?.metadata.name.slice(4));
  });

  test('reports how many of its pods exist, are ready, and are up to date', () => {
    create();
    cluster.pass(SECOND_MS);
    assert.equal(deployment().status['unavailableReplicas'], 4);
    cluster.pass(4 * SECOND_MS);
    const { conditions, ...status } = deployment().status;
    assert.deepEqual(status, {
      observedGeneration: 1,
      replicas: 4,
      updatedReplicas: 4,
      readyReplicas: 4,
      availableReplicas: 4,
    });
    assert.deepEqual(
      conditions?.map(({ type, status: is, reason }) => [type, is, reason]),
      [
        ['Available', 'True', 'MinimumReplicasAvailable'],
        ['Progressing', 'True', 'NewReplicaSetAvailable'],
      ],
    );
  });

  test('scales up and down', () => {
    create();
    cluster.pass(5 * SECOND_MS);
    change({ replicas: 6 });
    cluster.pass(SECOND_MS);
    assert.equal(cluster.pods('web').length, 6);
    change({ replicas: 1 });
    cluster.pass(6 * SECOND_MS);
    assert.equal(cluster.pods('web').length, 1);
    assert.equal(sets().length, 1);
  });

  test('changes its template with at least 75 % of pods available and at most 125 % of pods', () => {
    create();
    cluster.pass(5 * SECOND_MS);
    anotherImage('example.com/main:2');
    for (let second = 0; second < 30; second += 1) {
      cluster.pass(SECOND_MS);
      const staying = cluster.pods('web').filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      assert.ok(staying.length <= 5, `${staying.length} pods`);
      assert.ok((deployment().status.availableReplicas ?? 0) >= 3);
    }
    assert.deepEqual(new Set(images()), new Set(['example.com/main:2']));
    assert.deepEqual(
      sets().map(({ spec }) => spec.replicas),
      [0, 4],
    );
    assert.equal(deployment().metadata.annotations?.['deployment.kubernetes.io/revision'], '2');
  });

  test('returns to an earlier template as a new revision with the same ReplicaSet', () => {
    create();
    cluster.pass(5 * SECOND_MS);
    anotherImage('example.com/main:2');
    cluster.pass(20 * SECOND_MS);
    anotherImage('example.com/main:1');
    cluster.pass(20 * SECOND_MS);
    assert.equal(sets().length, 2);
    assert.equal(deployment().metadata.annotations?.['deployment.kubernetes.io/revision'], '3');
    assert.deepEqual(new Set(images()), new Set(['example.com/main:1']));
  });

  test('starts new pods after the old ones are removed with strategy Recreate', () => {
    create({ strategy: { type: 'Recreate' } });
    cluster.pass(5 * SECOND_MS);
    anotherImage('example.com/main:2');
    for (let second = 0; second < 15; second += 1) {
      cluster.pass(SECOND_MS);
      assert.ok(new Set(images()).size <= 1, images().join());
    }
    assert.deepEqual(images(), Array(4).fill('example.com/main:2'));
  });

  test('keeps its pods while it is paused', () => {
    create();
    cluster.pass(5 * SECOND_MS);
    change({ paused: true });
    anotherImage('example.com/main:2');
    cluster.pass(10 * SECOND_MS);
    assert.deepEqual(images(), Array(4).fill('example.com/main:1'));
  });

  test('reports a lack of progress after ten minutes', () => {
    create({ ...podsOf('web', { nodeSelector: { disk: 'ssd' } }) });
    cluster.pass(5 * SECOND_MS);
    assert.equal(deployment().status.conditions?.[1]?.status, 'True');
    cluster.pass(601 * SECOND_MS);
    assert.equal(deployment().status.conditions?.[1]?.reason, 'ProgressDeadlineExceeded');
  });

  test('reports rejected pods once', () => {
    create({ ...podsOf('web', { tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] }) });
    cluster.pass(10 * SECOND_MS);
    const [set] = sets();
    assert.match(set?.status.conditions?.[0]?.message ?? '', /spec\.tolerations\[0\]/);
    assert.equal(cluster.reasons().filter((reason) => reason === 'FailedCreate').length, 1);
  });

  test('deletes its dependents, or keeps them when orphaned', () => {
    create();
    cluster.pass(5 * SECOND_MS);
    const { object } = cluster.store.delete('deployments', inDefault('web'));
    disown(cluster.store, object);
    cluster.pass(5 * SECOND_MS);
    assert.equal(cluster.pods('web').length, 4);
    const uids = cluster.pods('web').map(({ metadata }) => metadata.uid);
    create();
    cluster.pass(5 * SECOND_MS);
    assert.deepEqual(
      cluster.pods('web').map(({ metadata }) => metadata.uid),
      uids,
    );
    cluster.store.delete('deployments', inDefault('web'));
    cluster.pass(10 * SECOND_MS);
    assert.deepEqual([sets().length, cluster.pods('web').length], [0, 0]);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { disown } from '#simulator/objects/ownership.ts';
import { inDefault, podsOf } from '../builders.ts';
import { runningCluster, templateOf } from './running-cluster.ts';

const cluster = runningCluster();

const create = (spec: object = {}) => cluster.run('deployments', 'web', { replicas: 4, ...spec });
/** Creates the Deployment, and waits until its pods run. */
function running(spec: object = {}): void {
  create(spec);
  cluster.pass(5);
}
const deployment = () => cluster.store.get('deployments', inDefault('web'));
const revision = () => deployment().metadata.annotations?.['deployment.kubernetes.io/revision'];
const change = (spec: object) => cluster.change('deployments', 'web', spec);
const anotherImage = (image: string) => change({ template: templateOf('web', image) });
const sets = () => cluster.store.all('replicasets');
const images = () => cluster.images('web');
const uids = () => cluster.pods('web').map(({ metadata }) => metadata.uid);

describe('a Deployment', () => {
  test('owns a ReplicaSet, which owns the pods', () => {
    const { metadata } = create();
    cluster.pass(3);
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
    cluster.pass(1);
    assert.equal(deployment().status['unavailableReplicas'], 4);
    cluster.pass(4);
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
    running();
    change({ replicas: 6 });
    cluster.pass(1);
    assert.equal(cluster.pods('web').length, 6);
    change({ replicas: 1 });
    cluster.pass(6);
    assert.equal(cluster.pods('web').length, 1);
    assert.equal(sets().length, 1);
  });

  test('changes its template with at least 75 % of pods available and at most 125 % of pods', () => {
    running();
    anotherImage('example.com/main:2');
    for (let second = 0; second < 30; second += 1) {
      cluster.pass(1);
      const staying = cluster.pods('web').filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      assert.ok(staying.length <= 5, `${staying.length} pods`);
      assert.ok((deployment().status.availableReplicas ?? 0) >= 3);
    }
    assert.deepEqual(new Set(images()), new Set(['example.com/main:2']));
    assert.deepEqual(
      sets().map(({ spec }) => spec.replicas),
      [0, 4],
    );
    assert.equal(revision(), '2');
  });

  test('returns to an earlier template as a new revision with the same ReplicaSet', () => {
    running();
    anotherImage('example.com/main:2');
    cluster.pass(20);
    anotherImage('example.com/main:1');
    cluster.pass(20);
    assert.equal(sets().length, 2);
    assert.equal(revision(), '3');
    assert.deepEqual(new Set(images()), new Set(['example.com/main:1']));
  });

  test('starts new pods after the old ones are removed with strategy Recreate', () => {
    running({ strategy: { type: 'Recreate' } });
    anotherImage('example.com/main:2');
    for (let second = 0; second < 15; second += 1) {
      cluster.pass(1);
      assert.ok(new Set(images()).size <= 1, images().join());
    }
    assert.deepEqual(images(), Array(4).fill('example.com/main:2'));
  });

  test('keeps its pods while it is paused', () => {
    running();
    change({ paused: true });
    anotherImage('example.com/main:2');
    cluster.pass(10);
    assert.deepEqual(images(), Array(4).fill('example.com/main:1'));
  });

  test('reports a lack of progress after ten minutes', () => {
    running(podsOf('web', { nodeSelector: { disk: 'ssd' } }));
    assert.equal(deployment().status.conditions?.[1]?.status, 'True');
    cluster.pass(601);
    assert.equal(deployment().status.conditions?.[1]?.reason, 'ProgressDeadlineExceeded');
  });

  test('reports rejected pods once', () => {
    create(podsOf('web', { tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] }));
    cluster.pass(10);
    const [set] = sets();
    assert.match(set?.status.conditions?.[0]?.message ?? '', /spec\.tolerations\[0\]/);
    assert.equal(cluster.countEvents('FailedCreate'), 1);
  });

  test('deletes its dependents, or keeps them when orphaned', () => {
    running();
    const { object } = cluster.store.delete('deployments', inDefault('web'));
    disown(cluster.store, object);
    cluster.pass(5);
    assert.equal(cluster.pods('web').length, 4);
    const orphans = uids();
    running();
    assert.deepEqual(uids(), orphans);
    cluster.store.delete('deployments', inDefault('web'));
    cluster.pass(10);
    assert.deepEqual([sets().length, cluster.pods('web').length], [0, 0]);
  });
});

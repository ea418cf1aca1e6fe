import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { aPod, inDefault, unscoped } from '../builders.ts';
import { runningCluster } from './running-cluster.ts';

const MAINTENANCE = { key: 'maintenance', effect: 'NoExecute' };
const FOR_30_S = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 };
const GPU = { key: 'gpu', effect: 'NoSchedule' };

const cluster = runningCluster();

const createPod = (name: string, spec: object = {}) =>
  cluster.store.create('pods', 'default', aPod(name, spec));
const deletePod = (name: string, options: object = {}) =>
  cluster.store.delete('pods', inDefault(name), options);
const podNamed = (name: string) => cluster.store.get('pods', inDefault(name));

describe('the scheduler', () => {
  test('spreads the pods of a workload over the nodes', () => {
    cluster.run('deployments', 'web', { replicas: 6 });
    cluster.pass(1);
    assert.deepEqual(cluster.nodesOf('web'), ['node-1', 'node-1', 'node-2', 'node-2', 'node-3', 'node-3']);
  });

  test('keeps pods off cordoned nodes and nodes with untolerated NoSchedule and NoExecute taints', () => {
    cluster.taint('node-1', MAINTENANCE);
    cluster.taint('node-2', GPU);
    cluster.run('deployments', 'web', { replicas: 3 });
    cluster.pass(1);
    assert.deepEqual(cluster.nodesOf('web'), ['node-3', 'node-3', 'node-3']);
    cluster.change('nodes', 'node-3', { unschedulable: true });
    createPod('late');
    cluster.pass(1);
    assert.deepEqual(cluster.nodesOf('late'), ['']);
  });

  test('reports once why a pod is unschedulable, and binds it when a node is free', () => {
    for (const name of ['node-1', 'node-2', 'node-3']) cluster.taint(name, MAINTENANCE);
    createPod('web');
    cluster.pass(1);
    assert.deepEqual(podNamed('web').status.conditions, [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/3 nodes are available: 3 node(s) had untolerated taint(s) {maintenance:NoExecute}.',
        lastTransitionTime: '2026-11-21T12:00:01Z',
      },
    ]);
    cluster.pass(10);
    assert.equal(cluster.countEvents('FailedScheduling'), 1);
    cluster.taint('node-2');
    cluster.pass(1);
    assert.deepEqual(cluster.nodesOf('web'), ['node-2']);
    assert.equal(podNamed('web').status.conditions?.[0]?.status, 'True');
  });

  test("prefers nodes from which the pod isn't soon evicted, and nodes without a PreferNoSchedule taint", () => {
    cluster.taint('node-1', MAINTENANCE);
    cluster.taint('node-2', { key: 'slow', effect: 'PreferNoSchedule' });
    for (const name of ['first', 'second']) createPod(name, { tolerations: [FOR_30_S] });
    cluster.pass(1);
    assert.deepEqual(cluster.nodesOf(''), ['node-3', 'node-3']);
    for (const name of ['node-2', 'node-3']) cluster.taint(name, GPU);
    createPod('last', { tolerations: [FOR_30_S] });
    cluster.pass(1);
    assert.deepEqual(cluster.nodesOf('last'), ['node-1']);
  });

  test('honors a node selector and ignores pods of other schedulers', () => {
    cluster.label('node-2', { disk: 'ssd' });
    createPod('picky', { nodeSelector: { disk: 'ssd' } });
    createPod('foreign', { schedulerName: 'other' });
    cluster.pass(1);
    assert.deepEqual([cluster.nodesOf('picky'), cluster.nodesOf('foreign')], [['node-2'], ['']]);
  });
});

describe('the kubelet', () => {
  test('runs a bound pod within two seconds, ready and with an address, and keeps conditions of other clients', () => {
    createPod('web');
    cluster.pass(1);
    assert.equal(podNamed('web').status.phase, 'Pending');
    const disrupted = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };
    cluster.store.update('pods', inDefault('web'), 'status', (pod) => ({
      ...pod,
      status: { ...pod.status, conditions: [disrupted, ...(pod.status.conditions ?? [])] },
    }));
    cluster.pass(2);
    const { status } = podNamed('web');
    assert.equal(status.phase, 'Running');
    const [kept, ...others] = status.conditions ?? [];
    assert.deepEqual(kept, disrupted);
    assert.deepEqual(
      others.map(({ type, status: is }) => `${type} ${is}`),
      [
        'PodScheduled True',
        'PodReadyToStartContainers True',
        'Initialized True',
        'Ready True',
        'ContainersReady True',
      ],
    );
    assert.match(String(status['podIP']), /^10\.244\.\d+\.\d+$/);
  });

  test('finishes a pod a few seconds after its deletion, within its grace period', () => {
    for (const name of ['slow', 'fast']) createPod(name);
    cluster.pass(4);
    deletePod('slow');
    deletePod('fast', { gracePeriodSeconds: 1 });
    assert.equal(cluster.pods().length, 2);
    cluster.pass(1);
    assert.deepEqual(cluster.names(), ['slow']);
    cluster.pass(2);
    assert.deepEqual(cluster.names(), []);
    assert.equal(cluster.countEvents('Killing'), 2);
  });

  test('finishes terminating pods after a restart', () => {
    createPod('web');
    cluster.pass(4);
    deletePod('web');
    cluster.stop();
    cluster.pass(60);
    assert.deepEqual(cluster.names(), ['web']);
    cluster.start();
    cluster.pass(1);
    assert.deepEqual(cluster.names(), []);
  });

  test('does nothing for a deleted node, whose pods are garbage-collected after 40 s', () => {
    createPod('web', { nodeName: 'node-1' });
    cluster.pass(4);
    cluster.store.delete('nodes', unscoped('node-1'));
    deletePod('web');
    cluster.pass(39);
    assert.deepEqual(cluster.names(), ['web']);
    cluster.pass(2);
    assert.deepEqual(cluster.names(), []);
  });
});

test('a Deployment replaces a terminating pod immediately, under another name', () => {
  cluster.run('deployments', 'web', { replicas: 2 });
  cluster.pass(4);
  const [first = ''] = cluster.names('web');
  deletePod(first);
  cluster.pass(1);
  assert.equal(cluster.pods('web').length, 3);
  cluster.pass(5);
  assert.equal(cluster.pods('web').length, 2);
  assert.ok(!cluster.names('web').includes(first));
});

test('a Deployment adopts its pods again after a restart', () => {
  cluster.run('deployments', 'web', { replicas: 2 });
  cluster.pass(1);
  const uids = () => cluster.pods('web').map(({ metadata }) => metadata.uid);
  const before = uids();
  assert.equal(before.length, 2);
  cluster.stop();
  cluster.start();
  cluster.pass(1);
  assert.deepEqual(uids(), before);
});

describe('all controllers', () => {
  test('change nothing while nothing happens', () => {
    cluster.run('deployments', 'web', { replicas: 4 });
    cluster.run('statefulsets', 'db', { replicas: 2, podManagementPolicy: 'Parallel' });
    cluster.run('daemonsets', 'logs');
    cluster.pass(11);
    const { version } = cluster.store;
    cluster.pass(600);
    assert.equal(cluster.store.version, version);
  });

  test('delete Events after an hour', () => {
    createPod('web');
    cluster.pass(6);
    assert.ok(cluster.store.all('events').length > 0);
    mock.timers.tick(3_600_000);
    assert.deepEqual(cluster.store.all('events'), []);
  });

  test('do nothing after they are stopped', () => {
    cluster.pass(1);
    cluster.stop();
    createPod('web');
    cluster.pass(10);
    assert.deepEqual(cluster.nodesOf('web'), ['']);
  });
});

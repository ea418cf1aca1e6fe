import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { Controllers } from '#simulator/controllers/controllers.ts';
import type { TolerationObject } from '#simulator/objects/core-kinds.ts';
import type { PodObject } from '#simulator/objects/kinds.ts';
import type { ObjectStore } from '#simulator/objects/store.ts';
import { aNode, aPod, aStore, inDefault, NOW, podsOf, unscoped } from '../builders.ts';

const SECOND_MS = 1000;
const MAINTENANCE = { key: 'maintenance', effect: 'NoExecute' };
const TOLERATED = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute' };

/** A workload as `kubectl create` sends it. */
interface Wanted {
  readonly resource: 'deployments' | 'statefulsets' | 'daemonsets';
  readonly body: { readonly metadata: { readonly name: string }; readonly spec: object };
}

const workload = (
  resource: Wanted['resource'],
  name: string,
  tolerations: readonly TolerationObject[],
  spec: object,
): Wanted => ({
  resource,
  body: { metadata: { name }, spec: { ...podsOf(name, { tolerations }), ...spec } },
});

const deployment = (name: string, replicas: number, tolerations: TolerationObject[] = []): Wanted =>
  workload('deployments', name, tolerations, { replicas });

const DB = workload('statefulsets', 'db', [], { replicas: 2, podManagementPolicy: 'Parallel' });

let store: ObjectStore;
let controllers: Controllers | undefined;

function run(...workloads: readonly Wanted[]): void {
  for (const { resource, body } of workloads) {
    if (store.find(resource, inDefault(body.metadata.name)) === undefined) {
      store.create(resource, 'default', body);
    }
  }
  controllers = new Controllers(store);
  controllers.start();
  pass(SECOND_MS);
}

/** Advances the time second by second, because timers set in one second may fire in the next. */
function pass(ms: number): void {
  for (let passed = 0; passed < ms; passed += SECOND_MS) mock.timers.tick(SECOND_MS);
}

const taint = (node: string, ...taints: readonly object[]) =>
  store.update('nodes', unscoped(node), 'main', (current) => ({ ...current, spec: { taints } }));

const pods = (prefix = ''): readonly PodObject[] =>
  store.all('pods').filter(({ metadata }) => metadata.name.startsWith(prefix));

const nodesOf = (prefix = '') =>
  pods(prefix)
    .map(({ spec }) => spec.nodeName ?? '')
    .sort();

const reasons = () => store.all('events').map(({ reason }) => reason);

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW });
  store = aStore({ clock: { now: () => Date.now() } });
  for (const name of ['node-1', 'node-2', 'node-3']) store.create('nodes', '', aNode(name));
});

afterEach(() => {
  controllers?.stop();
  mock.timers.reset();
});

describe('the scheduler', () => {
  test('spreads the pods of a workload over the nodes', () => {
    run(deployment('web', 6));
    assert.deepEqual(nodesOf('web'), ['node-1', 'node-1', 'node-2', 'node-2', 'node-3', 'node-3']);
  });

  test('keeps pods off cordoned nodes and nodes with untolerated NoSchedule and NoExecute taints', () => {
    taint('node-1', MAINTENANCE);
    taint('node-2', { key: 'gpu', effect: 'NoSchedule' });
    run(deployment('web', 3));
    assert.deepEqual(nodesOf('web'), ['node-3', 'node-3', 'node-3']);
    store.update('nodes', unscoped('node-3'), 'main', (node) => ({ ...node, spec: { unschedulable: true } }));
    store.create('pods', 'default', aPod('late'));
    pass(SECOND_MS);
    assert.deepEqual(nodesOf('late'), ['']);
  });

  test('reports once why a pod is unschedulable, and binds it when a node is free', () => {
    for (const name of ['node-1', 'node-2', 'node-3']) taint(name, MAINTENANCE);
    run(deployment('web', 1));
    const [pending] = pods('web');
    assert.deepEqual(pending?.status.conditions, [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/3 nodes are available: 3 node(s) had untolerated taint(s) {maintenance:NoExecute}.',
        lastTransitionTime: '2026-11-21T12:00:01Z',
      },
    ]);
    pass(10 * SECOND_MS);
    assert.equal(reasons().filter((reason) => reason === 'FailedScheduling').length, 1);
    taint('node-2');
    pass(SECOND_MS);
    assert.deepEqual(nodesOf('web'), ['node-2']);
    assert.equal(pods('web')[0]?.status.conditions?.[0]?.status, 'True');
  });

  test("prefers nodes from which the pod isn't soon evicted, and nodes without a PreferNoSchedule taint", () => {
    taint('node-1', MAINTENANCE);
    taint('node-2', { key: 'slow', effect: 'PreferNoSchedule' });
    run(deployment('checkout', 2, [{ ...TOLERATED, tolerationSeconds: 30 }]));
    assert.deepEqual(nodesOf('checkout'), ['node-3', 'node-3']);
    taint('node-2', { key: 'gpu', effect: 'NoSchedule' });
    taint('node-3', { key: 'gpu', effect: 'NoSchedule' });
    store.create('pods', 'default', aPod('last', { tolerations: [{ ...TOLERATED, tolerationSeconds: 30 }] }));
    pass(SECOND_MS);
    assert.deepEqual(nodesOf('last'), ['node-1']);
  });

  test('honors a node selector and ignores pods of other schedulers', () => {
    store.update('nodes', unscoped('node-2'), 'main', (node) => ({
      ...node,
      metadata: { ...node.metadata, labels: { disk: 'ssd' } },
    }));
    store.create('pods', 'default', aPod('picky', { nodeSelector: { disk: 'ssd' } }));
    store.create('pods', 'default', aPod('foreign', { schedulerName: 'other' }));
    run();
    assert.deepEqual([nodesOf('picky'), nodesOf('foreign')], [['node-2'], ['']]);
  });
});

describe('the kubelet', () => {
  test('runs a bound pod within two seconds, ready and with an address', () => {
    store.create('pods', 'default', aPod('web'));
    run();
    assert.equal(store.get('pods', inDefault('web')).status.phase, 'Pending');
    pass(2 * SECOND_MS);
    const { status } = store.get('pods', inDefault('web'));
    assert.equal(status.phase, 'Running');
    const types = status.conditions
      ?.filter((condition) => condition.status === 'True')
      .map(({ type }) => type);
    assert.deepEqual(types, [
      'PodScheduled',
      'PodReadyToStartContainers',
      'Initialized',
      'Ready',
      'ContainersReady',
    ]);
    assert.match(String(status['podIP']), /^10\.244\.\d+\.\d+$/);
  });

  test('keeps conditions of other clients', () => {
    store.create('pods', 'default', aPod('web'));
    run();
    const disrupted = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };
    store.update('pods', inDefault('web'), 'status', (pod) => ({
      ...pod,
      status: { ...pod.status, conditions: [disrupted, ...(pod.status.conditions ?? [])] },
    }));
    pass(3 * SECOND_MS);
    const { status } = store.get('pods', inDefault('web'));
    assert.deepEqual([status.phase, status.conditions?.[0]], ['Running', disrupted]);
  });

  test('finishes a pod a few seconds after its deletion, within its grace period', () => {
    for (const name of ['slow', 'fast']) store.create('pods', 'default', aPod(name));
    run();
    pass(3 * SECOND_MS);
    store.delete('pods', inDefault('slow'));
    store.delete('pods', inDefault('fast'), { gracePeriodSeconds: 1 });
    assert.equal(pods().length, 2);
    pass(SECOND_MS);
    assert.deepEqual(
      pods().map(({ metadata }) => metadata.name),
      ['slow'],
    );
    pass(2 * SECOND_MS);
    assert.deepEqual(pods(), []);
    assert.equal(reasons().filter((reason) => reason === 'Killing').length, 2);
  });

  test('finishes terminating pods after a restart', () => {
    store.create('pods', 'default', aPod('web'));
    run();
    pass(3 * SECOND_MS);
    store.delete('pods', inDefault('web'));
    controllers?.stop();
    pass(60 * SECOND_MS);
    assert.equal(pods().length, 1);
    run();
    assert.deepEqual(pods(), []);
  });

  test('does nothing for a deleted node, whose pods are garbage-collected after 40 s', () => {
    store.create('pods', 'default', aPod('web', { nodeName: 'node-1' }));
    run();
    pass(3 * SECOND_MS);
    store.delete('nodes', unscoped('node-1'));
    store.delete('pods', inDefault('web'));
    pass(39 * SECOND_MS);
    assert.equal(pods().length, 1);
    pass(2 * SECOND_MS);
    assert.deepEqual(pods(), []);
  });
});

describe('a Deployment', () => {
  test('replaces a terminating pod immediately, under another name', () => {
    run(deployment('web', 2));
    pass(3 * SECOND_MS);
    const [first] = pods('web');
    assert.ok(first);
    store.delete('pods', inDefault(first.metadata.name));
    pass(SECOND_MS);
    assert.equal(pods('web').length, 3);
    pass(5 * SECOND_MS);
    const names = pods('web').map(({ metadata }) => metadata.name);
    assert.equal(names.length, 2);
    assert.ok(!names.includes(first.metadata.name));
  });

  test('adopts its pods again after a restart', () => {
    run(deployment('web', 2));
    const before = pods('web').map(({ metadata }) => metadata.uid);
    controllers?.stop();
    run(deployment('web', 2));
    assert.deepEqual(
      pods('web').map(({ metadata }) => metadata.uid),
      before,
    );
  });
});

describe('a StatefulSet', () => {
  test('replaces a removed pod under the same name with another UID', () => {
    run(DB);
    pass(3 * SECOND_MS);
    const before = store.get('pods', inDefault('db-0'));
    store.delete('pods', inDefault('db-0'));
    pass(2 * SECOND_MS);
    assert.equal(store.get('pods', inDefault('db-0')).metadata.uid, before.metadata.uid);
    pass(2 * SECOND_MS);
    assert.notEqual(store.get('pods', inDefault('db-0')).metadata.uid, before.metadata.uid);
    assert.deepEqual(
      pods('db')
        .map(({ metadata }) => metadata.name)
        .sort(),
      ['db-0', 'db-1'],
    );
  });
});

describe('a DaemonSet', () => {
  const logs = (tolerations: TolerationObject[] = []) => workload('daemonsets', 'logs', tolerations, {});

  test('runs one pod on each node, new ones included', () => {
    run(logs());
    assert.deepEqual(nodesOf('logs'), ['node-1', 'node-2', 'node-3']);
    store.create('nodes', '', aNode('node-4'));
    pass(SECOND_MS);
    assert.deepEqual(nodesOf('logs'), ['node-1', 'node-2', 'node-3', 'node-4']);
  });

  test('restores its pod on a node, but not on a node with an untolerated taint', () => {
    taint('node-1', MAINTENANCE);
    run(logs());
    assert.deepEqual(nodesOf('logs'), ['node-2', 'node-3']);
    const [pod] = pods('logs').filter(({ spec }) => spec.nodeName === 'node-2');
    store.delete('pods', inDefault(pod?.metadata.name ?? ''));
    pass(6 * SECOND_MS);
    assert.deepEqual(nodesOf('logs'), ['node-2', 'node-3']);
  });

  test('runs on every node indefinitely if it tolerates everything, even on an unreachable node', () => {
    taint('node-1', MAINTENANCE, { key: 'gpu', effect: 'NoSchedule' });
    run(logs([{ operator: 'Exists' }]));
    assert.deepEqual(nodesOf('logs'), ['node-1', 'node-2', 'node-3']);
    const seconds = pods('logs').flatMap(({ spec }) =>
      (spec.tolerations ?? []).map((one) => one.tolerationSeconds),
    );
    assert.deepEqual(new Set(seconds), new Set([undefined]));
  });
});

describe('all controllers', () => {
  test('change nothing while nothing happens', () => {
    run(deployment('web', 4), DB);
    pass(10 * SECOND_MS);
    const { version } = store;
    pass(600 * SECOND_MS);
    assert.equal(store.version, version);
  });

  test('delete Events after an hour', () => {
    run(deployment('web', 1));
    pass(5 * SECOND_MS);
    assert.ok(reasons().length > 0);
    mock.timers.tick(3600 * SECOND_MS);
    assert.deepEqual(reasons(), []);
  });

  test('do nothing after they are stopped', () => {
    run();
    controllers?.stop();
    store.create('pods', 'default', aPod('web'));
    pass(10 * SECOND_MS);
    assert.deepEqual(nodesOf('web'), ['']);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { evict } from '#simulator/objects/eviction.ts';
import type { DeleteRequest } from '#simulator/objects/store.ts';
import { aPod, inDefault, refusalOf } from '../builders.ts';
import { runningCluster } from './running-cluster.ts';

const cluster = runningCluster();

const budget = (spec: object) =>
  cluster.store.create('poddisruptionbudgets', 'default', {
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  });
/** Runs a Deployment, with a budget or without. */
function deploy(replicas: number, ofBudget?: object): void {
  cluster.run('deployments', 'web', { replicas });
  if (ofBudget) budget(ofBudget);
  cluster.pass(5);
}
const status = () => cluster.store.get('poddisruptionbudgets', inDefault('web')).status;
const numbers = () => [
  status().currentHealthy,
  status().desiredHealthy,
  status().expectedPods,
  status().disruptionsAllowed,
];
const aPodOfWeb = () => {
  const pod = cluster.pods('web').find(({ metadata }) => metadata.deletionTimestamp === undefined);
  return inDefault(pod?.metadata.name ?? '');
};
const evictOne = (request: DeleteRequest = {}) => evict(cluster.store, aPodOfWeb(), request);
const refusal = (work: () => void) => refusalOf(work).body();

describe('a disruption budget', () => {
  for (const [spec, expected] of [
    [{ minAvailable: 3 }, [4, 3, 4, 1]],
    [{ minAvailable: '50%' }, [4, 2, 4, 2]],
    [{ minAvailable: '60%' }, [4, 3, 4, 1]],
    [{ maxUnavailable: 1 }, [4, 3, 4, 1]],
    [{ maxUnavailable: '30%' }, [4, 2, 4, 2]],
    [{ maxUnavailable: 9 }, [4, 0, 4, 4]],
    [{ minAvailable: 9 }, [4, 9, 4, 0]],
    [{}, [4, 0, 0, 0]],
  ] as const) {
    test(`${JSON.stringify(spec)} counts four pods as upstream`, () => {
      deploy(4, spec);
      assert.deepEqual(numbers(), expected);
      assert.equal(status().observedGeneration, 1);
      const [condition] = status().conditions ?? [];
      assert.deepEqual(
        [condition?.status, condition?.reason],
        expected[3] > 0 ? ['True', 'SufficientPods'] : ['False', 'InsufficientPods'],
      );
    });
  }

  test('allows no disruption if the expected number of pods is unknown', () => {
    const stray = {
      ownerReferences: [{ apiVersion: 'x/v1', kind: 'X', name: 'x', uid: 'u', controller: true }],
    };
    cluster.store.create('pods', 'default', aPod('web-1', {}, { labels: { app: 'web' }, ...stray }));
    budget({ maxUnavailable: 1 });
    cluster.pass(5);
    assert.deepEqual(
      [status().disruptionsAllowed, status().conditions?.[0]?.reason, status().conditions?.[0]?.message],
      [0, 'SyncFailed', 'found no controllers for pod "web-1"'],
    );
  });
});

describe('an eviction', () => {
  test('marks the pod and deletes it', () => {
    deploy(2);
    const pod = aPodOfWeb();
    const owners = cluster.store.get('pods', pod).metadata.managedFields;
    evict(cluster.store, pod, { gracePeriodSeconds: 7 });
    const { metadata, status: after } = cluster.store.get('pods', pod);
    assert.deepEqual(metadata.managedFields, owners, 'nobody owns what the server does itself');
    assert.equal(metadata.deletionGracePeriodSeconds, 7);
    const { lastTransitionTime, ...condition } = after.conditions?.at(-1) ?? { type: '' };
    assert.deepEqual(condition, {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
    });
  });

  test('is rejected while the budget forbids it, and succeeds when a new pod is ready', () => {
    deploy(3, { minAvailable: 2 });
    evictOne();
    assert.deepEqual(status().disruptionsAllowed, 0);
    const body = refusal(evictOne);
    const message = 'The disruption budget web does not allow evicting pods currently';
    assert.deepEqual(body, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      code: 429,
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      reason: 'TooManyRequests',
      details: { causes: [{ reason: 'DisruptionBudget', message }] },
    });
    cluster.pass(1);
    assert.match(JSON.stringify(refusal(evictOne)), /needs 2 healthy pods and has 2/);
    cluster.pass(5);
    evictOne();
  });

  test('is rejected until the budget was processed', () => {
    deploy(3);
    budget({ minAvailable: 0 });
    const body = JSON.stringify(refusal(evictOne));
    assert.match(body, /"retryAfterSeconds":10/);
    assert.match(body, /still being processed by the server/);
  });

  const anUnreadyPod = () => {
    const pod = aPodOfWeb();
    cluster.store.update('pods', pod, 'status', (current) => ({
      ...current,
      status: { ...current.status, conditions: [{ type: 'Ready', status: 'False' }] },
    }));
    return pod;
  };

  test('succeeds for an unready pod without using the budget while the other pods suffice', () => {
    deploy(3, { minAvailable: 2 });
    const pod = anUnreadyPod();
    cluster.pass(1);
    assert.deepEqual(numbers(), [2, 2, 3, 0]);
    evict(cluster.store, pod, {});
    assert.equal(status().disruptedPods, undefined);
  });

  test("is rejected for an unready pod while the other pods don't suffice, unless AlwaysAllow", () => {
    deploy(3, { minAvailable: 3 });
    const pod = anUnreadyPod();
    cluster.pass(1);
    refusal(() => evict(cluster.store, pod, {}));
    cluster.change('poddisruptionbudgets', 'web', { unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    cluster.pass(1);
    evict(cluster.store, pod, {});
  });

  test('ignores the budget for a pending, finished, or terminating pod', () => {
    budget({ minAvailable: 9 });
    for (const phase of ['Pending', 'Failed', 'Succeeded']) {
      const pod = inDefault(`web-${phase.toLowerCase()}`);
      const body = aPod(pod.name, { schedulerName: 'none' }, { labels: { app: 'web' } });
      cluster.store.create('pods', 'default', body);
      cluster.store.update('pods', pod, 'status', (current) => ({ ...current, status: { phase } }));
      evict(cluster.store, pod, {});
      assert.equal(cluster.store.find('pods', pod), undefined);
    }
  });

  test('changes nothing in a dry run', () => {
    deploy(3, { minAvailable: 2 });
    const { version } = cluster.store;
    evictOne({ dryRun: true });
    evictOne({ dryRun: true });
    assert.equal(cluster.store.version, version);
    evictOne();
    refusal(() => evictOne({ dryRun: true }));
  });

  test('counts again after two minutes if it had no effect', () => {
    deploy(2, { minAvailable: 1 });
    const pod = aPodOfWeb();
    cluster.store.update('poddisruptionbudgets', inDefault('web'), 'status', (current) => ({
      ...current,
      status: { ...current.status, disruptedPods: { [pod.name]: '2026-11-21T12:00:05Z' } },
    }));
    cluster.pass(1);
    assert.equal(status().disruptionsAllowed, 0);
    cluster.pass(120);
    assert.equal(status().disruptionsAllowed, 1);
    assert.equal(status().disruptedPods, undefined);
  });
});

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { Account, MIN_PERMISSIONS } from './rig/account.ts';
import { fileStage } from './rig/file-stage.ts';
import type { PodSpec } from './rig/test-cluster.ts';
import { tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import type { PodLife } from './rig/witness.ts';

const stage = fileStage('bare');

const TAINT = { key: 'maintenance' };
/** The suite taints most of its few nodes, so the guard would trip. */
const ENFORCE = 'mode: enforce\nguard: { cluster: off, zone: off, customTaints: off }\n';

describe('policy method evict', () => {
  let kubeconfig: string;
  before(async () => {
    const { cluster } = stage();
    const permissions = [...MIN_PERMISSIONS, { resource: 'pods/eviction', verbs: ['create'] }];
    const account = await Account.create(cluster, 'evicter', permissions);
    kubeconfig = await stage().writeKubeconfig('evicter', cluster.connection, account.token);
  });

  /** Starts a service with this deadline, and creates a node with two running pods that have a budget. */
  async function budgeted(
    name: string,
    minAvailable: number,
    {
      deadline = '15m',
      account = kubeconfig,
      tolerations = [],
    }: { readonly deadline?: string; readonly account?: string } & Pick<PodSpec, 'tolerations'> = {},
  ) {
    const { cluster } = stage();
    const text = `${ENFORCE}method: evict\nevict: { timeout: ${deadline} }\n`;
    const policy = stage().write(`${name}.yaml`, text);
    const service = await stage().start({ kubeconfig: account, policy });
    const node = await cluster.addNode(name);
    const spec = { labels: { app: name }, tolerations };
    const pods = await Promise.all([`${name}-1`, `${name}-2`].map((pod) => cluster.addPod(node, pod, spec)));
    await cluster.setBudget(name, pods.length, minAvailable);
    return { cluster, service, node, pods };
  }

  /** Waits until a pod is evicted, and returns the time and the reason of its `DisruptionTarget` condition. */
  const evicted = (pod: PodLife) =>
    until(`${pod.name} is evicted`, () => {
      const { evictedAt, disruption } = stage().cluster.witness.pods.get(pod.uid) ?? pod;
      return evictedAt === undefined ? false : { evictedAt, reason: disruption?.reason };
    });

  const waits = (pod: PodLife) =>
    until(`an Event tells that ${pod.name} waits`, () =>
      stage().cluster.witness.reasonsOf(pod.name).includes('TaintwardEvictionBlocked'),
    );

  test('retries pods that a disruption budget blocks until the budget allows their eviction', async () => {
    const { cluster, service, node, pods } = await budgeted('budget', 2);
    await cluster.taint(node, TAINT);
    for (const pod of pods) {
      await waits(pod);
      assert.equal(cluster.witness.pods.get(pod.uid)?.disruption, undefined);
    }
    await cluster.setBudget('budget', 2, 0);
    for (const pod of pods) {
      assert.equal((await evicted(pod)).reason, 'EvictionByEvictionAPI');
      await until('an Event tells that it goes', () => cluster.witness.taintManagerEvents(pod.name)[0]);
      assert.equal(service.printed(pod.name, 'eviction blocked').length, 1);
      assert.equal(service.printed(pod.name, 'evicted').length, 1);
    }
    assert.deepEqual(service.complaints(), []);
  });

  test('evicts as many pods of a budget as the budget allows', async () => {
    const { cluster, node, pods } = await budgeted('spare', 1);
    await cluster.taint(node, TAINT);
    const going = () => pods.filter(({ uid }) => cluster.witness.pods.get(uid)?.evictedAt !== undefined);
    await until('one goes', () => going().length === 1);
    const [other] = pods.filter((pod) => !going().includes(pod));
    assert.ok(other);
    await waits(other);
    assert.equal(going().length, 1);
  });

  test('deletes pods that a budget blocks until the deadline', async () => {
    const { cluster, node, pods } = await budgeted('deadline', 2, { deadline: '6s' });
    const { requestedAt } = await cluster.taint(node, TAINT);
    for (const pod of pods) {
      const { evictedAt, reason } = await evicted(pod);
      assert.ok(evictedAt - requestedAt >= 6_000, `after ${evictedAt - requestedAt} ms`);
      assert.equal(reason, 'DeletionByTaintManager');
    }
  });

  test('deletes pods of an unreachable node regardless of their budget', async () => {
    const tolerations = [tolerates(NODE_UNREACHABLE, 1)];
    const { cluster, node, pods } = await budgeted('down', 2, { tolerations });
    await cluster.taint(node, { key: NODE_UNREACHABLE });
    for (const pod of pods) assert.equal((await evicted(pod)).reason, 'DeletionByTaintManager');
  });

  test('evicts no pods without the permission for it, and reports the missing permission', async () => {
    const { cluster, service, node, pods } = await budgeted('right', 0, { account: stage().kubeconfig });
    await cluster.taint(node, TAINT);
    await service.untilPrinted(node, 'eviction.retrying', 'pods/eviction');
    for (const { uid } of pods) assert.equal(cluster.witness.pods.get(uid)?.evictedAt, undefined);
  });
});

test("evicts pods at the policy's rate", async () => {
  const { cluster } = stage();
  await stage().start({ policy: stage().write('rate.yaml', `${ENFORCE}evictionRate: 2\n`) });
  const node = await cluster.addNode('rate');
  const pods = await Promise.all(
    Array.from({ length: 7 }, (_, index) => cluster.addPod(node, `rate-${index}`)),
  );
  await cluster.taint(node, TAINT);
  const moments = await until('all are evicted', () => {
    const found = pods.flatMap(({ uid }) => cluster.witness.pods.get(uid)?.evictedAt ?? []);
    return found.length === pods.length && found.sort((a, b) => a - b);
  });
  const [first = 0, last = 0] = [moments[0], moments.at(-1)];
  // Seven pods take four seconds. The first and the last slot can each be used late. Without a rate the evictions take
  // no time.
  assert.ok(last - first >= 1_000, `within ${last - first} ms`);
});

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
/** The suite taints most of its few nodes, which the guard would hold. */
const ENFORCE = 'mode: enforce\nguard: { cluster: off, zone: off, customTaints: off }\n';

describe('where policy has pods evicted by the Eviction API', () => {
  let kubeconfig: string;
  before(async () => {
    const { cluster } = stage();
    const permissions = [...MIN_PERMISSIONS, { resource: 'pods/eviction', verbs: ['create'] }];
    const account = await Account.create(cluster, 'evicter', permissions);
    kubeconfig = await stage().writeKubeconfig('evicter', cluster.connection, account.token);
  });

  /** A service with this deadline, and a node with two running pods that have a budget. */
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

  /** When a pod was evicted, and what it was marked with. */
  const evicted = (pod: PodLife) =>
    until(`${pod.name} is evicted`, () => {
      const { evictedAt, disruption } = stage().cluster.witness.pods.get(pod.uid) ?? pod;
      return evictedAt === undefined ? false : { evictedAt, reason: disruption?.reason };
    });

  const waits = (pod: PodLife) =>
    until(`an Event tells that ${pod.name} waits`, () =>
      stage().cluster.witness.reasonsOf(pod.name).includes('TaintwardEvictionBlocked'),
    );

  test('a disruption budget blocks, and then lets go', async () => {
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
      assert.equal(service.said(pod.name, 'eviction blocked by a disruption budget').length, 1);
      assert.equal(service.said(pod.name, 'evicted').length, 1);
    }
    assert.deepEqual(service.complaints(), []);
  });

  test('of pods that share a budget as many go as it can spare', async () => {
    const { cluster, node, pods } = await budgeted('spare', 1);
    await cluster.taint(node, TAINT);
    const going = () => pods.filter(({ uid }) => cluster.witness.pods.get(uid)?.evictedAt !== undefined);
    await until('one goes', () => going().length === 1);
    const [other] = pods.filter((pod) => !going().includes(pod));
    assert.ok(other);
    await waits(other);
    assert.equal(going().length, 1);
  });

  test('what its budget blocks up to the deadline is then deleted', async () => {
    const { cluster, node, pods } = await budgeted('deadline', 2, { deadline: '6s' });
    const { askedAt } = await cluster.taint(node, TAINT);
    for (const pod of pods) {
      const { evictedAt, reason } = await evicted(pod);
      assert.ok(evictedAt - askedAt >= 6_000, `after ${evictedAt - askedAt} ms`);
      assert.equal(reason, 'DeletionByTaintManager');
    }
  });

  test('pods that go because their node is unreachable are deleted whatever their budget says', async () => {
    const tolerations = [tolerates(NODE_UNREACHABLE, 1)];
    const { cluster, node, pods } = await budgeted('down', 2, { tolerations });
    await cluster.taint(node, { key: NODE_UNREACHABLE });
    for (const pod of pods) assert.equal((await evicted(pod)).reason, 'DeletionByTaintManager');
  });

  test('without the right to it pods stay, and the service says which right is missing', async () => {
    const { cluster, service, node, pods } = await budgeted('right', 0, { account: stage().kubeconfig });
    await cluster.taint(node, TAINT);
    await service.untilSaid(
      node,
      'eviction.retrying',
      'grant these credentials the verb create on pods/eviction',
    );
    for (const { uid } of pods) assert.equal(cluster.witness.pods.get(uid)?.evictedAt, undefined);
  });
});

test('where policy sets a rate, pods go at it', async () => {
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
  // Seven turns are in four seconds, of the first and the last of which a moment may be used; without a rate they take none.
  assert.ok(last - first >= 1_000, `within ${last - first} ms`);
});

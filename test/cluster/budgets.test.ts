import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DEFAULT_POLICY, type Method, type Rules } from '#shared/eviction/policy.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { Account, LEAST_RIGHTS } from './rig/account.ts';
import { Evicter } from './rig/evicter.ts';
import { fileStage } from './rig/file-stage.ts';
import type { PodSpec } from './rig/test-cluster.ts';
import { tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import type { PodLife } from './rig/witness.ts';

const stage = fileStage('bare');

const SOON_MS = 5_000;
/** A budget is asked again every five seconds. */
const ASKED_AGAIN_MS = 8_000;

const rulesOf = (method: Method): Rules => ({
  policy: { ...DEFAULT_POLICY, mode: 'enforce', method },
  policyRevision: 1,
  stops: [],
  holds: [],
  trips: [],
  guardRevision: 0,
  matching: { comparisonOperators: false },
});

const LONG: Method = { kind: 'evict', deadlineMs: 900_000, afterDeadline: 'delete' };

describe('where policy has pods evicted by the Eviction API', () => {
  let kubeconfig: string;
  const evicters: Evicter[] = [];
  before(async () => {
    const { cluster } = stage();
    const rights = [...LEAST_RIGHTS, { resource: 'pods/eviction', verbs: ['create'] }];
    const account = await Account.create(cluster, 'evicter', rights);
    kubeconfig = await stage().writeKubeconfig('evicter', cluster.connection, account.token);
  });
  after(() => {
    for (const evicter of evicters) evicter.close();
  });

  /** Two running pods with a budget, and what evicts them. */
  async function budgeted(
    name: string,
    minAvailable: number,
    method = LONG,
    account = kubeconfig,
    tolerations: PodSpec['tolerations'] = [],
  ) {
    const { cluster } = stage();
    const node = await cluster.addNode(name);
    const labels = { app: name };
    const pods = await Promise.all(
      [`${name}-1`, `${name}-2`].map((pod) => cluster.addPod(node, pod, { labels, tolerations })),
    );
    await cluster.setBudget(name, pods.length, minAvailable);
    const evicter = new Evicter(account, rulesOf(method));
    evicters.push(evicter);
    return { cluster, node, pods, evicter };
  }

  const evicted = (pod: PodLife, withinMs: number) =>
    until(`${pod.name} is evicted`, withinMs, () => {
      const { evictedAt, disruption } = stage().cluster.witness.pods.get(pod.uid) ?? pod;
      return evictedAt === undefined ? false : { evictedAt, reason: disruption?.reason };
    });

  test('a disruption budget blocks, and then lets go', async () => {
    const { cluster, node, pods, evicter } = await budgeted('budget', 2);
    await cluster.taint(node, { key: 'maintenance' });
    await evicter.tell(node, 'maintenance');
    for (const pod of pods) {
      await until(`an Event tells that ${pod.name} waits`, SOON_MS, () =>
        cluster.witness.reasonsOf(pod.name).includes('TaintwardBlocked'),
      );
      const record = await evicter.record(node, pod.uid);
      assert.match(
        record?.blocked?.reason ?? '',
        /429 TooManyRequests.*The disruption budget budget needs 2 healthy pods/,
      );
      assert.equal(record?.failure, undefined);
      assert.equal(cluster.witness.pods.get(pod.uid)?.disruption, undefined);
    }
    await cluster.setBudget('budget', 2, 0);
    for (const pod of pods) {
      const { reason } = await evicted(pod, ASKED_AGAIN_MS);
      assert.equal(reason, 'EvictionByEvictionAPI');
      await until(
        'an Event tells that it goes',
        SOON_MS,
        () => cluster.witness.taintManagerEvents(pod.name)[0],
      );
    }
    assert.equal(evicter.log.lines.filter(({ event }) => event === 'eviction.done').length, 2);
  });

  test('of pods that share a budget as many go as it can spare', async () => {
    const { cluster, node, pods, evicter } = await budgeted('spare', 1);
    await cluster.taint(node, { key: 'maintenance' });
    await evicter.tell(node, 'maintenance');
    const going = () => pods.filter(({ uid }) => cluster.witness.pods.get(uid)?.evictedAt !== undefined);
    await until('one goes', SOON_MS, () => going().length === 1);
    await until('the other one waits', SOON_MS, () =>
      pods.some(({ name }) => cluster.witness.reasonsOf(name).includes('TaintwardBlocked')),
    );
    assert.equal(going().length, 1);
  });

  test('what its budget blocks up to the deadline is then deleted', async () => {
    const deadlineMs = 6_000;
    const { cluster, node, pods, evicter } = await budgeted('deadline', 2, { ...LONG, deadlineMs });
    const { askedAt } = await cluster.taint(node, { key: 'maintenance' });
    await evicter.tell(node, 'maintenance');
    for (const pod of pods) {
      const { evictedAt, reason } = await evicted(pod, deadlineMs + ASKED_AGAIN_MS);
      assert.ok(evictedAt - askedAt >= deadlineMs, `after ${evictedAt - askedAt} ms`);
      assert.equal(reason, 'DeletionByTaintManager');
    }
  });

  test('pods that go because their node is unreachable are deleted whatever their budget says', async () => {
    const tolerations = [tolerates(NODE_UNREACHABLE, 1)];
    const { cluster, node, pods, evicter } = await budgeted('down', 2, LONG, kubeconfig, tolerations);
    await cluster.taint(node, { key: NODE_UNREACHABLE });
    await evicter.tell(node, NODE_UNREACHABLE);
    for (const pod of pods) assert.equal((await evicted(pod, SOON_MS)).reason, 'DeletionByTaintManager');
  });

  test('without the right to it pods stay, and say which right is missing', async () => {
    const { cluster, node, pods, evicter } = await budgeted('right', 0, LONG, stage().kubeconfig);
    await cluster.taint(node, { key: 'maintenance' });
    await evicter.tell(node, 'maintenance');
    const failure = await until(
      'it fails',
      SOON_MS,
      async () => (await evicter.record(node, pods[0]?.uid ?? ''))?.failure,
    );
    assert.match(failure.error, /grant these credentials the verb create on pods\/eviction\.$/);
    assert.equal(cluster.witness.pods.get(pods[0]?.uid ?? '')?.evictedAt, undefined);
  });
});

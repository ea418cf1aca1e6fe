import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertUntouched } from './rig/deadline.ts';
import { evictedOnTime } from './rig/on-time.ts';
import { RuledFleet } from './rig/ruled-fleet.ts';
import { tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import type { PodLife } from './rig/witness.ts';

/*
 * Two real clusters and twenty simulated ones under one service. The operator's commands run beside the running
 * service. Evictions in alpha and beta are observed at their API servers.
 */

const SIMULATED = 20;
/** Time for which pods that must stay are watched. */
const WATCHED_MS = 3_000;

const closing = new AsyncDisposableStack();
let fleet: RuledFleet;

before(async () => {
  fleet = await RuledFleet.open(SIMULATED, closing);
});
after(() => closing.disposeAsync());

/** Creates a node of alpha with pods on it. */
async function nodeWith(name: string, pods: number, spec: Parameters<typeof fleet.alpha.addPod>[2] = {}) {
  const { alpha } = fleet;
  const node = await alpha.addNode(name);
  const added = await Promise.all(
    Array.from({ length: pods }, (_, index) => alpha.addPod(node, `${name}-${index}`, spec)),
  );
  return { node, pods: added };
}

const evicted = (pods: readonly PodLife[]) =>
  Promise.all(pods.map((pod) => until(`${pod.name} is evicted`, () => pod.evictedAt)));

async function assertStays(...pods: readonly PodLife[]): Promise<void> {
  const from = Date.now();
  await until('time has passed', () => Date.now() - from >= WATCHED_MS);
  assertUntouched(...pods);
}

describe('a cluster without a policy', () => {
  test('evicts no pod, reports and records the pods it would evict, and evicts them in order once enforced', async (t) => {
    const { alpha } = fleet;
    const { node, pods } = await nodeWith('observed', 6);
    await alpha.taint(node, { key: 'x' });
    for (const pod of pods) {
      await until(`an Event says that ${pod.name} would have gone`, () =>
        alpha.witness.reasonsOf(pod.name).includes('TaintwardWouldEvict'),
      );
    }
    assertUntouched(...pods);
    const history = await fleet.taintward('history', 'alpha', '--node', node);
    for (const pod of pods) assert.match(history, new RegExp(`${pod.name}.*`));
    assert.equal(history.match(/would/g)?.length, pods.length, history);
    assert.match(await fleet.taintward('pending', 'alpha'), /observed-0/);

    await fleet.apply({ mode: 'enforce', releaseRate: 2 }, 'alpha');
    const moments = (await evicted(pods)).sort((a, b) => a - b);
    const [first = 0, last = 0] = [moments[0], moments.at(-1)];
    t.diagnostic(`six pods drained in ${last - first} ms at 2/s`);
    // The first pods can be evicted late; the slot of the last pod is after 2.5 s.
    assert.ok(last - first >= 1_500, `${last - first}`);
  });
});

describe('an operator', () => {
  before(() => fleet.apply({ mode: 'enforce' }));

  test('stops all clusters with one command, and resumes them with the due pods evicted', async () => {
    const { alpha, beta, simulated } = fleet;
    const inAlpha = await nodeWith('stopped', 3);
    const node = await beta.addNode('stopped');
    const inBeta = await Promise.all([0, 1].map((index) => beta.addPod(node, `stopped-${index}`)));
    await fleet.order('stop', '--all', '--reason', 'a trial');
    await Promise.all([alpha.taint(inAlpha.node, { key: 'x' }), beta.taint(node, { key: 'x' })]);
    const uids = new Map(
      [...simulated].map(([name, cluster]) => {
        cluster.taint('node-1', 'trial=now:NoExecute');
        // The DaemonSet's pods tolerate all taints.
        const pods = cluster.pods().filter((pod) => pod.node === 'node-1' && !pod.name.startsWith('logs'));
        return [name, pods.filter((pod) => !pod.name.startsWith('kube-')).map(({ uid }) => uid)];
      }),
    );
    await assertStays(...inAlpha.pods, ...inBeta);
    const left = (name: string) => {
      const there = new Set(
        simulated
          .get(name)
          ?.pods()
          .map(({ uid }) => uid),
      );
      return (uids.get(name) ?? []).filter((uid) => there.has(uid)).length;
    };
    for (const [name, pods] of uids) assert.equal(left(name), pods.length, name);
    assert.match(await fleet.taintward('audit'), /a trial/);

    await fleet.taintward('resume', '--all', '--reason', 'it is over');
    await evicted([...inAlpha.pods, ...inBeta]);
    await until('all have gone from the simulated nodes', () =>
      [...uids.keys()].every((name) => left(name) === 0),
    );
  });

  test('holds a pod and the pods of a node, and releases them', async () => {
    const { alpha } = fleet;
    const pods = await nodeWith('held-pod', 2);
    const [kept, other] = pods.pods;
    assert.ok(kept && other);
    const ofNode = await nodeWith('held-node', 2);
    const idOf = (printed: string) => /taintward release (\S+)/.exec(printed)?.[1] ?? printed;
    const pod = `${alpha.namespace}/${kept.name}`;
    const requestedAt = Date.now();
    const holdOnPod = idOf(
      await fleet.taintward('hold', 'pod', pod, '--cluster', 'alpha', '--reason', 'look'),
    );
    await fleet.order('hold', 'node', ofNode.node, '--cluster', 'alpha', '--reason', 'look', '--for', '12s');
    await Promise.all([pods.node, ofNode.node].map((node) => alpha.taint(node, { key: 'x' })));
    await evicted([other]);
    await assertStays(kept, ...ofNode.pods);
    await until('an Event tells of the hold', () =>
      alpha.witness.reasonsOf(kept.name).includes('TaintwardEvictionHeld'),
    );
    await fleet.taintward('release', holdOnPod, '--reason', 'seen');
    await evicted([kept]);
    const gone = await evicted(ofNode.pods);
    for (const at of gone) assert.ok(at >= requestedAt + 12_000, `${at - requestedAt}`);
  });
});

describe('policy', () => {
  test('skips excluded pods and overrides their tolerationSeconds', async () => {
    const { alpha } = fleet;
    await fleet.apply(
      {
        mode: 'enforce',
        exclude: [{ labels: { matchLabels: { app: 'database' } } }],
        tolerationSecondsOverrides: { x: 2 },
      },
      'alpha',
    );
    const { node, pods } = await nodeWith('excluded', 1, { labels: { app: 'database' } });
    const announced = await alpha.addPod(node, 'told', { tolerations: [tolerates('x', 300)] });
    const unbounded = await alpha.addPod(node, 'for-ever', {
      tolerations: [{ key: 'x', operator: 'Exists', effect: 'NoExecute' }],
    });
    const tainted = await alpha.taint(node, { key: 'x' });
    await evictedOnTime(announced, 2, tainted);
    await assertStays(...pods, unbounded);
    await fleet.apply({ mode: 'enforce' }, 'alpha');
    await evicted(pods);
    assertUntouched(unbounded);
  });

  test('treats NoSchedule taints of treatAsNoExecute keys as NoExecute', async () => {
    const { alpha } = fleet;
    const node = await alpha.addNode('virtual', [{ key: 'retired', effect: 'NoSchedule' }]);
    const [pod, staying] = await Promise.all([
      alpha.addPod(node, 'virtual'),
      alpha.addPod(node, 'virtual-staying', {
        tolerations: [{ key: 'retired', operator: 'Exists', effect: 'NoSchedule' }],
      }),
    ]);
    await assertStays(pod, staying);
    await fleet.apply({ mode: 'enforce', treatAsNoExecute: ['retired'] }, 'alpha');
    await evicted([pod]);
    await assertStays(staying);
  });

  test('limits evictions to its rate', async (t) => {
    await fleet.apply({ mode: 'enforce', evictionRate: 2 }, 'alpha');
    const { node, pods } = await nodeWith('rated', 9);
    await fleet.alpha.taint(node, { key: 'x' });
    const moments = (await evicted(pods)).sort((a, b) => a - b);
    const tookMs = (moments.at(-1) ?? 0) - (moments[0] ?? 0);
    t.diagnostic(`nine pods in ${tookMs} ms at 2/s`);
    // Nine pods take five seconds. The first and the last slot can each be used late.
    assert.ok(tookMs >= 2_000, `${tookMs}`);
  });

  test('makes evictions respect disruption budgets with method evict', async () => {
    const { alpha } = fleet;
    await fleet.apply({ mode: 'enforce', method: 'evict' }, 'alpha');
    const { node, pods } = await nodeWith('budgeted', 2, { labels: { app: 'budgeted' } });
    await alpha.setBudget('budgeted', 2, 2);
    await alpha.taint(node, { key: 'x' });
    await until('an Event tells of the budget', () =>
      pods.every(({ name }) => alpha.witness.reasonsOf(name).includes('TaintwardEvictionBlocked')),
    );
    for (const { evictedAt } of pods) assert.equal(evictedAt, undefined);
    await alpha.setBudget('budgeted', 2, 0);
    await evicted(pods);
    await fleet.apply({ mode: 'enforce' }, 'alpha');
  });

  test('is rejected with a sentence that names the invalid setting', async () => {
    await assert.rejects(fleet.apply({ mode: 'enforce', releaseRate: 0 }, 'alpha'), {
      stderr: /policy\.releaseRate /,
    });
  });
});

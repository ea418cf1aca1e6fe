import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { CHECK_MS } from '#shared/engine/watch/lease-session.ts';
import { type ClusterUids, clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { type LeaseRecord, MAX_STUCK } from '#shared/state/lease.ts';
import { StoreError } from '#shared/state/store.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { PushedRules } from '#test/world/pushed-rules.ts';
import { liveNode, livePod } from './live-objects.ts';
import { CLUSTER, clusterRelay, inDynamoDb, SECOND, taintedCluster, wakesOf } from './relay-world.ts';
import { ends, endsAfter, listOf } from './scripted-resource.ts';

const ONE: ClusterUids = { system: 's1', nodes: ['n1'] };
const BROKEN = new ApiError('the connection broke', 0);
const TWIN: LeaseRecord = { cluster: clusterName('c2'), epoch: 1, renewals: 0, renewedAt: 0, uids: ONE };

/** Returns the relay of a cluster with a tainted node, and the claims of other clusters as `others` has them. */
function bench(context: TestContext) {
  const time = driveTimers(context, Date.UTC(2026, 0, 1));
  const cluster = taintedCluster();
  cluster.identity = ONE;
  const state = inDynamoDb();
  const rules = new PushedRules();
  const others = { read: async (_: unknown, _fresh: boolean): Promise<readonly LeaseRecord[]> => [] };
  const otherLeases: typeof others.read = (...args) => others.read(...args);
  const made = clusterRelay(context, cluster, { ...state, rules, otherLeases });
  const progress = async () => (await state.leases.read(CLUSTER))?.tripProgress?.length;
  return { time, cluster, ...state, rules, others, progress, ...made };
}

test('starts without a takeover, and as if an eviction controller ran', async (context) => {
  const { time, cluster, relay } = bench(context);
  const answer = Promise.withResolvers<undefined>();
  cluster.getTakeover = () => answer.promise;
  relay.start();
  await time.pass(SECOND);
  assert.deepEqual(relay.faults, []);
  answer.resolve(undefined);
});

for (const [when, lists, state] of [
  ['once the nodes are listed', ['hang'], 'syncing'],
  ['until the cluster is disconnected', [listOf(liveNode()), BROKEN], 'disconnected'],
] as const)
  test(`reports the progress of a trip ${when}`, async (context) => {
    const { time, cluster, relay, rulesStore, progress } = bench(context);
    rulesStore.set([{ scope: 'cluster', trippedAt: 1, nodes: 5, outOf: 10 }]);
    cluster.nodes.lists = [...lists];
    cluster.nodes.watches = [endsAfter(10 * SECOND, BROKEN), ends(BROKEN)];
    relay.start();
    await time.pass(9 * SECOND);
    assert.equal(await progress(), state === 'syncing' ? 0 : 1);
    await time.pass(10 * SECOND);
    assert.deepEqual([relay.state.kind, await progress()], [state, 0]);
  });

describe('a claim', () => {
  test('is compared before and after its write, then at each check, and not for each change of a node', async (context) => {
    const { time, cluster, relay, others } = bench(context);
    const { mock } = context.mock.method(others, 'read');
    const reads = () => mock.calls.map(({ arguments: [, fresh] }) => fresh);
    const uids = context.mock.method(cluster, 'uids');
    const object = { ...liveNode('n1', 'a', 'b'), resourceVersion: '2' };
    cluster.nodes.watches = [ends('quiet', { kind: 'upsert', object })];
    relay.start();
    await time.pass(CHECK_MS - SECOND);
    assert.deepEqual(reads(), [false, true]);
    await time.pass(CHECK_MS);
    assert.deepEqual([reads(), uids.mock.callCount()], [[false, true, false], 1]);
  });

  test('of another cluster under the name lets nothing be sent until it is compared', async (context) => {
    const { time, cluster, relay, rules, others, nodes } = bench(context);
    cluster.nodes.watches = [
      endsAfter(8 * SECOND, new ApiError('the version is too old', 410)),
      ends('quiet'),
    ];
    relay.start();
    await time.pass(5 * SECOND);
    cluster.identity = { system: 's2', nodes: ['n9'] };
    others.read = () => Promise.reject(new StoreError('the table is away'));
    await time.pass(5 * SECOND);
    const sent = nodes.taken.length;
    rules.push({ ordersRevision: 2 });
    await time.pass(5 * SECOND);
    assert.equal(nodes.taken.length, sent);
  });

  test('wakes the nodes when it succeeds after the other name is removed', async (context) => {
    context.mock.method(Math, 'random', () => 0.9);
    const { time, relay, others, nodes } = bench(context);
    relay.start();
    await time.pass(CHECK_MS - SECOND);
    others.read = async () => [TWIN];
    await time.pass(2 * SECOND);
    assert.equal(relay.faults[0]?.type, 'same-cluster');
    nodes.taken.length = 0;
    others.read = async () => [];
    await time.pass(CHECK_MS);
    assert.deepEqual(wakesOf(nodes), [], 'the next attempt waits at random');
    await time.pass(CHECK_MS);
    assert.deepEqual(wakesOf(nodes), [true]);
  });
});

describe('stuck pods', () => {
  const leaving = (uid: string, afterMs = 0) =>
    livePod(uid, {
      terminating: true,
      disrupted: true,
      leaving: { gracePeriodEndedAt: Date.now() + afterMs, finalizers: ['example.com/backup'] },
    });

  test('are each logged once, and reported when they change', async (context) => {
    const { time, cluster, relay, leases, log } = bench(context);
    const start = Date.now();
    cluster.pods.lists = [listOf(leaving('u1'), leaving('u2', 60 * SECOND))];
    const reports = context.mock.method(leases, 'reportStuck');
    relay.start();
    await time.pass(180 * SECOND);
    const lines = log.lines.filter(({ event }) => event === 'pod.stuck-terminating');
    const fields = (uid: string, gracePeriodEndedAt: number) => ({
      cluster: CLUSTER,
      node: 'n1',
      namespace: 'default',
      pod: `pod-${uid}`,
      uid,
      gracePeriodEndedAt,
      finalizers: ['example.com/backup'],
      nodeState: 'there',
    });
    assert.deepEqual(
      lines.map((line) => [line.level, line.fields]),
      [
        ['warn', fields('u1', start)],
        ['warn', fields('u2', start + 60 * SECOND)],
      ],
    );
    assert.equal(reports.mock.callCount(), 2);
  });

  test('are reported up to the limit of a report', async (context) => {
    const { time, cluster, relay, leases } = bench(context);
    cluster.pods.lists = [listOf(...Array.from({ length: MAX_STUCK + 1 }, (_, i) => leaving(`u${i}`)))];
    relay.start();
    await time.pass(90 * SECOND);
    assert.equal((await leases.stuck(CLUSTER)).length, MAX_STUCK);
  });

  for (const [how, isListed] of [
    ['checked on its node', true],
    ['kept until the lists are complete', false],
  ] as const)
    test(`of the last relay are ${how}`, async (context) => {
      const { time, cluster, relay, leases } = bench(context);
      const former = await leases.take(CLUSTER, undefined, 'r0', Date.now());
      assert.ok(former);
      const node = nodeName('n2');
      const times = { gracePeriodEndedAt: 0, finalizers: [] };
      const pod = { node, uid: podUid('u0'), namespace: 'default', name: 'web-0', ...times };
      await leases.reportStuck(former, [{ ...pod, nodeState: 'there' }]);
      await leases.release(former);
      cluster.nodes.lists = [listOf(liveNode('n1', 'a'), liveNode('n2'))];
      cluster.pods.lists = [isListed ? listOf() : 'hang'];
      relay.start();
      await time.pass(40 * SECOND);
      const nodesListed = cluster.pods.listed.map(({ onNode }) => onNode).sort();
      assert.deepEqual(nodesListed, isListed ? ['n1', 'n2'] : ['n1']);
      assert.equal((await leases.stuck(CLUSTER)).length, isListed ? 0 : 1);
    });
});

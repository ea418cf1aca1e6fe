import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { PERMIT_LASTS_MS } from '#shared/eviction/permits.ts';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import type { Permits } from '#shared/state/permits.ts';
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { sqlitePermits } from '#shared/state/sqlite/sqlite-state.ts';
import { NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import { waitingPods } from '#test/contracts/permits-contract.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { after, at, nodeDelta, pod, ref, rules } from '#test/unit/eviction/builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { EvictBench, STOP, serverError } from './evict-bench.ts';

const other = { ...ref, node: nodeName('n2') };
const WINDOW_S = 600;
const LASTS_S = PERMIT_LASTS_MS / 1000;

type Limit = NonNullable<Policy['maxEvictionsPerWorkload']>;
const limitedTo = (count: Limit['count'], more: Partial<Policy> = {}): Rules => ({
  ...rules,
  policy: { ...rules.policy, ...more, maxEvictionsPerWorkload: { count, windowMs: WINDOW_S * 1000 } },
});

const OF_WEB = {
  owner: { kind: 'ReplicaSet', name: 'web-7d9f' },
  labels: { 'pod-template-hash': '7d9f' },
} as const;

/** Returns a bench with due pods on two nodes of one cluster. */
async function twoNodes(
  ruling: Rules,
  perPass: number,
  fields: (index: number) => Partial<LivePod> = () => OF_WEB,
): Promise<EvictBench> {
  const bench = new EvictBench();
  bench.ruling = ruling;
  for (const place of [ref, other]) {
    bench.cluster.putNode(liveNode(place.node, 'a'));
    const uids = Array.from({ length: perPass }, (_, index) => `${place.node}-${index + 1}`);
    await bench.stores(place, after(nodeDelta(1, { pods: uids.map((uid) => pod(uid)) })));
    uids.forEach(
      (uid, index) => void bench.cluster.putPod(livePod(uid, { node: place.node, ...fields(index) })),
    );
  }
  return bench;
}

/** Evicts on both nodes concurrently, each in a new process. Returns the UIDs of all deleted pods. */
async function deletedIn(bench: EvictBench, open: () => Permits = () => bench.permits) {
  await Promise.all([ref, other].map((place) => evictNode(place, { ...bench, permits: open() })));
  return bench.deleted;
}

/** Repeats this at each armed time up to `end`. */
async function until(bench: EvictBench, end: number, open?: () => Permits): Promise<void> {
  for (;;) {
    const [next] = bench.armed.splice(0).sort((a, b) => a - b);
    if (next === undefined || next > end) return;
    await bench.clock.advanceTo(Math.max(next, bench.clock.now()));
    await deletedIn(bench, open);
  }
}

const secondsOf = ({ cluster }: EvictBench) =>
  cluster.deletions.map((deletion) => (deletion.at - at(60)) / 1000);

const BACKENDS: Readonly<Record<string, () => () => Permits>> = {
  DynamoDB: () => {
    const fake = new FakeDynamoDb(new DrivenClock(at(0)));
    const client = fakeClient(async (command) => fake.perform(command));
    return () => dynamoDbPermits(new DynamoDbTable({ client, tableName: 'taintward' }));
  },
  SQLite: () => {
    const database = openDatabase(':memory:');
    return () => sqlitePermits(database);
  },
  'a cluster': () => {
    const objects = new FakeObjects();
    return () => objectPermits(objects);
  },
};

for (const [backend, connect] of Object.entries(BACKENDS)) {
  test(`limits a Deployment on two nodes across two evictors that restart for each pass, with ${backend}`, async () => {
    const open = connect();
    const bench = await twoNodes(limitedTo(3), 4);
    assert.equal((await deletedIn(bench, open)).length, 3);
    await bench.clock.advanceTo(at(90));
    assert.equal((await deletedIn(bench, open)).length, 3);
    await until(bench, at(4000), open);
    const next = WINDOW_S + LASTS_S;
    assert.deepEqual(secondsOf(bench), [0, 0, 0, next, next, next, 2 * next, 2 * next]);
  });
}

describe('where policy limits evictions of each workload', () => {
  test('a pod over the limit waits unmarked and without a failure, and its gate is reported', async () => {
    const bench = await twoNodes(limitedTo(1), 1);
    await deletedIn(bench);
    const [record] = [...(await bench.records()), ...(await bench.records(other))];
    const untilAt = at(60 + WINDOW_S + LASTS_S);
    assert.deepEqual(record?.held, {
      by: {
        kind: 'workload-limit',
        workload: 'Deployment/web',
        count: 1,
        windowMs: WINDOW_S * 1000,
        revision: 1,
        guardRevision: 0,
        until: untilAt,
      },
      since: at(60),
      until: untilAt,
    });
    assert.ok(bench.armed.includes(untilAt));
    assert.equal(record.failure, undefined);
    assert.equal([...bench.cluster.livePods.values()].filter(({ disrupted }) => disrupted).length, 0);
  });

  for (const [count, replicas, gone] of [
    ['10%', 30, 3],
    ['10%', 31, 4],
    ['10%', 1, 1],
    ['10%', 0, 1],
    ['100%', 4, 4],
  ] as const) {
    test(`${count} of ${replicas} replicas allows ${gone}`, async () => {
      const bench = await twoNodes(limitedTo(count), 3);
      bench.cluster.replicas.set('default/Deployment/web', replicas);
      assert.equal((await deletedIn(bench)).length, gone);
    });
  }

  test('a percentage of an unknown number allows one eviction', async () => {
    const bench = await twoNodes(limitedTo('50%'), 2, () => ({ owner: { kind: 'Rollout', name: 'web' } }));
    assert.equal((await deletedIn(bench)).length, 1);
  });

  test('a percentage without the permission to count replicas holds every pod with this reason', async () => {
    const bench = await twoNodes(limitedTo('50%'), 1);
    bench.cluster.replicas.set('default/Deployment/web', 4);
    bench.fails('get-replicas', new ApiError('is forbidden', 403));
    await deletedIn(bench);
    for (const place of [ref, other]) {
      const gate = (await bench.records(place))[0]?.held?.by;
      assert.ok(gate?.kind === 'workload-limit');
      assert.equal(gate.count, undefined);
    }
    assert.deepEqual(bench.deleted, []);
    bench.recovers();
    await until(bench, at(200));
    assert.equal(bench.deleted.length, 2);
  });

  test('an error of the server when it counts replicas postpones the node as any failure does', async () => {
    const bench = await twoNodes(limitedTo('50%'), 1);
    bench.fails('get-replicas', serverError(500));
    await deletedIn(bench);
    const { node } = await bench.stored();
    assert.equal(node?.outage?.attempts, 1);
    assert.deepEqual(bench.deleted, []);
  });

  test('bare pods, and pods of other workloads and namespaces, do not wait', async () => {
    const kinds: readonly Partial<LivePod>[] = [
      {},
      { owner: { kind: 'StatefulSet', name: 'web' } },
      { owner: { kind: 'ReplicaSet', name: 'web' }, labels: { 'pod-template-hash': '7d9f' } },
      {},
    ];
    const bench = await twoNodes(limitedTo(2), kinds.length, (index) => kinds[index] ?? {});
    assert.equal((await deletedIn(bench)).length, 2 * kinds.length);
  });

  test('the ReplicaSets of one Deployment share its limit', async () => {
    const bench = await twoNodes(limitedTo(1), 2, (index) => ({
      owner: { kind: 'ReplicaSet', name: `web-${index}` },
      labels: { 'pod-template-hash': `${index}` },
    }));
    assert.equal((await deletedIn(bench)).length, 1);
  });

  test('pods on a node out of service are evicted immediately without a permit, also pods that waited', async () => {
    const bench = await twoNodes(limitedTo(1), 2);
    bench.cluster.putNode(liveNode('n1', 'a', NODE_OUT_OF_SERVICE));
    await deletedIn(bench);
    assert.deepEqual([bench.deleted.slice(0, 2), bench.deleted.length], [['n1-1', 'n1-2'], 3]);
    bench.cluster.putNode(liveNode('n2', 'a', NODE_OUT_OF_SERVICE));
    await until(bench, at(60 + WINDOW_S + LASTS_S));
    assert.equal(bench.deleted.length, 4);
  });

  test('a pod whose eviction failed is retried with its own permit', async () => {
    const bench = await twoNodes(limitedTo(1), 1);
    bench.fails('delete', serverError(500), 3);
    await bench.pass();
    for (let tries = 0; tries < 3; tries++) await bench.nextTry();
    assert.deepEqual(bench.deleted, ['n1-1']);
    await evictNode(other, bench);
    assert.deepEqual(bench.deleted, ['n1-1']);
  });

  test('a permit that expired while the server was slow is requested again before the delete', async () => {
    const bench = await twoNodes(limitedTo(1), 1);
    bench.before('patch', (count) => count === 1 && void bench.delay(PERMIT_LASTS_MS + 1));
    const again = await bench.pass();
    assert.deepEqual([bench.deleted, again], [[], { againInSeconds: 0.25 }]);
    assert.deepEqual(await bench.evicts(), ['n1-1']);
  });

  test('a limit that is set during a pass applies to it', async () => {
    const bench = await twoNodes(rules, 2);
    const ruling = { ...limitedTo(1), policyRevision: 2 };
    bench.before('patch', () => Object.assign(bench, { ruling }));
    await deletedIn(bench);
    assert.equal((await deletedIn(bench)).length, 1);
  });

  test('waiting pods are evicted when a new policy has no limit', async () => {
    const bench = await twoNodes(limitedTo(1), 1);
    await deletedIn(bench);
    const waiting = bench.deleted[0] === 'n1-1' ? other : ref;
    bench.ruling = { ...rules, policyRevision: 2 };
    const { node, scheduled, revision } = await bench.store.load(waiting, bench.clock.now());
    const woken = [...scheduled.values()].map(({ held, ...record }) => ({
      ...record,
      ...(held ? { held: { ...held, until: bench.clock.now() } } : {}),
    }));
    await bench.store.commit(
      waiting,
      revision,
      { ...(node ? { node } : {}), schedule: woken, end: [], live: true },
      bench.clock.now(),
    );
    assert.equal((await deletedIn(bench)).length, 2);
  });

  test('waiting pods reserve no slot of the cluster', async () => {
    const bench = await twoNodes(limitedTo(1, { evictionRate: 1 }), 3);
    assert.equal((await bench.evicts()).length, 1);
    assert.deepEqual(
      await bench.permits.take(
        ref.cluster,
        waitingPods(1),
        { evictionRate: 1, releaseRate: 50 },
        bench.clock.now(),
      ),
      [{ turnAt: at(61) }],
    );
  });

  for (const [what, ruling, count] of [
    ['no limit', rules, 4],
    ['a limit and a stop, which holds all pods', { ...limitedTo('50%'), stops: [STOP] }, 0],
  ] as const)
    test(`permits and replicas are not requested with ${what}`, async () => {
      const bench = await twoNodes(ruling, 2);
      bench.permits = { take: () => assert.fail('a permit was asked for') };
      bench.before('get-replicas', () => assert.fail('replicas were counted'));
      assert.equal((await deletedIn(bench)).length, count);
    });

  test('observe mode reports only the pods that the limit lets go', async () => {
    const bench = await twoNodes(limitedTo(1, { mode: 'observe' }), 2);
    assert.deepEqual(await deletedIn(bench), []);
    assert.equal(bench.logged('eviction.would-evict').length, 1);
  });
});

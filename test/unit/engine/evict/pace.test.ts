import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import { type NodeRef, nodeName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { RATE_PERMIT_LASTS_MS } from '#shared/eviction/rate.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, emptyPartition, nodeDelta, planned, pod, ref, taint } from '#test/unit/eviction/builders.ts';
import type { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { EvictBench, longBegun, ruled } from './evict-bench.ts';

/** The permits of successive processes, by the place of their state. */
const HOSTS: Readonly<Record<string, (clock: DrivenClock) => () => Permits>> = {
  DynamoDB: (clock) => {
    const fake = new FakeDynamoDb(clock);
    const client = fakeClient(async (command) => fake.perform(command));
    return () => dynamoDbPermits(new DynamoDbTable({ client, tableName: 'taintward' }));
  },
  // With SQLite, and in a cluster.
  'a single writer': (clock) => {
    let permits = longBegun(clock);
    let first = true;
    return () => {
      if (!first) permits = new EmbeddedPermits(() => clock.now(), objectPermits(new FakeObjects()));
      first = false;
      return permits;
    };
  },
};

/** A bench with timers of all nodes, and with due pods on them. */
class Stage {
  readonly bench: EvictBench = new EvictBench();
  readonly #armed: { readonly ref: NodeRef; readonly at: EpochMs }[] = [];
  readonly begin: () => Permits;

  constructor(host: (clock: DrivenClock) => () => Permits) {
    this.begin = host(this.bench.clock);
    this.bench.permits = this.begin();
    Object.assign(this.bench, {
      timers: {
        arm: async (node: NodeRef, moments: readonly EpochMs[]) => {
          this.#armed.push(...moments.map((moment) => ({ ref: node, at: moment })));
        },
      },
    });
  }

  async addNode(name: string, pods: number): Promise<NodeRef> {
    const place = { ...ref, node: nodeName(name) };
    const uids = Array.from({ length: pods }, (_, index) => `${name}-${index}`);
    const delta = nodeDelta(1, { ref: place, taints: [taint('a', 0)], pods: uids.map((uid) => pod(uid)) });
    const { node, schedule } = planned({ ...emptyPartition, ref: place }, delta, { now: at(1) });
    await this.bench.store.commit(
      place,
      0,
      { ...(node ? { node } : {}), schedule, end: [], live: true },
      at(1),
    );
    this.bench.cluster.putNode(liveNode(name, 'a'));
    for (const uid of uids) this.bench.cluster.putPod(livePod(uid, { node: place.node }));
    return place;
  }

  arm(node: NodeRef, moment: EpochMs): void {
    this.#armed.push({ ref: node, at: moment });
  }

  /** Evicts at each armed time of a node up to `end`. */
  async until(end: EpochMs): Promise<void> {
    const { bench } = this;
    for (;;) {
      this.#armed.sort((a, b) => a.at - b.at);
      const [next] = this.#armed;
      if (!next || next.at > end) break;
      this.#armed.shift();
      await bench.clock.advanceTo(next.at);
      const again = await evictNode(next.ref, bench);
      if (again) this.arm(next.ref, bench.clock.now() + again.againInSeconds * 1000);
    }
    await bench.clock.advanceTo(end);
  }

  /** Returns the largest number of evictions in any period of this length. */
  most(seconds: number): number {
    const moments = this.bench.cluster.deletions.map((each) => each.at);
    const counts = moments.map(
      (begin) => moments.filter((moment) => begin <= moment && moment < begin + seconds * 1000).length,
    );
    return Math.max(0, ...counts);
  }

  get gone(): number {
    return this.bench.cluster.deletions.length;
  }
}

const hold = {
  id: 'h1',
  actor: 'anna',
  at: at(0),
  reason: 'an incident',
  target: { kind: 'node', node: ref.node },
} as const;

/** Stores that no gate remains for the pods of a node; `wake`: by a wake of the relay. */
async function release({ bench, arm }: Stage, nodeRef: NodeRef, ruling: Rules, wake: boolean): Promise<void> {
  const now = bench.clock.now();
  bench.ruling = ruling;
  const found = await bench.store.load(nodeRef, now);
  const pods = [...found.scheduled.values()].map(({ uid }, rank) => pod(uid, wake ? { rank } : {}));
  const delta = nodeDelta(2, { ref: nodeRef, observedAt: now, wake, taints: [taint('a', 0)], pods });
  const { node, free } = planned(found, delta, { now }, ruling);
  await bench.store.commit(
    nodeRef,
    found.revision,
    { ...(node ? { node } : {}), schedule: free, end: [], live: true },
    now,
  );
  const momentOf = ({ dueAt, notBefore = 0 }: EvictionRecord) => Math.max(dueAt, notBefore);
  for (const moment of new Set(free.map(momentOf))) arm(nodeRef, moment);
}

for (const [name, host] of Object.entries(HOSTS)) {
  const staged = async (pods: number, ruling: Rules): Promise<Stage> => {
    const stage = new Stage(host);
    stage.arm = stage.arm.bind(stage);
    stage.bench.ruling = ruling;
    stage.arm(await stage.addNode('n1', pods), at(60));
    return stage;
  };

  /** The most evictions in a second at a rate: exactly the rate if one process sends them all. */
  const burst = (evictionRate: number) => (name === 'DynamoDB' ? 3 * evictionRate : evictionRate);

  describe(`evictions at the rates of a cluster, with ${name}`, () => {
    test('reach the rate, and exceed it in no second, with answers that take unequal time', async () => {
      const stage = await staged(100, ruled({ evictionRate: 20 }));
      const { bench } = stage;
      let requests = 0;
      bench.cluster.beforeRequest = () => {
        void bench.clock.advanceTo(bench.clock.now() + ((requests++ * 7) % 5));
      };
      await stage.until(at(90));
      assert.equal(stage.gone, 100);
      assert.ok(stage.most(1) <= burst(20), `${stage.most(1)} in one second`);
      const lastAt = Math.max(...bench.cluster.deletions.map((each) => each.at));
      assert.ok(lastAt < at(67), `${lastAt - at(60)} ms`);
    });

    test('exceed no limit when nodes become due at any time and held pods are released', async () => {
      const held = {
        id: 'h2',
        actor: 'anna',
        at: at(0),
        reason: 'test',
        target: { kind: 'node', node: nodeName('n2') } as const,
      };
      const pace = { evictionRate: 20, releaseRate: 10 };
      const stage = await staged(40, {
        ...ruled(pace),
        holds: [{ ...held, until: at(61) + 400 } as const],
      });
      for (const [index, node] of ['n2', 'n3', 'n4', 'n5'].entries())
        stage.arm(await stage.addNode(node, 30), at(60) + index * 333);
      await stage.until(at(200));
      assert.equal(stage.gone, 160);
      assert.ok(stage.most(1) <= burst(20), `${stage.most(1)} in one second`);
      assert.ok(stage.most(10) <= 20 * 11);
    });

    for (const wake of [true, false])
      test(`release held pods at the rate although the API server was unreachable, ${wake ? 'woken' : 'told of'}`, async () => {
        const draining = ruled({ releaseRate: 5 });
        const stage = await staged(200, { ...draining, holds: [hold] });
        await stage.until(at(62));
        await release(stage, ref, draining, wake);
        await stage.until(at(72));
        assert.ok(stage.gone > 40, `${stage.gone} of 50 went`);
        stage.bench.fails('any', new ApiError('the server is away', 503));
        await stage.until(at(102));
        stage.bench.recovers();
        await stage.until(at(400));
        assert.equal(stage.gone, 200);
        assert.ok(stage.most(1) <= burst(5), `${stage.most(1)} in one second`);
        assert.ok(stage.most(10) <= 55, `${stage.most(10)} in ten seconds`);
      });

    test('release pods at the rate when their exclusion ends', async () => {
      const exclude = [{ labels: {}, until: at(120) }];
      const stage = await staged(50, ruled({ releaseRate: 2, exclude }));
      await stage.until(at(300));
      assert.equal(stage.gone, 50);
      assert.ok(stage.most(1) <= burst(2));
      assert.ok(stage.most(10) <= 22);
    });

    test('keep the rate when the process is replaced repeatedly', async () => {
      const stage = await staged(40, ruled({ evictionRate: 2 }));
      for (const second of [61, 62, 63]) stage.arm(await stage.addNode(`n${second}`, 40), at(second));
      for (const second of [60, 61, 62, 63, 64, 65]) {
        await stage.until(at(second));
        stage.bench.permits = stage.begin();
      }
      await stage.until(at(300));
      assert.equal(stage.gone, 160);
      assert.ok(stage.most(1) <= burst(2), `${stage.most(1)} in one second`);
      assert.ok(stage.most(10) <= 22);
    });

    test('keep a lower rate as soon as it is applied', async () => {
      const stage = await staged(200, ruled({ evictionRate: 20 }));
      await stage.until(at(63) - 1);
      const before = stage.gone;
      assert.ok(before >= 40);
      stage.bench.ruling = ruled({ evictionRate: 0.1 }, { policyRevision: 2 });
      await stage.until(at(123));
      assert.ok(stage.gone - before <= 7, `${stage.gone - before} of 7 went`);
      assert.ok(stage.gone > before);
    });

    test('keep the rate while the clock is set back and forth', async () => {
      const stage = await staged(60, ruled({ evictionRate: 2 }));
      const { bench } = stage;
      const { clock } = bench;
      let aheadMs = 0;
      // Each pass has a clock that differs by up to two seconds.
      const observing = { ...bench, clock: { now: () => clock.now() + aheadMs } };
      for (let second = 60; second < 90; second++) {
        aheadMs = [0, 2000, -2000, 1000][second % 4] ?? 0;
        await clock.advanceTo(at(second));
        await evictNode(ref, observing);
      }
      // DynamoDB has only the clocks of processes: the clock furthest ahead counts.
      assert.ok(stage.gone <= 2 * (30 + 2) + 2, `${stage.gone} went`);
      assert.ok(stage.gone >= 30, `${stage.gone} went`);
      assert.ok(stage.most(10) <= 2 * (10 + 2) + 2);
    });

    test('delete no pod by an expired permit, and continue where each answer takes seconds', async () => {
      const stage = await staged(6, ruled({ evictionRate: 2 }));
      const { bench } = stage;
      bench.before('patch', (count) => count <= 3 && void bench.delay(RATE_PERMIT_LASTS_MS + 1));
      await bench.pass();
      assert.ok(stage.gone > 0);
      await stage.until(at(120));
      assert.equal(stage.gone, 6);
      assert.ok(stage.most(1) <= burst(2), `${stage.most(1)} in one second`);
    });

    test('use no permit of another policy for a delete', async () => {
      const stage = await staged(4, ruled({ evictionRate: 4 }));
      const { bench } = stage;
      const ruling = ruled({ evictionRate: 1 }, { policyRevision: 2 });
      bench.before('patch', () => Object.assign(bench, { ruling }));
      await bench.pass();
      assert.ok(bench.deleted.length <= 1, `${bench.deleted.length} went`);
    });
  });
}

describe('a cluster without a rate', () => {
  test('needs no permits for pods that were never held', async () => {
    const stage = new Stage(() => () => ({ take: () => assert.fail('a permit was asked for') }));
    await stage.addNode('n1', 3);
    await stage.bench.pass();
    assert.equal(stage.gone, 3);
  });

  test('requests permits for held pods once for all due pods', async () => {
    let requests = 0;
    const stage = new Stage((clock) => () => {
      const permits = longBegun(clock);
      return {
        take: (...args) => {
          requests += 1;
          return permits.take(...args);
        },
      };
    });
    await stage.addNode('n1', 3);
    stage.bench.ruling = ruled({ exclude: [{ labels: {}, until: at(90) }] });
    await stage.bench.pass();
    const [record] = (await stage.bench.store.load(ref, at(60))).scheduled.values();
    assert.equal(record?.drains, true);
    await stage.bench.clock.advanceTo(at(90));
    await stage.bench.pass();
    assert.deepEqual([stage.gone, requests], [3, 1]);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LEASE_MAX_AGE_MS } from '#shared/engine/evict/node-reader.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { AskingPod } from '#shared/eviction/rate.ts';
import { NODE_NOT_READY, NODE_OUT_OF_SERVICE, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { liveNode } from '#test/unit/engine/watch/live-objects.ts';
import { nodeDelta, pod, rules, taint } from '#test/unit/eviction/builders.ts';
import { benchAfter, type EvictBench, podsNamed, ruled, serverError } from './evict-bench.ts';

const LEASE_MS = 40_000;

interface Unreachable {
  readonly pods?: number;
  /** The taints of the node that the relay reported. */
  readonly keys?: readonly string[];
  /** The present taints of the node; absent: the same. */
  readonly liveKeys?: readonly string[];
  /** The age of the kubelet's last heartbeat; absent: there was none. */
  readonly renewedMsAgo?: number;
}

/** Returns a bench with pods without tolerations, on a node with these taints; `verbs` records each request. */
async function unreachable({
  pods = 1,
  keys = [NODE_UNREACHABLE],
  liveKeys = keys,
  renewedMsAgo,
}: Unreachable): Promise<EvictBench & { readonly verbs: string[] }> {
  const named = podsNamed(pods).map((each) => ({ ...each, tolerations: [] }));
  const taints = keys.map((key) => taint(key, 1));
  const facts = named.map(({ uid }) => pod(uid, { tolerations: [] }));
  const bench = await benchAfter([nodeDelta(1, { taints, pods: facts })], named);
  bench.cluster.putNode(liveNode('n1', ...liveKeys));
  if (renewedMsAgo !== undefined) renew(bench, renewedMsAgo);
  const verbs: string[] = [];
  bench.cluster.beforeRequest = (verb) => verbs.push(verb);
  return Object.assign(bench, { verbs });
}

/** Kubelets write their heartbeats by the clock of the API server. */
function renew({ cluster, clock }: EvictBench, msAgo = 0): void {
  const renewedAt = clock.now() + (cluster.skewMs ?? 0) - msAgo;
  cluster.nodeLeases.set('n1', { renewedAt, durationMs: LEASE_MS });
}

const advance = ({ clock }: EvictBench, ms: number) => clock.advanceTo(clock.now() + ms);

const leaseReads = ({ verbs }: { readonly verbs: readonly string[] }) =>
  verbs.filter((verb) => verb === 'get-lease').length;

const heldIn = async (bench: EvictBench) => (await bench.records()).map(({ held }) => held);

describe('pods on an unreachable node', () => {
  test('are held while the node renews its Lease, and evaluated again when it expires', async () => {
    const bench = await unreachable({ pods: 3, renewedMsAgo: 15_000 });
    const until = bench.clock.now() + 25_000;
    assert.deepEqual(await bench.evicts(), []);
    assert.ok(!bench.isMarked);
    const held = await heldIn(bench);
    assert.equal(held.length, 3);
    for (const record of held) {
      assert.deepEqual([record?.by.kind, record?.until], ['node-alive', until]);
    }
    assert.deepEqual(bench.armed, [until]);
    assert.equal(leaseReads(bench), 1);
    assert.deepEqual(
      bench.logged('eviction.held').map(({ fields }) => fields['by']),
      ['node-alive', 'node-alive', 'node-alive'],
    );
  });

  test('keep their hold time for as long as the node renews its Lease', async () => {
    const bench = await unreachable({ renewedMsAgo: 0 });
    const since = bench.clock.now();
    for (let renewals = 0; renewals < 3; renewals++) {
      await bench.pass();
      await advance(bench, LEASE_MS);
      renew(bench, 1_000);
    }
    assert.deepEqual(await bench.evicts(), []);
    assert.deepEqual(
      (await heldIn(bench)).map((held) => held?.since),
      [since],
    );
    assert.equal(bench.logged('eviction.held').length, 1);
    assert.equal(leaseReads(bench), 4);
  });

  test('are evicted once the Lease is no longer renewed', async () => {
    const bench = await unreachable({ pods: 2, renewedMsAgo: 0 });
    await bench.pass();
    await advance(bench, LEASE_MS - 1);
    assert.deepEqual(await bench.evicts(), []);
    await advance(bench, 1);
    assert.deepEqual(await bench.evicts(), ['u1', 'u2']);
    assert.deepEqual(
      bench.logged('pod.evicted').map(({ fields }) => fields['lease']),
      ['expired', 'expired'],
    );
  });

  for (const [what, lease, spoil] of [
    ['the node has no Lease', 'missing', () => undefined],
    [
      'the Lease must not be read',
      'hidden',
      (bench: EvictBench & { readonly verbs: string[] }) => {
        renew(bench);
        bench.cluster.beforeRequest = (verb) => {
          bench.verbs.push(verb);
          if (verb === 'get-lease') throw serverError(403);
        };
      },
    ],
  ] as const)
    test(`are evicted where ${what}, after one read, and the log has the reason`, async () => {
      const bench = await unreachable({ pods: 40 });
      spoil(bench);
      assert.equal((await bench.evicts()).length, 40);
      assert.equal(leaseReads(bench), 1);
      assert.equal(bench.logged('pod.evicted')[0]?.fields['lease'], lease);
      assert.deepEqual(bench.logged('eviction.retrying'), []);
    });

  test('wait for the next retry while the Lease cannot be read', async () => {
    for (const status of [0, 401, 429, 500, 503]) {
      const bench = await unreachable({ renewedMsAgo: 60_000 });
      bench.fails('get-lease', serverError(status), 1);
      assert.deepEqual(await bench.evicts(), [], String(status));
      const [retryAt = 0] = bench.armed;
      assert.equal(bench.logged('eviction.retrying').length, 1);
      await advance(bench, retryAt - bench.clock.now());
      assert.deepEqual(await bench.evicts(), ['u1'], String(status));
    }
  });

  test('are evicted despite a renewed Lease where policy does not require an expired Lease, without a read', async () => {
    const bench = await unreachable({ renewedMsAgo: 0 });
    bench.ruling = ruled({ requireExpiredLease: false });
    await bench.pass();
    assert.deepEqual([bench.deleted, leaseReads(bench)], [['u1'], 0]);
  });

  test('follow the newest heartbeat where a pass takes longer than a heartbeat counts', async () => {
    const bench = await unreachable({ pods: 40, renewedMsAgo: LEASE_MS });
    let deleted = 0;
    bench.cluster.onDeleted = () => {
      deleted += 1;
      // The kubelet is back, and the server is slow.
      if (deleted === 1) renew(bench);
      if (deleted <= 32) void advance(bench, LEASE_MAX_AGE_MS / 8);
    };
    await bench.pass();
    assert.ok(deleted < 40, String(deleted));
    assert.ok(Object.values(await bench.gates()).includes('node-alive'));
  });

  test('are held where the node became unreachable after the report', async () => {
    const bench = await unreachable({ keys: ['a'], liveKeys: [NODE_UNREACHABLE], renewedMsAgo: 0 });
    await advance(bench, 60_000);
    renew(bench);
    assert.deepEqual(await bench.evicts(), []);
    assert.equal(leaseReads(bench), 1);
  });

  test('are held when policy begins to require an expired Lease during the pass', async () => {
    const bench = await unreachable({ pods: 40, renewedMsAgo: 0 });
    const unasked: Rules = ruled({ requireExpiredLease: false });
    bench.ruling = unasked;
    bench.cluster.onDeleted = () => {
      bench.ruling = { ...rules, policyRevision: 2 };
    };
    await bench.pass();
    assert.ok(bench.deleted.length < 40);
    assert.ok(Object.values(await bench.gates()).includes('node-alive'));
  });

  test('reserve no slot of the cluster while they are held', async () => {
    const bench = await unreachable({ pods: 3, renewedMsAgo: 0 });
    bench.ruling = ruled({ evictionRate: 1 });
    let taken = 0;
    const permits = {
      take: async (_cluster: string, pods: readonly AskingPod[]) => {
        taken += pods.length;
        return [];
      },
    };
    await bench.pass({ permits });
    assert.equal(taken, 0);
    assert.equal((await heldIn(bench)).length, 3);
  });
});

test('pods are evicted by other taints despite a renewed Lease, which is not read where these suffice', async () => {
  for (const other of ['a', NODE_NOT_READY, NODE_OUT_OF_SERVICE])
    for (const [keys, reads] of [
      [[other], 0],
      [[NODE_UNREACHABLE, other], undefined],
    ] as const) {
      const bench = await unreachable({ keys, renewedMsAgo: 0 });
      assert.deepEqual(await bench.evicts(), ['u1'], String(keys));
      if (reads !== undefined) assert.equal(leaseReads(bench), reads, String(keys));
    }
});

test('hold a pod in observe mode as in enforce mode: by the live node at first, and for want of a Lease', async () => {
  for (const [renewedMsAgo, gate] of [
    [0, 'node-alive'],
    [120_000, 'observe'],
  ] as const) {
    const bench = await unreachable({ renewedMsAgo });
    bench.ruling = ruled({ mode: 'observe' });
    await bench.pass();
    assert.equal(leaseReads(bench), 1);
    assert.deepEqual(await bench.gates(), { u1: gate });
  }
});

test('pods with an unreadable Lease reserve no slots until it can be read', async () => {
  const bench = await unreachable({ pods: 3 });
  bench.ruling = ruled({ evictionRate: 10 });
  const taken: number[] = [];
  const { permits } = bench;
  Object.assign(bench, {
    permits: {
      take: (...args: Parameters<typeof permits.take>) => {
        taken.push(args[1].length);
        return permits.take(...args);
      },
    },
  });
  bench.fails('get-lease', serverError(500));
  await bench.pass();
  assert.deepEqual([taken, bench.deleted], [[], []]);
  bench.recovers();
  const [retry] = bench.armed;
  assert.ok(retry);
  await bench.evicts(retry);
  assert.deepEqual(taken, [3]);
});

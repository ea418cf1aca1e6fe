import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { liveNode } from '#test/unit/engine/watch/live-objects.ts';
import { nodeDelta, pod, ref, rules, taint } from '#test/unit/eviction/builders.ts';
import { benchAfter, deletedFrom, podsNamed, serverError } from './evict-bench.ts';

test('pods with an unreadable Lease reserve no slots until it can be read', async () => {
  const pods = podsNamed(3).map((each) => ({ ...each, tolerations: [] }));
  const facts = pods.map(({ uid }) => pod(uid, { tolerations: [] }));
  const bench = await benchAfter([nodeDelta(1, { taints: [taint(NODE_UNREACHABLE, 1)], pods: facts })], pods);
  bench.cluster.putNode(liveNode('n1', NODE_UNREACHABLE));
  bench.ruling = { ...rules, policy: { ...rules.policy, rate: 10 } };
  const taken: number[] = [];
  const { rates } = bench;
  Object.assign(bench, {
    rates: {
      take: (...asked: Parameters<typeof rates.take>) => {
        taken.push(asked[1].length);
        return rates.take(...asked);
      },
    },
  });
  bench.cluster.beforeRequest = (verb) => {
    if (verb === 'get-lease') throw serverError(500);
  };
  await evictNode(ref, bench);
  assert.deepEqual([taken, deletedFrom(bench)], [[], []]);
  bench.cluster.beforeRequest = () => undefined;
  const [retry] = bench.armed;
  assert.ok(retry);
  await bench.clock.advanceTo(retry);
  await evictNode(ref, bench);
  assert.deepEqual(taken, [3]);
});

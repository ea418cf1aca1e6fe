import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import { at, ref } from '#test/unit/eviction/builders.ts';
import { duePods, serverError } from './evict-bench.ts';

/** The time that SQS and a cold start may add to each try. */
const DELIVERY_MS = 2_000;

for (const [level, status] of [
  ['its pod', 500],
  ['its whole node', 503],
] as const)
  test(`evicts a pod within 120 s whose delete fails seven times and puts ${level} off, with the delays of SQS`, async () => {
    const bench = await duePods(1);
    bench.fails('delete', serverError(status), 7);
    const delays: number[] = [];
    const timers = new AwsTimers({
      schedulesOf: () => assert.fail('a retry took a schedule'),
      clock: bench.clock,
      // No retry is so late that it needs a schedule.
      scheduler: { send: () => assert.fail('a retry took a schedule') } as never,
      dueQueue: {
        send: async (messages) => {
          delays.push(...messages.map(({ delaySeconds = 0 }) => delaySeconds * 1_000));
          return [];
        },
      },
    });
    const deps = { ...bench, timers };
    await evictNode(ref, deps);
    for (let delay = delays.shift(); delay !== undefined; delay = delays.shift()) {
      await bench.clock.advanceTo(bench.clock.now() + delay + DELIVERY_MS);
      await evictNode(ref, deps);
    }
    assert.deepEqual(bench.deleted, ['u1']);
    assert.ok(bench.clock.now() - at(60) <= 120_000, `${bench.clock.now() - at(60)} ms`);
  });

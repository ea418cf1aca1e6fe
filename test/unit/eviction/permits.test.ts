import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { podUid } from '#shared/eviction/identity.ts';
import { grantPermits, PERMIT_LASTS_MS, type Permit } from '#shared/eviction/permits.ts';

const request = fc.record({
  /** Milliseconds since the previous request. */
  afterMs: fc.integer({ min: 0, max: 30_000 }),
  pods: fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 5 }),
  /** Milliseconds until a pod with a permit is deleted. Some deletions fail. */
  deletedAfterMs: fc.option(fc.integer({ min: 0, max: PERMIT_LASTS_MS })),
});

test('limits deletions in every time window, for any requests', () => {
  const limit = { count: 2, windowMs: 40_000 };
  fc.assert(
    fc.property(fc.array(request, { maxLength: 40 }), (requests) => {
      let [now, born]: [number, number] = [0, 0];
      let held: readonly Permit[] = [];
      /** A deleted pod returns with another UID. */
      const life = new Map<number, number>();
      const deletions: number[] = [];
      for (const { afterMs, pods, deletedAfterMs } of requests) {
        now += afterMs;
        const uids = pods.map((pod) => podUid(`${pod}-${life.get(pod) ?? 0}`));
        const { permits, moments } = grantPermits(held, uids, limit, now);
        held = permits;
        pods.forEach((pod, index) => {
          assert.ok((moments[index] ?? 0) >= now);
          if (moments[index] !== now || deletedAfterMs === null) return;
          deletions.push(now + deletedAfterMs);
          life.set(pod, ++born);
        });
      }
      for (const from of deletions) {
        const within = deletions.filter((at) => at >= from && at < from + limit.windowMs);
        assert.ok(within.length <= limit.count, `${within}`);
      }
    }),
  );
});

test('grants a permit to a single pod that asks again at its time', () => {
  const limit = { count: 2, windowMs: 40_000 };
  const [a, b, c] = [podUid('a'), podUid('b'), podUid('c')];
  const { permits, moments } = grantPermits([], [a, b, c], limit, 0);
  const again = moments[2] ?? 0;
  assert.ok(again > 0);
  assert.deepEqual(grantPermits(permits, [c], limit, again).moments, [again]);
});

test('does not block a pod indefinitely by a permit of a clock that was far ahead', () => {
  const limit = { count: 1, windowMs: 40_000 };
  const held = [{ uid: podUid('a'), at: 1_000_000 }];
  assert.deepEqual(grantPermits(held, [podUid('b')], limit, 0).moments, [0]);
});

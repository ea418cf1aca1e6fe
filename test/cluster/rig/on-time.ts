import assert from 'node:assert/strict';
import type { Span } from './test-cluster.ts';
import { until } from './until.ts';
import type { PodLife } from './witness.ts';

/**
 * For suites on a stand-in that delivers up to a second late, and for those that run beside others: how late is reported, not
 * judged.
 */
const PATIENCE_MS = 30_000;

/**
 * Waits for a pod's eviction and fails when it comes before `seconds` after `since` was asked for, or not at all.
 * Returns how long after the moment seen it came, in ms.
 */
export async function evictedOnTime(pod: PodLife, seconds: number, since: Span): Promise<number> {
  const deadlineAt = since.seenAt + seconds * 1000;
  const patienceMs = Math.max(0, deadlineAt - Date.now()) + PATIENCE_MS;
  const evictedAt = await until(`${pod.name} is evicted`, () => pod.evictedAt, patienceMs);
  assert.ok(
    evictedAt >= since.askedAt + seconds * 1000,
    `${pod.name} went ${deadlineAt - evictedAt} ms before its deadline, ${seconds} s after the taint`,
  );
  return evictedAt - deadlineAt;
}

/** Waits until a moment has come. */
export const momentComes = (at: number): Promise<true> =>
  until('time passes', () => Date.now() >= at, Math.max(0, at - Date.now()) + 1_000);

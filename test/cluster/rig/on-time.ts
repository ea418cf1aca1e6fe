import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Span } from './test-cluster.ts';
import { until } from './until.ts';
import type { PodLife } from './witness.ts';

/**
 * Suites whose stand-in delivers up to a second late, and suites that run beside others, report delays but do not
 * assert on them.
 */
const PATIENCE_MS = 30_000;

/**
 * Waits for a pod's eviction and fails if it comes before `seconds` after `since` was requested, or not at all. Returns
 * the delay after the deadline that counts from `since.seenAt`, in ms.
 */
export async function evictedOnTime(pod: PodLife, seconds: number, since: Span): Promise<number> {
  const deadlineAt = since.seenAt + seconds * 1000;
  const patienceMs = Math.max(0, deadlineAt - Date.now()) + PATIENCE_MS;
  const evictedAt = await until(`${pod.name} is evicted`, () => pod.evictedAt, patienceMs);
  assert.ok(
    evictedAt >= since.requestedAt + seconds * 1000,
    `${pod.name} went ${deadlineAt - evictedAt} ms before its deadline, ${seconds} s after the taint`,
  );
  return evictedAt - deadlineAt;
}

/** Waits until a time has come. */
export async function momentComes(at: number): Promise<void> {
  // A timer may fire a millisecond early.
  while (Date.now() < at) await delay(at - Date.now());
}

import assert from 'node:assert/strict';
import { evictedOnTime } from './on-time.ts';
import type { Span } from './test-cluster.ts';
import type { PodLife, Witness } from './witness.ts';

/** The service evicts a pod at most this long after its deadline, and never before the deadline. */
const PROMISED_WITHIN_MS = 1_000;

/**
 * Waits for a pod's eviction and fails unless it came `seconds` after `since`. The earliest allowed time counts from
 * when the taint (or another start of the countdown) was requested, because nobody can have seen it sooner. The latest
 * allowed time counts from when the witness saw it. Returns the delay after the witness's deadline, in ms.
 */
export async function evictedAfter(pod: PodLife, seconds: number, since: Span): Promise<number> {
  const delayMs = await evictedOnTime(pod, seconds, since);
  assert.ok(delayMs <= PROMISED_WITHIN_MS, `${pod.name} went ${delayMs} ms after its deadline`);
  return delayMs;
}

/** Returns the later of two times. A countdown begins when both have passed. */
export const later = (a: Span, b: Span): Span => ({
  requestedAt: Math.max(a.requestedAt, b.requestedAt),
  seenAt: Math.max(a.seenAt, b.seenAt),
});

/** Fails if a pod was evicted or marked for eviction. */
export function assertUntouched(...pods: readonly PodLife[]): void {
  for (const pod of pods) {
    assert.equal(pod.evictedAt, undefined, `${pod.name} was evicted`);
    assert.equal(pod.disruption, undefined, `${pod.name} was marked for eviction`);
  }
}

/**
 * Fails if an eviction was made more than once. Each controller that evicts a pod writes an Event. These Events have no
 * UID, so the Events for a name are compared with all pods of that name.
 */
export function assertReportedOnce(witness: Witness, ...pods: readonly PodLife[]): void {
  for (const name of new Set(pods.map((pod) => pod.name))) {
    const evicted = witness.podsNamed(name).filter(({ evictedAt }) => evictedAt !== undefined).length;
    const announced = witness.taintManagerEvents(name).filter(({ message }) => message.startsWith('Marking'));
    assert.ok(
      announced.length <= evicted,
      `of ${evicted} evictions of ${name} ${announced.length} Events tell`,
    );
  }
}

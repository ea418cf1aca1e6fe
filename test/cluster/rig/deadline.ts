import assert from 'node:assert/strict';
import { evictedOnTime } from './on-time.ts';
import type { Span } from './test-cluster.ts';
import type { PodLife, Witness } from './witness.ts';

/** What the service promises: never before the deadline, and this long after it at the most. */
const PROMISED_WITHIN_MS = 1_000;

/**
 * Waits for a pod's eviction and fails unless it came `seconds` after `since`. The earliest right moment counts
 * from when the taint (or whatever began the countdown) was asked for, because nobody can have seen it sooner;
 * the latest from when the witness saw it. Returns how long after the witness' deadline it came, in ms.
 */
export async function evictedAfter(pod: PodLife, seconds: number, since: Span): Promise<number> {
  const lateMs = await evictedOnTime(pod, seconds, since);
  assert.ok(lateMs <= PROMISED_WITHIN_MS, `${pod.name} went ${lateMs} ms after its deadline`);
  return lateMs;
}

/** The later of two moments; a countdown begins when both have come. */
export const later = (a: Span, b: Span): Span => ({
  askedAt: Math.max(a.askedAt, b.askedAt),
  seenAt: Math.max(a.seenAt, b.seenAt),
});

/** Fails if a pod was evicted, or began to be. */
export function assertUntouched(...pods: readonly PodLife[]): void {
  for (const pod of pods) {
    assert.equal(pod.evictedAt, undefined, `${pod.name} was evicted`);
    assert.equal(pod.disruption, undefined, `${pod.name} was marked for eviction`);
  }
}

/**
 * Fails if an eviction was made more often than once: whoever evicts a pod tells so by an Event. These bear no UID, so those of a name
 * are held against the pods that bore it.
 */
export function assertToldOnce(witness: Witness, ...pods: readonly PodLife[]): void {
  for (const name of new Set(pods.map((pod) => pod.name))) {
    const evicted = witness.podsNamed(name).filter(({ evictedAt }) => evictedAt !== undefined).length;
    const told = witness.taintManagerEvents(name).filter(({ message }) => message.startsWith('Marking'));
    assert.ok(told.length <= evicted, `of ${evicted} evictions of ${name} ${told.length} Events tell`);
  }
}

import type { RateLimiter } from '#shared/clusters/rate-limiter.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { claimOf, TURNS_AHEAD_MS, turnsOf } from '#shared/eviction/rate.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';

/** Turns in one process: what was given out is known to it alone. */
export class EmbeddedRateLimiter implements RateLimiter {
  readonly #clock: Clock | undefined;
  /** Up to when, by the stopwatch, turns were given out. */
  readonly #takenToMs = new Map<ClusterName, number>();

  /** `clock`: of which the stopwatch counts; absent: what it is told is never set. */
  constructor(clock?: Clock) {
    this.#clock = clock;
  }

  async take(cluster: ClusterName, pods: number, rate: number, now: EpochMs): Promise<readonly EpochMs[]> {
    const nowMs = this.#clock ? stopwatchMs(this.#clock) : now;
    const fromMs = Math.max(nowMs, this.#takenToMs.get(cluster) ?? nowMs);
    if (fromMs > nowMs + TURNS_AHEAD_MS) return [];
    const claim = claimOf(pods, rate);
    this.#takenToMs.set(cluster, fromMs + claim.takesMs);
    return turnsOf(claim, now + Math.ceil(fromMs - nowMs), now);
  }
}

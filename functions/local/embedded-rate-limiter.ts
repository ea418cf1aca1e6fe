import type { RateLimiter } from '#shared/clusters/rate-limiter.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { claimOf, TURNS_AHEAD_MS, turnsOf } from '#shared/eviction/rate.ts';

/** Turns in one process: what was given out is known to it alone. */
export class EmbeddedRateLimiter implements RateLimiter {
  /** Up to when turns were given out. */
  readonly #takenTo = new Map<ClusterName, EpochMs>();

  async take(cluster: ClusterName, pods: number, rate: number, now: EpochMs): Promise<readonly EpochMs[]> {
    const from = Math.max(now, this.#takenTo.get(cluster) ?? now);
    if (from > now + TURNS_AHEAD_MS) return [];
    const claim = claimOf(pods, rate);
    this.#takenTo.set(cluster, from + claim.takesMs);
    return turnsOf(claim, from, now);
  }
}

import type { ClusterName } from '#shared/eviction/identity.ts';
import type { AskingPod, Pace, Turn } from '#shared/eviction/rate.ts';
import { type Bucket, type Given, givePermits } from '#shared/eviction/rate.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Grants permits to evict at the rates of each cluster, to all processes together. */
export interface RateLimiter {
  /**
   * Takes permits for pods of a cluster, as many as its rates allow. Resolves with an item for each pod, in order.
   * `undefined`: the pod has a permit, which lasts for `RATE_PERMIT_LASTS_MS`. Otherwise, the item is its turn. A
   * permit counts once it is taken, whether or not its pod is evicted. Rejects with `StoreError`.
   */
  take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]>;
}

/**
 * Permits in the one process that evicts. It begins without permits, because the process before it may just have used
 * up a second's burst. Permits accrue by its stopwatch, so setting the clock adds none.
 */
export class EmbeddedRateLimiter implements RateLimiter {
  readonly #stopwatch: Stopwatch;
  #none: Bucket;
  readonly #given = new Map<ClusterName, Given>();

  constructor(stopwatch: Stopwatch) {
    this.#stopwatch = stopwatch;
    this.#none = this.#noneNow();
  }

  /** Resets all permits when this process takes over from another one. */
  begin(): void {
    this.#none = this.#noneNow();
    this.#given.clear();
  }

  async take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]> {
    // Buckets are stored in stopwatch time. Turns are stored with their pods, in clock time.
    const aheadMs = now - this.#stopwatch();
    const { rate = this.#none, drain = this.#none } = this.#given.get(cluster) ?? {};
    const given = { rate: shifted(rate, aheadMs), drain: shifted(drain, aheadMs) };
    const after = givePermits(given, pods, pace, now);
    this.#given.set(cluster, {
      rate: after.given.rate && shifted(after.given.rate, -aheadMs),
      drain: after.given.drain && shifted(after.given.drain, -aheadMs),
    });
    return after.turns;
  }

  #noneNow(): Bucket {
    const at = this.#stopwatch();
    return { permits: 0, at, takenTo: at };
  }
}

const shifted = ({ permits, at, takenTo }: Bucket, ms: number): Bucket => ({
  permits,
  at: at + ms,
  takenTo: takenTo + ms,
});

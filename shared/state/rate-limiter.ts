import type { ClusterName, PodUid } from '#shared/eviction/identity.ts';
import type { AskingPod, Pace, Turn } from '#shared/eviction/rate.ts';
import { type Bucket, type GivenPermits, givePermits } from '#shared/eviction/rate.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { SendWindow, together } from './send-window.ts';

export interface SentPod extends Pick<AskingPod, 'drains'> {
  readonly uid: PodUid;
}

/** Grants permits to evict at the rates of each cluster, to all processes together. */
export interface RateLimiter {
  /**
   * Takes permits for pods, as many as the cluster's rates allow. Resolves, in order, with a pod's turn, or
   * `undefined`: a permit for `RATE_PERMIT_LASTS_MS`. A permit counts once taken, whether or not its pod is evicted.
   * Rejects with `StoreError`.
   */
  take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]>;

  /**
   * Counts the delete of a permitted pod from `sentBy`, its latest time; without it, from now: it was answered. Absent:
   * a second may see the deletes of two seconds' permits, and of a burst.
   */
  sent?(cluster: ClusterName, pod: SentPod, pace: Pace, now: EpochMs, sentBy?: EpochMs): void;
}

interface Limits {
  given: GivenPermits;
  readonly evictionRate: SendWindow;
  readonly releaseRate: SendWindow;
}

/**
 * The one process that evicts: no second sees more deletes than allowed. Begins without permits, as the process before
 * may just have used up a second's. Times are its stopwatch's, so setting the clock adds none.
 */
export class EmbeddedRateLimiter implements RateLimiter {
  readonly #stopwatch: Stopwatch;
  #none: Bucket;
  readonly #limits = new Map<ClusterName, Limits>();

  constructor(stopwatch: Stopwatch) {
    this.#stopwatch = stopwatch;
    this.#none = this.#noneNow();
  }

  /** Resets all permits when this process takes over from another one. */
  begin(): void {
    this.#none = this.#noneNow();
    this.#limits.clear();
  }

  async take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]> {
    // Buckets are stored in stopwatch time. Turns are stored with their pods, in clock time.
    const aheadMs = now - this.#stopwatch();
    const limits = this.#limitsOf(cluster);
    const { evictionRate = this.#none, releaseRate = this.#none } = limits.given;
    const given = {
      evictionRate: shifted(evictionRate, aheadMs),
      releaseRate: shifted(releaseRate, aheadMs),
    };
    const after = givePermits(given, pods, pace, now);
    const unused = { evictionRate: 0, releaseRate: 0 };
    const turns = pods.map((pod, index): Turn | undefined => {
      const turn = after.turns[index];
      if (turn) return turn;
      const windows = windowsOf(limits, pod, pace);
      const at = now - aheadMs;
      if (windows.every(({ window, perSecond }) => window.hasRoom(perSecond, at))) {
        for (const { window } of windows) window.add(pod.uid, at);
        return undefined;
      }
      for (const { name } of windows) unused[name] += 1;
      const turnAt = Math.max(...windows.map(({ window, perSecond }) => window.nextTurn(perSecond, at)));
      return { turnAt: together(turnAt + aheadMs) };
    });
    limits.given = {
      evictionRate:
        after.given.evictionRate && shifted(after.given.evictionRate, -aheadMs, unused.evictionRate),
      releaseRate: after.given.releaseRate && shifted(after.given.releaseRate, -aheadMs, unused.releaseRate),
    };
    return turns;
  }

  sent(cluster: ClusterName, pod: SentPod, pace: Pace, now: EpochMs, sentBy?: EpochMs): void {
    const at = this.#stopwatch() + (sentBy ?? now) - now;
    for (const { window } of windowsOf(this.#limitsOf(cluster), pod, pace))
      window.move(pod.uid, at, sentBy === undefined);
  }

  #limitsOf(cluster: ClusterName): Limits {
    const { at } = this.#none;
    const limits = this.#limits.get(cluster) ?? {
      given: {},
      evictionRate: new SendWindow(at),
      releaseRate: new SendWindow(at),
    };
    this.#limits.set(cluster, limits);
    return limits;
  }

  #noneNow(): Bucket {
    const at = this.#stopwatch();
    return { permits: 0, at, takenTo: at };
  }
}

function windowsOf({ evictionRate, releaseRate }: Limits, { drains }: Pick<AskingPod, 'drains'>, pace: Pace) {
  return [
    ...(pace.evictionRate === undefined
      ? []
      : [{ name: 'evictionRate', window: evictionRate, perSecond: pace.evictionRate } as const]),
    ...(drains ? [{ name: 'releaseRate', window: releaseRate, perSecond: pace.releaseRate } as const] : []),
  ];
}

const shifted = ({ permits, at, takenTo }: Bucket, ms: number, unused = 0): Bucket => ({
  permits: permits + unused,
  at: at + ms,
  takenTo: takenTo + ms,
});

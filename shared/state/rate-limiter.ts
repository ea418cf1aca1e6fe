import type { ClusterName, PodUid } from '#shared/eviction/identity.ts';
import type { AskingPod, Pace, Turn } from '#shared/eviction/rate.ts';
import { type Bucket, type Given, givePermits } from '#shared/eviction/rate.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { SendWindow, together } from './send-window.ts';

/** A pod with a permit whose delete is sent. */
export interface SentPod extends Pick<AskingPod, 'drains'> {
  readonly uid: PodUid;
}

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

  /**
   * Counts the delete of a pod with a permit from `sentBy`, its latest time; without `sentBy`, from now, because it was
   * answered. Absent: each second may see the deletes of the permits of two, and of a second's burst.
   */
  sent?(cluster: ClusterName, pod: SentPod, pace: Pace, now: EpochMs, sentBy?: EpochMs): void;
}

interface Limits {
  given: Given;
  readonly rate: SendWindow;
  readonly drain: SendWindow;
}

/**
 * Permits in the one process that evicts: no second sees more deletes than the limits allow. It begins without permits,
 * because the process before it may just have used up those of a second. All times are those of its stopwatch, so
 * setting the clock adds no permits.
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
    const { rate = this.#none, drain = this.#none } = limits.given;
    const given = { rate: shifted(rate, aheadMs), drain: shifted(drain, aheadMs) };
    const after = givePermits(given, pods, pace, now);
    const unused = { rate: 0, drain: 0 };
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
      rate: after.given.rate && shifted(after.given.rate, -aheadMs, unused.rate),
      drain: after.given.drain && shifted(after.given.drain, -aheadMs, unused.drain),
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
      ...{ given: {}, rate: new SendWindow(at), drain: new SendWindow(at) },
    };
    this.#limits.set(cluster, limits);
    return limits;
  }

  #noneNow(): Bucket {
    const at = this.#stopwatch();
    return { permits: 0, at, takenTo: at };
  }
}

function windowsOf({ rate, drain }: Limits, { drains }: Pick<AskingPod, 'drains'>, pace: Pace) {
  return [
    ...(pace.rate === undefined ? [] : [{ name: 'rate', window: rate, perSecond: pace.rate } as const]),
    ...(drains ? [{ name: 'drain', window: drain, perSecond: pace.drain } as const] : []),
  ];
}

/** Returns a bucket whose times are shifted by `ms`, and to which `unused` permits return. */
const shifted = ({ permits, at, takenTo }: Bucket, ms: number, unused = 0): Bucket => ({
  permits: permits + unused,
  at: at + ms,
  takenTo: takenTo + ms,
});

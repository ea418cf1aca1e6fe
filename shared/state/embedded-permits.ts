import type { ClusterName } from '#shared/eviction/identity.ts';
import type { AskingPod, Pace, Turn } from '#shared/eviction/rate.ts';
import { type Bucket, type GivenPermits, givePermits } from '#shared/eviction/rate.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Permits, SentPod, WorkloadLimit } from './permits.ts';
import { SendWindow, together } from './send-window.ts';

interface Limits {
  given: GivenPermits;
  readonly evictionRate: SendWindow;
  readonly releaseRate: SendWindow;
}

/**
 * Permits of the one process that evicts: no second sees more deletes than its rates allow, which it counts in memory;
 * those of workloads are stored. Begins without permits, as the process before
 * may just have used up a second's. Times are its stopwatch's, so setting the clock adds none.
 */
export class EmbeddedPermits implements Permits {
  readonly #stopwatch: Stopwatch;
  readonly #stored: Permits;
  #none: Bucket;
  readonly #limits = new Map<ClusterName, Limits>();

  constructor(stopwatch: Stopwatch, stored: Permits) {
    this.#stopwatch = stopwatch;
    this.#stored = stored;
    this.#none = this.#noneNow();
  }

  /** Resets the permits at rates when this process takes over from another one. */
  begin(): void {
    this.#none = this.#noneNow();
  }

  async take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace | WorkloadLimit,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]> {
    if ('workload' in pace) return this.#stored.take(cluster, pods, pace, now);
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

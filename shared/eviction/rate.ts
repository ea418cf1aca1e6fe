import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodUid } from './identity.ts';
import type { EvictionRecord } from './records.ts';

/** How far ahead turns are assigned. A pod without a turn asks again after this time. */
export const TURNS_AHEAD_MS = 60_000;

/** Turns are rounded up to this time, so that a node needs one message for all its turns of one second. */
const TOGETHER_MS = 1_000;

/** Longest time between taking a permit and sending the delete. A permit counts whether its pod is evicted or not. */
export const RATE_PERMIT_LASTS_MS = 1_000;

/**
 * Margin below one pod: without it, a time span could have one pod more than a one-second burst, rounded up. It also
 * absorbs rounding errors in sums of fractions.
 */
const SHORT_OF_A_POD = 1e-6;
const LOST_IN_ADDITION = 1e-9;

/** Pods per second. */
export interface Pace {
  /** For all pods of the cluster; absent: no limit. */
  readonly evictionRate?: number | undefined;
  /** For pods that were held past their deadline. */
  readonly releaseRate: number;
}

export interface AskingPod {
  readonly uid: PodUid;
  /** The pod was held past its deadline. */
  readonly drains: boolean;
  /** The pod's turn has come. A pod that never had a turn gets no permit while others wait for their turns. */
  readonly inTurn: boolean;
}

/** When a pod that got no permit asks again. A turn is a hint: the permit is taken at the delete. */
export type Turn = Pick<EvictionRecord, 'turnAt' | 'notBefore'>;

export interface Bucket {
  readonly permits: number;
  /** When that many permits remained. */
  readonly at: EpochMs;
  /** End of the assigned turns. */
  readonly takenTo: EpochMs;
}

/** The state of a cluster's limits; absent: no permit was ever given. */
export interface GivenPermits {
  readonly evictionRate?: Bucket | undefined;
  readonly releaseRate?: Bucket | undefined;
}

/**
 * In any time span, pods get no more permits than the limit allows in it plus one second, rounded up. Returns
 * `undefined` for each permitted pod, in order, or its turn. `given`: the state before.
 */
export function givePermits(
  given: GivenPermits,
  pods: readonly AskingPod[],
  { evictionRate, releaseRate }: Pace,
  now: EpochMs,
): { readonly given: GivenPermits; readonly turns: readonly (Turn | undefined)[] } {
  const buckets = {
    evictionRate:
      evictionRate === undefined ? undefined : new OpenBucket(given.evictionRate, evictionRate, now),
    releaseRate: new OpenBucket(given.releaseRate, releaseRate, now),
  };
  const turns = pods.map(({ drains, inTurn }): Turn | undefined => {
    const limits = [buckets.evictionRate, drains ? buckets.releaseRate : undefined].filter(
      (each) => each !== undefined,
    );
    if (limits.every((limit) => limit.hasPermit(inTurn))) {
      for (const limit of limits) limit.take();
      return undefined;
    }
    const moment = Math.max(...limits.map((limit) => limit.nextTurn()));
    const turnAt = together(moment);
    if (moment > now + TURNS_AHEAD_MS) return { notBefore: together(now + TURNS_AHEAD_MS) };
    for (const limit of limits) limit.giveTurn(moment);
    return { turnAt };
  });
  const drained = pods.some(({ drains }) => drains);
  return {
    given: {
      evictionRate: buckets.evictionRate?.closed() ?? given.evictionRate,
      releaseRate: drained ? buckets.releaseRate.closed() : given.releaseRate,
    },
    turns,
  };
}

const together = (moment: EpochMs): EpochMs => Math.ceil(moment / TOGETHER_MS) * TOGETHER_MS;

class OpenBucket {
  readonly #perMs: number;
  readonly #now: EpochMs;
  /** Never decreases, so a clock that is set back and forth fills the bucket only once. */
  readonly #at: EpochMs;
  #permits: number;
  #takenTo: EpochMs;

  constructor(bucket: Bucket | undefined, perSecond: number, now: EpochMs) {
    this.#perMs = perSecond / 1000;
    this.#now = now;
    const most = perSecond + 1 - SHORT_OF_A_POD;
    // A clock was far ahead when the bucket was stored, so the permits given since then are unknown.
    const isAhead = bucket !== undefined && bucket.at > now + TURNS_AHEAD_MS;
    const { permits, at, takenTo } = isAhead
      ? { permits: 0, at: now, takenTo: now }
      : (bucket ?? { permits: most, at: now, takenTo: now });
    this.#at = Math.max(at, now);
    this.#permits = Math.min(most, permits + (this.#at - at) * this.#perMs);
    // Turns far ahead were assigned at a lower rate, or by a clock that was ahead.
    const isFar = takenTo > now + TURNS_AHEAD_MS + 1 / this.#perMs;
    this.#takenTo = isFar ? now + TURNS_AHEAD_MS : takenTo;
  }

  hasPermit(inTurn: boolean): boolean {
    return this.#permits >= 1 - LOST_IN_ADDITION && (inTurn || this.#takenTo <= this.#now);
  }

  take(): void {
    this.#permits -= 1;
  }

  /** Returns when a permit is available for a pod that is behind all waiting pods. */
  nextTurn(): EpochMs {
    const waitMs = Math.max(0, 1 - this.#permits) / this.#perMs;
    return Math.max(this.#takenTo, this.#now + waitMs);
  }

  giveTurn(moment: EpochMs): void {
    this.#takenTo = moment + 1 / this.#perMs;
  }

  closed(): Bucket {
    return { permits: this.#permits, at: this.#at, takenTo: this.#takenTo };
  }
}

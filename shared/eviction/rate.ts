import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { EvictionRecord } from './records.ts';

/** Turns are given out for so long ahead; who gets none asks again after that time. */
export const TURNS_AHEAD_MS = 60_000;

/** Turns of one second come together, so that a node with many has one message for them. */
const TOGETHER_MS = 1_000;

/** Longest time between taking a permit and sending the delete. A permit counts whether its pod is evicted or not. */
export const RATE_PERMIT_LASTS_MS = 2_000;

/**
 * What keeps one pod more than a second's burst, rounded up, from going within any span of time. It also absorbs what additions of
 * fractions lose.
 */
const SHORT_OF_A_POD = 1e-6;
const LOST_IN_ADDITION = 1e-9;

/** Pods per second. */
export interface Pace {
  /** Of all pods of the cluster; absent: no limit. */
  readonly rate?: number | undefined;
  /** Of pods that were held past their deadline. */
  readonly drain: number;
}

/** A pod that asks for a permit. */
export interface AskingPod {
  /** It was held. */
  readonly drains: boolean;
  /** Its turn has come; who has had none yet lets those go first that wait for theirs. */
  readonly inTurn: boolean;
}

/** When a pod comes that got no permit: a hint, for the permit is taken at the delete. */
export type Turn = Pick<EvictionRecord, 'turnAt' | 'notBefore'>;

/** What was given out under one limit. */
export interface Bucket {
  /** Permits that are left. */
  readonly permits: number;
  /** When so many were. */
  readonly at: EpochMs;
  /** End of the turns given out. */
  readonly takenTo: EpochMs;
}

/** What was given out in one cluster; absent: never anything. */
export interface Given {
  readonly rate?: Bucket | undefined;
  readonly drain?: Bucket | undefined;
}

/**
 * Gives permits to pods: in any span of time no more than the limit allows in that span and one second, rounded up to whole pods. For
 * each pod, in order: `undefined`, where it has one, or its turn. `given`: what was given out by then.
 */
export function givePermits(
  given: Given,
  pods: readonly AskingPod[],
  { rate, drain }: Pace,
  now: EpochMs,
): { readonly given: Given; readonly turns: readonly (Turn | undefined)[] } {
  const buckets = {
    rate: rate === undefined ? undefined : new OpenBucket(given.rate, rate, now),
    drain: new OpenBucket(given.drain, drain, now),
  };
  const turns = pods.map(({ drains, inTurn }): Turn | undefined => {
    const limits = [buckets.rate, drains ? buckets.drain : undefined].filter((each) => each !== undefined);
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
      rate: buckets.rate?.closed() ?? given.rate,
      drain: drained ? buckets.drain.closed() : given.drain,
    },
    turns,
  };
}

/** The full second at which something comes that is to come then or later. */
const together = (moment: EpochMs): EpochMs => Math.ceil(moment / TOGETHER_MS) * TOGETHER_MS;

/** A limit while permits are taken under it. */
class OpenBucket {
  readonly #perMs: number;
  readonly #now: EpochMs;
  /** Never decreases: a clock that is set back and forth fills the bucket once. */
  readonly #at: EpochMs;
  #permits: number;
  #takenTo: EpochMs;

  constructor(bucket: Bucket | undefined, perSecond: number, now: EpochMs) {
    this.#perMs = perSecond / 1000;
    this.#now = now;
    const most = perSecond + 1 - SHORT_OF_A_POD;
    // A clock was far ahead when this was stored, so it is unknown what was given out since.
    const isAhead = bucket !== undefined && bucket.at > now + TURNS_AHEAD_MS;
    const { permits, at, takenTo } = isAhead
      ? { permits: 0, at: now, takenTo: now }
      : (bucket ?? { permits: most, at: now, takenTo: now });
    this.#at = Math.max(at, now);
    this.#permits = Math.min(most, permits + (this.#at - at) * this.#perMs);
    // Turns far ahead were given out at a lower rate, or by a clock that was ahead.
    const isFar = takenTo > now + TURNS_AHEAD_MS + 1 / this.#perMs;
    this.#takenTo = isFar ? now + TURNS_AHEAD_MS : takenTo;
  }

  hasPermit(inTurn: boolean): boolean {
    return this.#permits >= 1 - LOST_IN_ADDITION && (inTurn || this.#takenTo <= this.#now);
  }

  take(): void {
    this.#permits -= 1;
  }

  /** When there is a permit for the pod that comes after all that wait. */
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

import type { EpochMs } from './identity.ts';
import type { EvictionRecord } from './records.ts';

/** Turns are given out for so long ahead; who gets none asks again after that time. */
export const TURNS_AHEAD_MS = 60_000;

/** Turns of one second come together, so that a node with many has one message for them. */
const TOGETHER_MS = 1_000;

/** A turn lasts until a first try that failed has come again. */
const TURN_LASTS_MS = 6_000;

/**
 * Whether a record has a turn that counts at `now`. One that nobody took in its time has passed, and another is asked for:
 * turns that pods missed together, waiting for a node to be understood or for a server, would let them all go at once.
 */
export const hasTurn = ({ turnAt }: Pick<EvictionRecord, 'turnAt'>, now: EpochMs): boolean =>
  // Equivalent mutant (ConditionalExpression): A moment less `undefined` is no number, and no number is not
  // as small as any: the check is for the type checker.
  turnAt !== undefined && now - turnAt <= TURN_LASTS_MS;

/** Turns that are asked for together, and the time that they take. */
export interface Claim {
  readonly pods: number;
  /** Whole. */
  readonly takesMs: number;
}

/** What of `pods` may have turns at once, at `rate` pods per second: no more than are given out ahead, and one at least. */
export function claimOf(pods: number, rate: number): Claim {
  const some = Math.min(pods, Math.max(1, Math.ceil((rate * TURNS_AHEAD_MS) / 1000)));
  return { pods: some, takesMs: Math.ceil((some * 1000) / rate) };
}

/**
 * The moments of the turns of a claim whose time begins at `from`, soonest first, none before `now`. Where the times of claims do
 * not overlap and begin when they are asked for or later, of all their turns no more fall into any span of time than `rate` allows
 * in that span and one second, rounded up.
 */
export const turnsOf = ({ pods, takesMs }: Claim, from: EpochMs, now: EpochMs): readonly EpochMs[] =>
  Array.from({ length: pods }, (_, index) => {
    const moment = from + Math.floor((index * takesMs) / pods);
    return Math.max(now, moment - (moment % TOGETHER_MS));
  });

/** When a pod asks again that got no turn: at a full second, together with the others of its node. */
export const askAgainAt = (now: EpochMs): EpochMs =>
  Math.ceil((now + TURNS_AHEAD_MS) / TOGETHER_MS) * TOGETHER_MS;

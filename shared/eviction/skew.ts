import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** By how much another clock is ahead of ours: at the least, and at the most. Negative: it is behind. */
export interface SkewRange {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** Clocks usually differ by up to this, and responses don't show the difference more exactly. */
export const IGNORED_MS = 2_000;
/** Beyond this, one of the two clocks is wrong, and it is unknown which. */
export const MAX_SKEW_MS = 30_000;

/** The earliest time that it may be now, by all clocks. Differences of up to two seconds are ignored. */
export const earliestNow = (now: EpochMs, skews: readonly SkewRange[]): EpochMs =>
  Math.floor(now + Math.min(0, ...skews.map(({ leastMs }) => counted(leastMs))));

/** Returns the latest time that it may be now, as {@link earliestNow} does for the earliest. */
export const latestNow = (now: EpochMs, skews: readonly SkewRange[]): EpochMs =>
  Math.ceil(now + Math.max(0, ...skews.map(({ mostMs }) => counted(mostMs))));

/**
 * The latest time that an observation may have. If all other clocks certainly differ by more than 30 s, only the API
 * server's counts: ours may be ahead by days.
 */
export function observedNow(now: EpochMs, skews: readonly SkewRange[]): EpochMs {
  const [last] = skews;
  return last && areApart(skews) ? Math.ceil(now + last.mostMs) : latestNow(now, skews);
}

const counted = (skewMs: number): number => (Math.abs(skewMs) <= IGNORED_MS ? 0 : skewMs);

/** Reports whether the clock certainly differs by more than 30 s. A slow response leaves this open. */
const isApart = ({ leastMs, mostMs }: SkewRange): boolean => leastMs > MAX_SKEW_MS || mostMs < -MAX_SKEW_MS;

/** Each other clock certainly differs by more than 30 s, so ours is not to be trusted; false without another clock. */
export const areApart = (skews: readonly SkewRange[]): boolean => skews.length > 0 && skews.every(isApart);

/** The first clock that certainly differs from `whose` by more than 30 s, and by how much; `undefined`: none. */
export function apartText(skews: readonly SkewRange[], whose: string): string | undefined {
  const apart = skews.find(isApart);
  if (!apart) return undefined;
  const isAhead = apart.leastMs > 0;
  const leastMs = isAhead ? apart.leastMs : -apart.mostMs;
  return `the API server's clock is at least ${durationText(leastMs)} ${isAhead ? 'ahead of' : 'behind'} the clock of ${whose}`;
}

/** Prefix of the reason of evictions held for differing clocks. An error with it is a hold, not a failure. */
const HELD = 'evictions are held because clocks differ: ';

export const heldText = (skews: readonly SkewRange[]): string =>
  `${HELD}${apartText(skews, 'the evicting process') ?? 'by an unknown amount'}`;

/** Reports whether the error of a retry says that evictions are held because clocks differ. */
export const isHeldText = (error: string): boolean => error.startsWith(HELD);

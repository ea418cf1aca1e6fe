import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** By how much another clock is ahead of ours: at the least, and at the most. Negative: it is behind. */
export interface SkewRange {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** Clocks usually differ by up to this, and responses don't show the difference more exactly. */
const IGNORED_MS = 2_000;
/** Beyond this, one of the two clocks is wrong, and it is unknown which. */
export const MAX_SKEW_MS = 30_000;

/** The earliest that it may be now, by our clock and the others; differences of up to two seconds are ignored. */
export const earliestNow = (now: EpochMs, skews: readonly SkewRange[]): EpochMs =>
  Math.floor(now + Math.min(0, ...skews.map(({ leastMs }) => counted(leastMs))));

/** The latest that it may be now, likewise. */
export const latestNow = (now: EpochMs, skews: readonly SkewRange[]): EpochMs =>
  Math.ceil(now + Math.max(0, ...skews.map(({ mostMs }) => counted(mostMs))));

/**
 * The time at which something was observed: the latest that it may be. By the API server's clock alone where each clock that answered is
 * more than 30 s off: ours may be ahead by days.
 */
export function observedNow(now: EpochMs, skews: readonly SkewRange[]): EpochMs {
  const [last] = skews;
  return last && areApart(skews) ? Math.ceil(now + last.mostMs) : latestNow(now, skews);
}

const counted = (skewMs: number): number => (Math.abs(skewMs) <= IGNORED_MS ? 0 : skewMs);

/** Reports whether the clock differs by more than 30 s for certain: a slow answer leaves open that it does not. */
const isApart = ({ leastMs, mostMs }: SkewRange): boolean => leastMs > MAX_SKEW_MS || mostMs < -MAX_SKEW_MS;

/** Reports whether each of the other clocks differs by more than 30 s for certain, so that ours is not to be trusted; none is known: no. */
export const areApart = (skews: readonly SkewRange[]): boolean => skews.length > 0 && skews.every(isApart);

/** Says which clock differs from `whose` by more than 30 s, and by how much at the least; `undefined`: none does for certain. */
export function apartText(skews: readonly SkewRange[], whose: string): string | undefined {
  const apart = skews.find(isApart);
  if (!apart) return undefined;
  const isAhead = apart.leastMs > 0;
  const seconds = Math.floor((isAhead ? apart.leastMs : -apart.mostMs) / 1000);
  return `the API server's clock is at least ${seconds} s ${isAhead ? 'ahead of' : 'behind'} the clock of ${whose}`;
}

/** Prefix of the reason of evictions held for differing clocks. An error with it is a hold, not a failure. */
const HELD = 'evictions are held because clocks differ: ';

/** Says why evictions are held while clocks are apart. */
export const heldText = (skews: readonly SkewRange[]): string =>
  `${HELD}${apartText(skews, 'the evicting process') ?? 'nobody knows by how much'}`;

/** Reports whether the error of a retry says that evictions are held because clocks differ. */
export const isHeldText = (error: string): boolean => error.startsWith(HELD);

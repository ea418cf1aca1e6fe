import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

/** Formats a time for people who ask at `now`: "2026-11-22T08:00:00Z (in 4m10s)". */
export function momentText(at: EpochMs, now: EpochMs): string {
  const distance = durationText(Math.abs(at - now));
  const apart = Math.abs(at - now) < 1000 ? 'now' : at > now ? `in ${distance}` : `${distance} ago`;
  return `${timeText(at)} (${apart})`;
}

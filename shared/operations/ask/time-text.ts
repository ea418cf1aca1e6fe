import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Formats a time for people who ask at `now`: "2026-11-22T08:00:00Z (in 4 m)". */
export function momentText(at: EpochMs, now: EpochMs): string {
  const distance = distanceText(Math.abs(at - now));
  const apart = distance === '' ? 'now' : at > now ? `in ${distance}` : `${distance} ago`;
  return `${timeText(at)} (${apart})`;
}

/** Returns a rounded duration, or "" for less than a second. */
function distanceText(ms: number): string {
  if (ms >= 2 * DAY_MS) return `${Math.round(ms / DAY_MS)} d`;
  if (ms >= 2 * HOUR_MS) return `${Math.round(ms / HOUR_MS)} h`;
  if (ms >= 3 * MINUTE_MS) return `${Math.round(ms / MINUTE_MS)} m`;
  return ms < SECOND_MS ? '' : `${Math.round(ms / SECOND_MS)} s`;
}

import * as z from 'zod';
import { DURATION_FORM, durationMs, durationText } from './duration.ts';

const DURATION = 'must be a duration like 90s, 15m, 4h or 4d, and 10000d at most';
/** Maximum duration. A longer one is practically indefinite, and up to this the stored value is exact. */
export const MAX_MS = 10_000 * 24 * 3_600_000;

/** A duration as people write it, decoded to milliseconds. */
export const duration = z.codec(
  z.string(DURATION).regex(DURATION_FORM, DURATION),
  z.number(DURATION).positive(DURATION).max(MAX_MS, DURATION),
  { decode: (written) => durationMs(written) ?? 0, encode: durationText },
);

const MOMENT = 'must be a time like 2026-12-01T08:00:00Z';
/** The last time with a year of four digits. A time that is written so may exceed it because of its zone. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** A time in RFC 3339, decoded to milliseconds since 1970. */
export const moment = z.codec(
  z.iso.datetime({ offset: true, error: MOMENT }),
  z.int(MOMENT).min(0, 'must be a time from 1970 on'),
  { decode: (written) => Date.parse(written), encode: momentText },
);

/** Returns the text of a time, as {@link moment} reads it. */
export function momentText(at: number): string {
  return new Date(Math.min(at, LAST_MS)).toISOString();
}

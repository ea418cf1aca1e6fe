import * as z from 'zod';
import { DURATION_FORM, durationMs, durationText } from './duration.ts';

const DURATION = 'must be a duration like 90s, 15m, 4h or 4d, and 10000d at most';
/** Beyond, it is for ever; and what is stored of it stays exact. */
const MAX_MS = 10_000 * 24 * 3_600_000;

/** A duration as people write it, and its milliseconds. */
export const duration = z.codec(
  z.string(DURATION).regex(DURATION_FORM, DURATION),
  z.number(DURATION).positive(DURATION).max(MAX_MS, DURATION),
  { decode: (written) => durationMs(written) ?? 0, encode: durationText },
);

const MOMENT = 'must be a time like 2026-12-01T08:00:00Z';
/** The last one that has a year of four digits; a zone may put one that is written so beyond it. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** A moment in RFC 3339, and its milliseconds since 1970. */
export const moment = z.codec(
  z.iso.datetime({ offset: true, error: MOMENT }),
  z.int(MOMENT).min(0, 'must be a time from 1970 on'),
  { decode: (written) => Date.parse(written), encode: momentText },
);

/** The text of a moment, as {@link moment} reads it. */
export function momentText(at: number): string {
  return new Date(Math.min(at, LAST_MS)).toISOString();
}

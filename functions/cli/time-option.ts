import { InvalidArgumentError } from 'commander';
import { DURATION_FORM, durationMs } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A time as the user gave it: a duration before now, or a date. */
export type MomentGiven = { readonly agoMs: number } | { readonly at: EpochMs };

/** Reads a time from an option. Throws `InvalidArgumentError`. */
export function parseMoment(text: string): MomentGiven {
  if (DURATION_FORM.test(text)) return { agoMs: durationMs(text) ?? 0 };
  // JavaScript reads a plain number as a year or a month.
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) {
    throw new InvalidArgumentError(
      'Specify a duration before now, for example 30m, 2h, or 7d, or a date, for example 2026-11-22T05:00:00Z.',
    );
  }
  return { at };
}

export const momentOf = (given: MomentGiven, now: EpochMs): EpochMs =>
  'at' in given ? given.at : now - given.agoMs;

import { InvalidArgumentError } from 'commander';
import { DURATION_FORM, durationMs } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A moment as it was given: so long ago, or as a date. */
export type MomentGiven = { readonly agoMs: number } | { readonly at: EpochMs };

/** Reads a moment of an option. Throws `InvalidArgumentError`. */
export function parseMoment(text: string): MomentGiven {
  if (DURATION_FORM.test(text)) return { agoMs: durationMs(text) ?? 0 };
  // A number alone is a year, and a month, to JavaScript.
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

/*
 * Numbers in words, as pages state them.
 */

/**
 * A sentence, and the values of its numbers. `{}` stands for a number with its unit or noun, such as `four days`.
 * Durations are in ms, sizes in bytes, and everything else is a count.
 */
export type Stated = readonly [sentence: string, ...values: readonly number[]];

/** Sentences by page. Numbers without a constant, such as figures of Kubernetes, are not listed. */
export type Pages = Readonly<Record<string, readonly Stated[]>>;

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const MIB = 1024 * 1024;

/** Returns values by word, from one on. */
const counted = (words: string): Readonly<Record<string, number>> =>
  Object.fromEntries(words.split(' ').map((word, index) => [word, index + 1]));

const CARDINALS = { a: 1, an: 1, ...counted('one two three four five six seven eight nine ten'), thirty: 30 };
const ORDINALS = counted('first second third fourth fifth sixth seventh eighth ninth tenth');
const WORDS: Readonly<Record<string, number>> = { ...ORDINALS, ...CARDINALS };

const MEASURES = {
  ms: 1,
  s: SECOND_MS,
  second: SECOND_MS,
  min: MINUTE_MS,
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
  MB: 1_000_000,
  KiB: 1024,
  MiB: MIB,
  '%': 1,
};
const UNITS: Readonly<Record<string, number>> = { ...MEASURES, hundred: 100 };

const anyOf = (words: readonly string[]): string => words.toSorted().reverse().join('|');

const DIGITS = String.raw`\d(?:[\d,.]*\d)?`;
const NUMBER = String.raw`((?:half |a quarter of )?(?:${anyOf(Object.keys(WORDS))}|${DIGITS})(?: and a half)?(?:[\s-]*(?:${anyOf(Object.keys(UNITS))})s?(?!\w))?)`;

/** A duration, a size, or a percentage in a text. */
export const MEASURE = new RegExp(
  String.raw`(?<![\w.])(?:${anyOf(Object.keys(CARDINALS))}|${DIGITS})[\s-]+(?:${anyOf(Object.keys(MEASURES))})s?(?!\w)`,
  'gi',
);

/** Returns the pattern of a sentence, with a group for each number. */
export const patternOf = (sentence: string): RegExp =>
  new RegExp(
    sentence
      .split('{}')
      .map((text) => RegExp.escape(text).replaceAll('\\x20', String.raw`\s+`))
      .join(NUMBER),
    'i',
  );

/** Returns the value of words such as `half an hour`, `30 s`, `5,000`, and `tenth`. */
export function numberOf(words: string): number {
  const [, share = '', digits = '', half = '', unit = ''] =
    /^(half |a quarter of )?([\d,.]+|[a-z]+)( and a half)?[\s-]*(\D*)$/i.exec(words.replace(/\s+/g, ' ')) ??
    [];
  const count = (WORDS[digits.toLowerCase()] ?? Number(digits.replaceAll(',', ''))) + (half ? 0.5 : 0);
  const part = share === '' ? 1 : share.startsWith('half') ? 0.5 : 0.25;
  return part * count * (unit === '' ? 1 : (UNITS[unit] ?? UNITS[unit.replace(/s$/, '')] ?? Number.NaN));
}

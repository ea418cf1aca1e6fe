const UNITS = [
  { letter: 'd', ms: 86_400_000 },
  { letter: 'h', ms: 3_600_000 },
  { letter: 'm', ms: 60_000 },
  { letter: 's', ms: 1000 },
] as const;

/** Days, hours, minutes and seconds, as `4d`, `90s` or `1h30m`. */
export const DURATION_FORM = /^(?=.)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/;

/** Returns the milliseconds of a written duration; `undefined`: the text isn't of the {@link DURATION_FORM}. */
export function durationMs(text: string): number | undefined {
  const found = DURATION_FORM.exec(text);
  if (!found) return undefined;
  return UNITS.reduce((sum, { ms }, index) => sum + Number(found[index + 1] ?? 0) * ms, 0);
}

/**
 * Returns the shortest such text for a duration, as every surface shows it: `4m10s`, and below a second `40ms`. Parts
 * below a second of longer ones are left out, and a negative duration is `0s`.
 */
export function durationText(ms: number): string {
  if (ms >= 1 && ms < 1000) return `${Math.floor(ms)}ms`;
  let left = Math.max(0, ms);
  let text = '';
  for (const unit of UNITS) {
    const count = Math.floor(left / unit.ms);
    if (count > 0) text += `${count}${unit.letter}`;
    left -= count * unit.ms;
  }
  return text || '0s';
}

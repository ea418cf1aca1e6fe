/** A number as people read it: whole from 100 on, else three digits. */
export function written(value: number): string {
  const rounded = value >= 100 ? Math.round(value) : Number(value.toPrecision(2));
  return rounded.toLocaleString('en-US', { maximumFractionDigits: 4 });
}

export const dollars = (value: number): string =>
  `$${value.toLocaleString('en-US', { maximumFractionDigits: value >= 100 ? 0 : 2, minimumFractionDigits: value >= 100 ? 0 : 2 })}`;

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** A span of time in its largest unit. */
export function span(seconds: number): string {
  const [unit, of] = UNITS.find(([, length]) => seconds >= length * 1.5) ?? ['second', 1];
  const count = written(Number((seconds / of).toPrecision(2)));
  return `${count} ${unit}${count === '1' ? '' : 's'}`;
}

/** Formats of times and durations on the page. Durations are in milliseconds, times in epoch milliseconds. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const clockTime = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const dayAndTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/**
 * Returns a countdown: `0:07`, `12:30`, `3:00:00`, and from two days on `4 d 2 h`. A time in the past returns
 * `0:00`.
 */
export function countdownText(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / SECOND_MS));
  if (seconds >= (2 * DAY_MS) / SECOND_MS) return spanText(ms);
  const two = (part: number) => String(part).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const rest = `${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${two(minutes % 60)}:${rest}` : `${minutes}:${rest}`;
}

/** Returns a duration in its two largest units: `40 ms`, `7 s`, `12 min 30 s`, `4 d 2 h`. */
export function spanText(ms: number): string {
  const span = Math.max(0, ms);
  if (span < SECOND_MS) return `${Math.round(span)} ms`;
  const units: readonly (readonly [number, string])[] = [
    [DAY_MS, 'd'],
    [HOUR_MS, 'h'],
    [MINUTE_MS, 'min'],
    [SECOND_MS, 's'],
  ];
  const first = units.findIndex(([size]) => span >= size);
  const [size, name] = units[first] ?? [SECOND_MS, 's'];
  const whole = Math.floor(span / size);
  const [smaller, smallerName] = units[first + 1] ?? [size, name];
  const rest = Math.floor((span - whole * size) / smaller);
  return rest > 0 && smaller !== size ? `${whole} ${name} ${rest} ${smallerName}` : `${whole} ${name}`;
}

/** Returns a duration in its largest unit alone. */
export const roughText = (ms: number): string => spanText(ms).split(' ').slice(0, 2).join(' ');

/** Returns `14:03:20` if the time is less than half a day from `now`, otherwise with its day. */
export const momentText = (at: number, now: number): string =>
  (Math.abs(at - now) < DAY_MS / 2 ? clockTime : dayAndTime).format(at);

/** Returns an ISO time, for programs and tooltips. */
export const isoText = (at: number): string => new Date(at).toISOString();

/** `1 pod`, `2 pods`, `10,000 pods`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

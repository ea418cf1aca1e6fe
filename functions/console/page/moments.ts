/** Formats of times on the page, in epoch milliseconds. */

export { durationText as spanText } from '#shared/time/duration.ts';

const HALF_DAY_MS = 12 * 3_600_000;

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

/** Returns `14:03:20` if the time is less than half a day from `now`, otherwise with its day. */
export const momentText = (at: number, now: number): string =>
  (Math.abs(at - now) < HALF_DAY_MS ? clockTime : dayAndTime).format(at);

/** Returns an ISO time, for programs and tooltips. */
export const isoText = (at: number): string => new Date(at).toISOString();

/** `1 pod`, `2 pods`, `10,000 pods`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

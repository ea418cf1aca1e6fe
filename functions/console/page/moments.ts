import { signal } from '@preact/signals';
import { timeText } from '#shared/time/time-text.ts';

/** The zone of all times on the page. UTC is that of commands and logs. */
export const zone = signal<'UTC' | 'local'>('UTC');

const MINUTE_MS = 60_000;
const HALF_DAY_MS = 12 * 60 * MINUTE_MS;

/** Returns `14:03:20Z`, or `14:03:20+01` in local time, and with its date unless it is less than half a day from `now`. */
export function momentText(at: number, now: number): string {
  const minutes = zone.value === 'local' ? -new Date(at).getTimezoneOffset() : 0;
  const apart = timeText(Math.abs(minutes) * MINUTE_MS)
    .slice(11, 16)
    .replace(':00', '');
  const offset = minutes === 0 ? 'Z' : `${minutes < 0 ? '-' : '+'}${apart}`;
  const isNear = Math.abs(at - now) < HALF_DAY_MS;
  const text = timeText(at + minutes * MINUTE_MS).slice(isNear ? 11 : 0, -1);
  return `${text.replace('T', ' ')}${offset}`;
}

/** `1 pod`, `2 pods`, `10,000 pods`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

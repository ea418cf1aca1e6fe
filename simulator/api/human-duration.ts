const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Returns a duration with two or three significant digits, as kubectl shows ages. Upstream: `duration.HumanDuration`. */
export function humanDuration(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.max(0, Math.trunc(ms / SECOND_MS))}s`;
  if (ms < 10 * MINUTE_MS) return whole(ms, MINUTE_MS, 'm') + rest(ms, MINUTE_MS, SECOND_MS, 's');
  if (ms < 3 * HOUR_MS) return whole(ms, MINUTE_MS, 'm');
  if (ms < 8 * HOUR_MS) return whole(ms, HOUR_MS, 'h') + rest(ms, HOUR_MS, MINUTE_MS, 'm');
  if (ms < 2 * DAY_MS) return whole(ms, HOUR_MS, 'h');
  if (ms < 8 * DAY_MS) return whole(ms, DAY_MS, 'd') + rest(ms, DAY_MS, HOUR_MS, 'h');
  return whole(ms, DAY_MS, 'd');
}

const whole = (ms: number, unitMs: number, unit: string) => `${Math.trunc(ms / unitMs)}${unit}`;

function rest(ms: number, unitMs: number, smallerMs: number, smaller: string): string {
  const count = Math.trunc((ms % unitMs) / smallerMs);
  return count === 0 ? '' : `${count}${smaller}`;
}

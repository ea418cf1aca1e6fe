import { setTimeout as delay } from 'node:timers/promises';

/** The interval of tries grows with the time waited: tries of the API server and of commands cost it processor time. */
const POLL_INTERVAL_MS = { min: 10, max: 100, part: 1 / 50 };
/** A test fails when a result never arrives, but not when a busy machine is late. */
const PATIENCE_MS = 3 * 60_000;

/**
 * Waits until `find` returns something other than `undefined` and `false`, and returns it. Rejects after `withinMs`
 * with a sentence that begins with `what`.
 */
export async function until<T>(
  what: string,
  find: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = PATIENCE_MS,
): Promise<T> {
  const beganAt = Date.now();
  while (true) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    const waitedMs = Date.now() - beganAt;
    if (waitedMs >= withinMs) throw new Error(`${what}: not within ${withinMs / 1000} s.`);
    await delay(
      Math.min(POLL_INTERVAL_MS.max, Math.max(POLL_INTERVAL_MS.min, waitedMs * POLL_INTERVAL_MS.part)),
    );
  }
}

import { setTimeout as delay } from 'node:timers/promises';

const POLL_INTERVAL_MS = 10;
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
  const deadlineAt = Date.now() + withinMs;
  while (true) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    if (Date.now() >= deadlineAt) throw new Error(`${what}: not within ${withinMs / 1000} s.`);
    await delay(POLL_INTERVAL_MS);
  }
}

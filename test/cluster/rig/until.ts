import { setTimeout as delay } from 'node:timers/promises';

const POLL_INTERVAL_MS = 10;

/**
 * Waits until `find` finds something (neither `undefined` nor `false`) and returns it. Rejects after `withinMs`
 * with a sentence that begins with `what`.
 */
export async function until<T>(
  what: string,
  withinMs: number,
  find: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadlineAt = Date.now() + withinMs;
  while (true) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    if (Date.now() >= deadlineAt) throw new Error(`${what}: not within ${withinMs / 1000} s.`);
    await delay(POLL_INTERVAL_MS);
  }
}

import { setTimeout as delay } from 'node:timers/promises';

const DEADLINE_MS = 20_000;
const POLL_INTERVAL_MS = 50;

/** Waits until a check of an eventually consistent result passes; rejects with its last failure at the deadline. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  const deadlineAt = Date.now() + DEADLINE_MS;
  while (true) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() >= deadlineAt) throw error;
    }
    await delay(POLL_INTERVAL_MS);
  }
}

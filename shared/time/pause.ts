import { setTimeout as delay } from 'node:timers/promises';

/** Waits `ms`, or until `signal` aborts. Never rejects: the caller checks the signal after an early return. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
}

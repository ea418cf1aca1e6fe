import { setTimeout as delay } from 'node:timers/promises';

/** Waits `ms`, or until `signal` aborts. Never rejects: whoever was woken early asks the signal. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
}

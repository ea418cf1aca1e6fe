import { setImmediate as nextTurn } from 'node:timers/promises';

/** Resolves as soon as the condition holds. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await nextTurn();
}

/** Waits until everything in transit between client and server has arrived. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await nextTurn();
}

import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long received data may be processed before other work, such as another cluster's connections, gets its turn. */
export const SLICE_MS = 10;

let begunAt = 0;
let turn: Promise<void> | undefined;

/** Lets the rest of the process run if paced work has blocked it for some milliseconds. Callers continue in turns. */
export async function paced(): Promise<void> {
  while (performance.now() - begunAt >= SLICE_MS) {
    turn ??= nextTurn().then(() => {
      begunAt = performance.now();
      turn = undefined;
    });
    await turn;
  }
}

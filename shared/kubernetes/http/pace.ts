import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long what came in may be read before others, such as another cluster's connections, get their turn. */
const SLICE_MS = 10;

let begunAt = 0;
let turn: Promise<void> | undefined;

/**
 * To be awaited between small pieces of work: lets the rest of the process get on when all work so paced has kept it for
 * some milliseconds. Whoever waits goes on by turns, one piece each.
 */
export async function paced(): Promise<void> {
  while (performance.now() - begunAt >= SLICE_MS) {
    turn ??= nextTurn().then(() => {
      begunAt = performance.now();
      turn = undefined;
    });
    await turn;
  }
}

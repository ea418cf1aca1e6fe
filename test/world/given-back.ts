import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Turns of the event loop within which closed sockets and ended timers disappear. */
const TURNS = 1_000;

/** What the process holds: timers, sockets, and listeners on `process` and on these signals; one name for each. */
const held = (signals: readonly AbortSignal[]): readonly string[] => [
  ...process.getActiveResourcesInfo(),
  ...process
    .eventNames()
    .flatMap((name) => process.listeners(name as NodeJS.Signals).map(() => `process ${String(name)}`)),
  ...signals.flatMap((signal) => getEventListeners(signal, 'abort').map(() => 'abort')),
];

/** Returns the names that occur more often now than before, as often as they were added. */
function added(before: readonly string[], now: readonly string[]): readonly string[] {
  const left = [...before];
  return now.filter((name) => {
    const index = left.indexOf(name);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

/** Reports whether the process's own output waits for the reader of a full pipe: the process holds that write. */
const isPrinting = (): boolean => process.stdout.writableLength > 0;

/** Asserts that the process holds no more after `work` than before: a timer that is not `unref`ed, a socket, or a listener. */
export async function givesBack(
  work: () => Promise<unknown>,
  signals: readonly AbortSignal[] = [],
): Promise<void> {
  while (isPrinting()) await nextTurn();
  const before = held(signals);
  await work();
  for (let turn = 0; turn < TURNS && added(before, held(signals)).length > 0; ) {
    await nextTurn();
    if (!isPrinting()) turn += 1;
  }
  assert.deepEqual(added(before, held(signals)), [], 'was given back');
}

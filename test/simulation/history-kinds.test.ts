import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HISTORY_KINDS, type HistoryKind, sweepKind } from './history-kinds.ts';

/** The number of histories of each kind. */
const HISTORIES: Readonly<Record<HistoryKind, number>> = { sockets: 24, takeovers: 24 };

const seeds = (count: number): readonly number[] => Array.from({ length: count }, (_, seed) => seed);

describe('histories of other kinds keep the promises:', () => {
  for (const [kind, count] of Object.entries(HISTORIES) as [HistoryKind, number][]) {
    test(kind, async (context) => {
      const { faults, tried } = await sweepKind(kind, seeds(count));
      context.diagnostic(JSON.stringify(tried));
      assert.deepEqual(faults, []);
      for (const [what, times] of Object.entries(tried)) assert.ok(times > 0, `${what} was never tried`);
    });
  }
});

test('replays the same takeover story for a seed', async () => {
  const play = await HISTORY_KINDS.takeovers();
  const [first, second] = [await play(7), await play(7)];
  assert.deepEqual(first, second);
});

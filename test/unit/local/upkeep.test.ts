import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextLoop } from 'node:timers/promises';
import type { Upcoming } from '#functions/local/sqlite-store.ts';
import { startUpkeep } from '#functions/local/upkeep.ts';
import { StoreError } from '#shared/store/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const HOUR_MS = 3_600_000;

test('the hourly upkeep goes on after a purge, or a look at the store, that failed', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const log = recordingLog();
  const done: string[] = [];
  const locked = new StoreError('The database is locked.');
  const store = {
    async purge(now: number) {
      done.push(`purge at ${now}`);
      if (done.length === 1) throw locked;
    },
    async *upcoming(): AsyncIterable<Upcoming> {},
  };
  const timers = {
    async rearm(from: unknown) {
      assert.equal(from, store);
      done.push('rearm');
      if (done.length === 4) throw locked;
    },
  };
  const upkeep = startUpkeep({ store, timers, clock: { now: () => 7 }, log });
  for (let hour = 1; hour <= 3; hour++) {
    context.mock.timers.tick(HOUR_MS);
    await nextLoop();
  }
  await upkeep.stop();
  context.mock.timers.tick(HOUR_MS);
  await nextLoop();
  assert.deepEqual(done, ['purge at 7', 'rearm', 'purge at 7', 'rearm', 'purge at 7', 'rearm']);
  assert.deepEqual(
    log.lines.map(({ event, fields }) => [event, fields['task'], fields['reason']]),
    [
      ['upkeep.failed', 'purge', locked],
      ['upkeep.failed', 'rearm', locked],
    ],
  );
});

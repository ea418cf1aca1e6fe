import assert from 'node:assert/strict';
import { EmbeddedTimers } from '#functions/local/embedded-timers.ts';
import { systemClock } from '#shared/time/clock.ts';
import { eventually } from '#test/contracts/eventually.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { timersContract } from '#test/contracts/timers-contract.ts';
import { recordingSender } from '#test/unit/timers/recording-sender.ts';

timersContract('EmbeddedTimers', async () => {
  const dueQueue = recordingSender();
  const timers = new EmbeddedTimers({ dueQueue, clock: systemClock, log: recordingLog() });
  let read = 0;
  const unread = () => dueQueue.calls.flat().slice(read);
  return {
    timers,
    async nextMessage() {
      await eventually(async () => assert.ok(unread().length > 0));
      return dueQueue.calls.flat()[read++]?.body ?? '';
    },
    noneLeft: async () => assert.deepEqual(unread(), []),
    close: () => timers.stop(),
  };
});

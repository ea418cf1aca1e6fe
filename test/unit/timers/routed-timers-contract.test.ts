import assert from 'node:assert/strict';
import { EmbeddedTimers } from '#functions/local/embedded-timers.ts';
import { systemClock } from '#shared/time/clock.ts';
import { RoutedTimers } from '#shared/timers/routed-timers.ts';
import { eventually } from '#test/contracts/eventually.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { timersContract } from '#test/contracts/timers-contract.ts';
import { recordingSender } from './recording-sender.ts';

timersContract('RoutedTimers, with an agent for every other cluster,', async () => {
  // In the order in which messages come, whichever queue they come by.
  const both = recordingSender();
  const timersOf = () => new EmbeddedTimers({ dueQueue: both, clock: systemClock, log: recordingLog() });
  const [own, agents] = [timersOf(), timersOf()];
  const clusters = new Map<string, boolean>();
  const timers = new RoutedTimers({
    own,
    ofAgent: () => agents,
    async agentOf(cluster) {
      const hasAgent = clusters.get(cluster) ?? clusters.size % 2 === 0;
      clusters.set(cluster, hasAgent);
      return hasAgent ? 'edge-1' : undefined;
    },
  });
  let read = 0;
  const unread = () => both.calls.flat().slice(read);
  return {
    timers,
    async nextMessage() {
      await eventually(async () => assert.ok(unread().length > 0));
      return both.calls.flat()[read++]?.body ?? '';
    },
    noneLeft: async () => assert.deepEqual(unread(), []),
    async close() {
      await Promise.all([own.stop(), agents.stop()]);
    },
  };
});

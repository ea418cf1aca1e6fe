import assert from 'node:assert/strict';
import { encodeDue } from '#shared/aws/due-message.ts';
import { RoutedTimers } from '#shared/aws/routed-timers.ts';
import type { Timers } from '#shared/engine/timers.ts';
import { Alarm } from '#shared/engine/work-queue/moments.ts';
import { systemClock } from '#shared/time/clock.ts';
import { eventually } from '#test/contracts/eventually.ts';
import { timersContract } from '#test/contracts/timers-contract.ts';
import { recordingSender } from './recording-sender.ts';

timersContract('RoutedTimers, with an agent for every other cluster,', async () => {
  // Messages of both queues, in the order of arrival.
  const both = recordingSender();
  const alarms: Alarm[] = [];
  const timersOf = (): Timers => ({
    async arm(ref, times) {
      for (const at of new Set(times.map((dueAt) => Math.max(dueAt, Date.now()))))
        alarms.push(new Alarm(systemClock, at, () => void both.send([{ body: encodeDue({ ...ref, at }) }])));
    },
  });
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
      for (const alarm of alarms) alarm.cancel();
    },
  };
});

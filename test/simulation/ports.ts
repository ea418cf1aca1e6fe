import { CreateScheduleCommand, SchedulerClient } from '@aws-sdk/client-scheduler';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import type { Timers } from '#shared/engine/timers.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { type RulesReader, rulesOf, rulesReader } from '#shared/state/rules-store.ts';
import type { OutgoingMessage, QueueSender } from '#shared/state/sender.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { enforcing } from '#test/world/enforced-rules.ts';
import type { GuardBook } from './fault.ts';
import type { Process, Surroundings } from './process.ts';
import { MATCHING, type Scene } from './scene.ts';
import type { SimulatedQueue } from './simulated-queue.ts';
import type { SimulatedRulesStore } from './simulated-rules-store.ts';
import type { SimulatedScheduler } from './simulated-scheduler.ts';

/** Returns a queue as one process accesses it. Sometimes the queue accepts only a part of the messages. */
export function queuePort(
  process: Process,
  queue: SimulatedQueue,
  { random, weather }: Surroundings,
): QueueSender {
  return {
    send: (messages) =>
      process.request('queues', () => {
        if (!weather.conflict()) return queue.accept(messages);
        const failed = random.between(0, messages.length - 1);
        const isRefused = ({ groupId }: OutgoingMessage, index: number) =>
          index === failed ||
          (index > failed && groupId !== undefined && groupId === messages[failed]?.groupId);
        queue.accept(messages.filter((message, index) => !isRefused(message, index)));
        return messages.flatMap((message, index) =>
          isRefused(message, index) ? [{ index, reason: 'throttled', permanent: false }] : [],
        );
      }),
  };
}

/** Returns a queue's dead-letter queue as one process accesses it. */
export const deadLetterPort = (process: Process, deadLetters: OutgoingMessage[]): QueueSender => ({
  send: (messages) =>
    process.request('queues', () => {
      deadLetters.push(...messages);
      return [];
    }),
});

/** Returns the control of messages' visibility. Calls take no time, because to a handler they cannot fail. */
export const visibilityPort = (queue: SimulatedQueue): VisibilityControl => ({
  retryIn: async (messages) => {
    for (const { receiptHandle, seconds } of messages) queue.retryIn(receiptHandle, seconds);
  },
});

/** Returns the timers on AWS as one process accesses them. */
export function awsTimers(process: Process, dueQueue: QueueSender, scheduler: SimulatedScheduler): Timers {
  const send = (command: unknown) =>
    process.request('timers', () => {
      if (command instanceof CreateScheduleCommand) return scheduler.create(command.input);
      throw new Error('the simulated scheduler only creates schedules');
    });
  return new AwsTimers({
    dueQueue,
    // The code uses no other part of the client, and creating a real one takes longer than many histories.
    scheduler: Object.assign(Object.create(SchedulerClient.prototype), { send }),
    schedulesOf: async () => ({
      groupName: 'taintward',
      roleArn: 'arn:aws:iam::000000000000:role/scheduler',
      dueQueueArn: 'arn:aws:sqs:us-east-1:000000000000:evictions-due',
    }),
    clock: process.clock,
  });
}

/** Returns the rules of clusters as one process reads them; clusters without owners are enforced. */
export function rulesPort(process: Process, { rulesStore }: Pick<Scene, 'rulesStore'>): RulesReader {
  if (!rulesStore) return enforcing(MATCHING);
  const read: SimulatedRulesStore['read'] = (cluster) =>
    process.request('store', () => rulesStore.read(cluster));
  return rulesReader({ rulesStore: { read }, matching: MATCHING, clock: process.clock });
}

/** Returns the store of a guard's state as one process accesses it. */
export const guardPort = (process: Process, rulesStore: SimulatedRulesStore): GuardBook => ({
  read: (cluster) => process.request('store', () => rulesStore.read(cluster)),
  changeGuard: (...args) => process.request('store', () => rulesStore.changeGuard(...args)),
  touchGuard: (...args) => process.request('store', () => rulesStore.touchGuard(...args)),
});

/** The interval at which a relay reads the rules. */
const POLL_MS = 2_000;

/**
 * Returns a relay's watch over the rules of a cluster. It reads only when there is a change, because other reads change nothing.
 */
export function rulesWatch(
  process: Process,
  rulesStore: SimulatedRulesStore,
  { clock, log, random }: Scene,
): RulesWatch {
  /** The result of the last read: the number of entries, and the time when they change by expiry. */
  let known: { readonly length: number; readonly end: EpochMs } | undefined;
  return new RulesWatch({
    readAll: async (clusters) => {
      const read = new Map<ClusterName, Rules>();
      for (const cluster of clusters) {
        if (rulesStore.history(cluster).length === known?.length && clock.now() < known.end) {
          await rulesStore.changed(known.end, (ring, at) => clock.setAlarm(at, ring));
          await clock.sleep(random.between(0, POLL_MS));
        }
        // A read without an answer is repeated.
        known = undefined;
        const [storedRules, found] = await process.request('store', () => [
          rulesStore.now(cluster),
          { length: rulesStore.history(cluster).length, end: rulesStore.nextEnd(cluster) },
        ]);
        known = found;
        read.set(cluster, rulesOf(storedRules, MATCHING));
      }
      return read;
    },
    clock,
    log,
  });
}

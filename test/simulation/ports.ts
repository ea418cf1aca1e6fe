import { CreateScheduleCommand, SchedulerClient } from '@aws-sdk/client-scheduler';
import type { OutgoingMessage, QueueSender, VisibilityControl } from '#shared/queues/sender.ts';
import { AwsTimers } from '#shared/timers/aws-timers.ts';
import type { Timers } from '#shared/timers/timers.ts';
import type { Process, Surroundings } from './process.ts';
import type { SimulatedQueue } from './simulated-queue.ts';
import type { SimulatedScheduler } from './simulated-scheduler.ts';

/** A queue as one process reaches it. Now and then it does not take all it is sent. */
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

/** A queue's dead-letter queue as one process reaches it. */
export const deadLetterPort = (process: Process, deadLetters: OutgoingMessage[]): QueueSender => ({
  send: (messages) =>
    process.request('queues', () => {
      deadLetters.push(...messages);
      return [];
    }),
});

/** When the messages of a queue are seen again; that is free, because it cannot fail in the eyes of a handler. */
export const visibilityPort = (queue: SimulatedQueue): VisibilityControl => ({
  retryIn: async (messages) => {
    for (const { receiptHandle, seconds } of messages) queue.retryIn(receiptHandle, seconds);
  },
});

/** The timers on AWS as one process reaches them. */
export function awsTimers(
  process: Process,
  dueQueue: QueueSender,
  scheduler: SimulatedScheduler,
  { clock }: Surroundings,
): Timers {
  const send = (command: unknown) =>
    process.request('timers', () => {
      if (command instanceof CreateScheduleCommand) return scheduler.create(command.input);
      throw new Error('the simulated scheduler only creates schedules');
    });
  return new AwsTimers({
    dueQueue,
    scheduler: Object.assign(new SchedulerClient({ region: 'us-east-1' }), { send }),
    groupName: 'taintward',
    roleArn: 'arn:aws:iam::000000000000:role/scheduler',
    dueQueueArn: 'arn:aws:sqs:us-east-1:000000000000:evictions-due',
    clock,
  });
}

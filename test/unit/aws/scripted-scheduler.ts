import { type CreateScheduleInput, SchedulerClient } from '@aws-sdk/client-scheduler';

export interface ScriptedScheduler {
  readonly scheduler: SchedulerClient;
  readonly created: CreateScheduleInput[];
}

/**
 * Returns a client without a network that records the schedules to create; `answer` throws to reject a
 * schedule.
 */
export function scriptedScheduler(
  answer: (input: CreateScheduleInput) => void = () => undefined,
): ScriptedScheduler {
  const created: CreateScheduleInput[] = [];
  const scheduler = new SchedulerClient({ region: 'us-east-1' });
  scheduler.middlewareStack.add(
    () => async (args) => {
      const input = args.input as CreateScheduleInput;
      created.push(input);
      answer(input);
      return { response: {}, output: { $metadata: {} } };
    },
    { step: 'initialize', priority: 'high' },
  );
  return { scheduler, created };
}

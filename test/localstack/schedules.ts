import { setTimeout as delay } from 'node:timers/promises';
import {
  DeleteScheduleCommand,
  GetScheduleCommand,
  type GetScheduleOutput,
  ListSchedulesCommand,
  ResourceNotFoundException,
  type SchedulerClient,
} from '@aws-sdk/client-scheduler';
import { GetQueueUrlCommand, SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';

/** EventBridge Scheduler fires within a minute of the time; this interval is accurate enough. */
const PERIOD_MS = 1_000;

export interface ScheduleClients {
  readonly scheduler: Pick<SchedulerClient, 'send'>;
  readonly sqs: Pick<SQSClient, 'send'>;
}

/**
 * Returns the due time of a one-time schedule in UTC; `undefined`: it is of another kind, which the service does not
 * use.
 */
export function dueAt({ ScheduleExpression = '', State }: GetScheduleOutput): number | undefined {
  const [, time] = /^at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)$/.exec(ScheduleExpression) ?? [];
  return time === undefined || State === 'DISABLED' ? undefined : Date.parse(`${time}Z`);
}

/**
 * Sends the messages of the due schedules, and removes those that are to be removed then. LocalStack stores schedules
 * but fires none.
 */
export async function sendDue({ scheduler, sqs }: ScheduleClients, now: number): Promise<void> {
  const { Schedules = [] } = await scheduler.send(new ListSchedulesCommand({ MaxResults: 100 }));
  for (const { Name, GroupName } of Schedules) {
    const named = { Name, GroupName };
    const schedule = await scheduler.send(new GetScheduleCommand(named)).catch(ignoreGone);
    const at = schedule && dueAt(schedule);
    if (!schedule?.Target || at === undefined || at > now) continue;
    const { Arn = '', Input, SqsParameters } = schedule.Target;
    // Delete the schedule first, so that its message is not sent twice.
    await scheduler.send(new DeleteScheduleCommand(named)).catch(ignoreGone);
    const [QueueName = ''] = Arn.split(':').slice(-1);
    const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName }));
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: Input, ...SqsParameters }));
  }
}

function ignoreGone(error: unknown): undefined {
  if (!(error instanceof ResourceNotFoundException)) throw error;
}

/**
 * Sends the messages of due schedules every second until the signal. An error, for example a missing queue, is reported
 * and changes nothing.
 */
export async function keepSending(
  clients: ScheduleClients,
  { signal, note }: { readonly signal: AbortSignal; readonly note: (text: string) => void },
): Promise<void> {
  while (!signal.aborted) {
    await sendDue(clients, Date.now()).catch((error: unknown) => {
      if (!signal.aborted) note(`a schedule was not sent: ${error}`);
    });
    await delay(PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
}

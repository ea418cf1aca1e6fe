import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import pMap from 'p-map';
import { CLIENT_SETTINGS } from '#shared/access/client-settings.ts';
import { jsonLog, type Log, logTo } from '#shared/telemetry/log.ts';
import { type Notice, noticeOf } from '#shared/telemetry/notice.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Source and detail type by which rules on the bus match the events. */
export const NOTICE_SOURCE = 'taintward';
export const NOTICE_TYPE = 'Taintward Eviction';

/** Events in one PutEvents (EventBridge's limit). Ten of these events are far below its 1 MiB. */
const BATCH = 10;
const PARALLEL_BATCHES = 4;
/** Time limit for all notices of an invocation: consumers of notices must not delay decisions. */
export const FLUSH_MS = 2_000;

export interface EventBusOptions {
  readonly client: Pick<EventBridgeClient, 'send'>;
  /** Name or ARN. */
  readonly busName: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Sends the log's events about evictions to EventBridge. Best effort: what the bus does not accept in time is lost,
 * which is logged; a process that dies loses unsent notices. The history is kept elsewhere.
 */
export class EventBus {
  readonly #options: EventBusOptions;
  #waiting: Notice[] = [];

  constructor(options: EventBusOptions) {
    this.#options = options;
  }

  /** A log that writes to the given log, and queues the notices. */
  readonly log: Log = logTo((severity, line) => {
    const { log, clock } = this.#options;
    const notice = noticeOf(line, clock.now());
    if (notice) this.#waiting.push(notice);
    // Event and fields are a pair of `LogEvents`, which the compiler cannot infer here.
    (log[severity] as (event: string, fields: object) => void)(line.event, line.fields);
  });

  /** Sends the notices queued since the last flush. Never rejects. */
  async flush(): Promise<void> {
    const notices = this.#waiting;
    this.#waiting = [];
    if (notices.length === 0) return;
    const batches = Array.from({ length: Math.ceil(notices.length / BATCH) }, (_, index) =>
      notices.slice(index * BATCH, (index + 1) * BATCH),
    );
    const abortSignal = AbortSignal.timeout(FLUSH_MS);
    await pMap(batches, (batch) => this.#put(batch, abortSignal), { concurrency: PARALLEL_BATCHES });
  }

  async #put(batch: readonly Notice[], abortSignal: AbortSignal): Promise<void> {
    const { client, busName, log } = this.#options;
    const Entries = batch.map((notice) => ({
      EventBusName: busName,
      Source: NOTICE_SOURCE,
      DetailType: NOTICE_TYPE,
      Time: new Date(notice.at),
      Detail: JSON.stringify(notice),
    }));
    try {
      const { FailedEntryCount = 0, Entries: answers = [] } = await client.send(
        new PutEventsCommand({ Entries }),
        { abortSignal },
      );
      if (FailedEntryCount === 0) return;
      const refused = answers.find(({ ErrorCode }) => ErrorCode !== undefined);
      const reason = refused?.ErrorMessage ?? refused?.ErrorCode ?? 'the event bus rejected it';
      log.warn('notification.dropped', { notifications: FailedEntryCount, error: reason });
    } catch (error) {
      log.warn('notification.dropped', { notifications: batch.length, error });
    }
  }
}

/** The log of a function whose notices are sent to the event bus of its environment, if that names one. */
export function noticingLog({ EVENT_BUS: busName }: { readonly EVENT_BUS?: string }, clock: Clock) {
  const log = jsonLog();
  if (busName === undefined) return { log };
  const notices = new EventBus({ client: new EventBridgeClient(CLIENT_SETTINGS), busName, clock, log });
  return { log: notices.log, notices };
}

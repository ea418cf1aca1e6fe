import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { QUEUES, type QueueKey } from '#shared/aws/queue-set.ts';
import { sqsEvent } from '#test/world/sqs-event.ts';
import { Process } from './process.ts';
import type { Scene } from './scene.ts';
import type { SimulatedQueue } from './simulated-queue.ts';

export type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

export interface FunctionSettings {
  readonly queue: QueueKey;
  readonly batchSize: number;
  /** The number of concurrent instances. */
  readonly instances: number;
  /** Starts the handler in a process of the function. */
  readonly start: (process: Process) => Handler;
}

/** The handlers use the event only. */
const CONTEXT = {} as Context;
const LATE: unique symbol = Symbol('late');

/**
 * Runs a function on its queue indefinitely. An instance that dies or times out has no further effect. Its messages become
 * visible again, and a new instance replaces it.
 */
export function runFunction(scene: Scene, settings: FunctionSettings): void {
  const serve = async () => {
    for (;;) {
      const process = new Process(scene);
      await live(scene, settings, process, settings.start(process));
    }
  };
  for (let instances = 0; instances < settings.instances; instances++) void serve();
}

async function live(
  scene: Scene,
  settings: FunctionSettings,
  process: Process,
  handler: Handler,
): Promise<void> {
  const queue = scene.queues[settings.queue];
  const timeoutMs = QUEUES[settings.queue].functionTimeoutSeconds * 1000;
  while (!process.dead) {
    const received = queue.receive(settings.batchSize, process);
    // Unfinished work of a handler may kill the process while it waits for the next message.
    const records = await Promise.race([received, process.death]);
    if (!records) return;
    const { promise: timeout, resolve } = Promise.withResolvers<typeof LATE>();
    const alarm = scene.clock.setAlarm(scene.clock.now() + timeoutMs, () => resolve(LATE));
    const answer = await Promise.race([handler(sqsEvent(...records), CONTEXT), process.death, timeout]);
    alarm.off = true;
    if (answer === LATE) {
      scene.story.add('function.timeout', { queue: settings.queue });
      process.die();
    }
    if (process.dead || typeof answer !== 'object') return;
    deleteHandled(queue, records, answer);
  }
}

function deleteHandled(queue: SimulatedQueue, records: readonly SQSRecord[], answer: SQSBatchResponse): void {
  const failed = new Set(answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
  for (const { messageId, receiptHandle } of records) {
    if (!failed.has(messageId)) queue.delete(receiptHandle);
  }
}

import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { QUEUES, type QueueKey } from '#shared/queues/queue-set.ts';
import { sqsEvent } from '#test/world/sqs-event.ts';
import { Process } from './process.ts';
import type { Scene } from './scene.ts';
import type { SimulatedQueue } from './simulated-queue.ts';

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

export interface FunctionSettings {
  readonly queue: QueueKey;
  readonly batchSize: number;
  /** The handler, as a process of the function starts it. */
  readonly start: (process: Process) => Handler;
}

/** Instances of each function at a time. */
const INSTANCES = 2;
/** The handlers look at the event only. */
const CONTEXT = {} as Context;
const LATE = Symbol('late');

/**
 * Runs a function on its queue for ever. Of an instance that dies or times out, nothing is heard any more, its
 * messages come back, and a new instance takes its place.
 */
export function runFunction(scene: Scene, settings: FunctionSettings): void {
  const serve = async () => {
    for (;;) await live(scene, settings);
  };
  for (let instances = 0; instances < INSTANCES; instances++) void serve();
}

async function live(scene: Scene, settings: FunctionSettings): Promise<void> {
  const queue = scene.queues[settings.queue];
  const timeoutMs = QUEUES[settings.queue].functionTimeoutSeconds * 1000;
  const process = new Process(scene);
  const handler = settings.start(process);
  while (!process.dead) {
    const records = await queue.receive(settings.batchSize);
    const timeout = scene.clock.sleep(timeoutMs).then(() => LATE);
    const answer = await Promise.race([handler(sqsEvent(...records), CONTEXT), process.death, timeout]);
    if (answer === LATE) process.die();
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

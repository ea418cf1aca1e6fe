import type { AttributeValue, Context, DynamoDBBatchResponse, DynamoDBRecord } from 'aws-lambda';
import { EXPIRY_BATCH_SIZE, TTL_IDENTITY } from '#functions/expiry/handler.ts';
import { SCHEDULED_PREFIX } from '#shared/state/dynamodb/items.ts';
import type { OutgoingMessage } from '#shared/state/sender.ts';
import type { Item } from '#test/world/fake-dynamodb.ts';
import type { ExpiryHandler } from './fault.ts';
import { Process } from './process.ts';
import type { Scene } from './scene.ts';

/** Creates a handler in a process, which sets unreadable records aside in that process. */
type Start = (process: Process, refused: OutgoingMessage[]) => ExpiryHandler;

interface StreamRecord {
  readonly record: DynamoDBRecord;
  readonly removedAt: number;
}

const SWEEP_MS = 20 * 60_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
const TIMEOUT_MS = 60_000;
/** The time for which the event source retries; then it sends the record to its own dead-letter queue. */
const MAX_RECORD_AGE_MS = 23 * 3_600_000;
const CONTEXT = {} as Context;
const LATE = Symbol('late');

/** The table's time to live and its stream, which feeds `expiry`: a failed record is delivered again, with all later ones. */
export class SimulatedStream {
  /** The records that could not be put back, and those that the handler set aside. */
  readonly deadLetters: DynamoDBRecord[] = [];
  readonly refused: OutgoingMessage[] = [];
  readonly #scene: Scene;
  #records: StreamRecord[] = [];
  #removed = 0;
  #wake: () => void = () => undefined;

  constructor(scene: Scene, start: Start) {
    this.#scene = scene;
    const sweep = () => {
      for (const item of scene.storage.sweep()) this.#send(item);
      scene.clock.setAlarm(scene.clock.now() + SWEEP_MS, sweep);
    };
    sweep();
    void this.#feed(start);
  }

  get size(): number {
    return this.#records.length;
  }

  #send(item: Item): void {
    if (!item['sk']?.S?.startsWith(SCHEDULED_PREFIX)) return;
    this.#removed += 1;
    const record: DynamoDBRecord = {
      eventName: 'REMOVE',
      userIdentity: TTL_IDENTITY,
      dynamodb: {
        SequenceNumber: String(this.#removed).padStart(12, '0'),
        OldImage: item as Record<string, AttributeValue>,
      },
    };
    this.#records.push({ record, removedAt: this.#scene.clock.now() });
    this.#scene.story.add('record.removed', { pk: item['pk']?.S, sk: item['sk']?.S });
    this.#wake();
  }

  async #feed(start: Start): Promise<void> {
    const { clock } = this.#scene;
    for (let failures = 0; ; ) {
      const process = new Process(this.#scene);
      const handler = start(process, this.refused);
      while (!process.dead) {
        if (this.#records.length === 0) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        this.#forget();
        const batch = this.#records.slice(0, EXPIRY_BATCH_SIZE);
        const timeout = clock.sleep(TIMEOUT_MS).then(() => LATE);
        const done = handler({ Records: batch.map(({ record }) => record) }, CONTEXT);
        const answer = await Promise.race([done, process.death, timeout]);
        if (answer === LATE) process.die();
        const left = typeof answer === 'object' ? firstFailed(batch, answer) : 0;
        this.#records.splice(0, left);
        if (left === batch.length) failures = 0;
        else {
          failures += 1;
          await clock.sleep(Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS));
        }
      }
    }
  }

  #forget(): void {
    const oldest = this.#scene.clock.now() - MAX_RECORD_AGE_MS;
    this.deadLetters.push(
      ...this.#records.filter(({ removedAt }) => removedAt < oldest).map(({ record }) => record),
    );
    this.#records = this.#records.filter(({ removedAt }) => removedAt >= oldest);
  }
}

/** Returns the number of completed records of a batch: all before the first failed one. */
function firstFailed(batch: readonly StreamRecord[], answer: DynamoDBBatchResponse): number {
  const failed = new Set(answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
  const first = batch.findIndex(({ record }) => failed.has(record.dynamodb?.SequenceNumber ?? ''));
  return first < 0 ? batch.length : first;
}

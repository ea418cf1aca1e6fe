import {
  ChangeMessageVisibilityBatchCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  type Message,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  type SQSClient,
  StartMessageMoveTaskCommand,
} from '@aws-sdk/client-sqs';
import { EXPIRY_DEAD_LETTER_NAME, QUEUES } from '#shared/aws/queue-set.ts';
import { defined } from '#shared/defined.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { agentOfQueue, type Box, boxOfAgent, OF_AGENTS } from './agent-queues.ts';
import type { DeadLetter, DeadLetterBox } from './dead-letters.ts';
import { FleetError } from './fleet.ts';

const BOXES: readonly Box[] = [
  ...Object.values(QUEUES).map(({ name, deadLetterName }) => ({ name: deadLetterName, queue: name })),
  { name: EXPIRY_DEAD_LETTER_NAME, queue: 'expiry' },
];

/** Seconds for which a read message is hidden if this process dies before it returns the message. */
export const UNSEEN_SECONDS = 10;
/** Attributes whose sum is the number of messages in a queue. */
const COUNTS = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
] as const;
/** Maximum number of messages in an SQS request. */
const MAX_CONCURRENT = 10;

export interface SqsQueuesDeps {
  readonly client: SQSClient;
  readonly prefix: string;
  readonly agents: () => Promise<readonly string[]>;
}

/**
 * Reads queues and dead letters with the caller's permissions. Every method rejects with `FleetError`; those that read
 * all queues also as `agents` does.
 */
export class SqsQueues implements DeadLetterBox {
  readonly #deps: SqsQueuesDeps;

  constructor(deps: SqsQueuesDeps) {
    this.#deps = deps;
  }

  /** Returns the number of messages in each queue, including those in flight and delayed. */
  async backlog(): Promise<ReadonlyMap<string, number>> {
    const ofAgents = (await this.#boxesOfAgents()).map(({ queue }) => queue);
    const all = [...Object.values(QUEUES).map(({ name }) => name), ...ofAgents].map(
      async (name) => [name, (await this.#attributes(name)).messages] as const,
    );
    return new Map(await Promise.all(all));
  }

  async count(): Promise<ReadonlyMap<string, number>> {
    const boxes = [...BOXES, ...(await this.#boxesOfAgents())];
    const counts = await Promise.all(
      boxes.map(async ({ name, queue }) => [queue, (await this.#attributes(name)).messages] as const),
    );
    return new Map(counts.filter(([, count]) => count > 0));
  }

  async list(limit: number, queue?: string): Promise<readonly DeadLetter[]> {
    const boxes = queue === undefined ? [...BOXES, ...(await this.#boxesOfAgents())] : [boxOf(queue)];
    const found: DeadLetter[] = [];
    for (const box of boxes) found.push(...(await this.#peek(box, limit)));
    return found.sort((a, b) => a.at - b.at).slice(0, limit);
  }

  async redrive(queue: string): Promise<number> {
    const { name } = redrivable(queue);
    const box = await this.#attributes(name);
    if (box.messages === 0) return 0;
    const destination = await this.#attributes(queue);
    // Name the destination: SQS has no record of the source queue of a message that a function put there.
    const command = new StartMessageMoveTaskCommand({
      SourceArn: box.arn,
      DestinationArn: destination.arn,
    });
    try {
      await this.#deps.client.send(command);
    } catch (error) {
      throw notMoved(queue, error);
    }
    return box.messages;
  }

  /** An agent whose stack was deleted doesn't prevent access to the others. */
  async #boxesOfAgents(): Promise<readonly Box[]> {
    const agents = await this.#deps.agents();
    const there = await Promise.all(agents.map((agent) => this.hasAgent(agent)));
    return agents.filter((_, index) => there[index]).map(boxOfAgent);
  }

  /** Reports whether the queue of an agent exists. */
  async hasAgent(agent: string): Promise<boolean> {
    try {
      await this.url(boxOfAgent(agent).queue);
      return true;
    } catch (error) {
      if (error instanceof FleetError && error.cause instanceof QueueDoesNotExist) return false;
      throw error;
    }
  }

  async #peek({ name, queue }: Box, limit: number): Promise<readonly DeadLetter[]> {
    const QueueUrl = await this.url(name);
    const seen = new Map<string, Message>();
    try {
      for (let before = -1; seen.size > before && seen.size < limit; ) {
        before = seen.size;
        const { Messages = [] } = await this.#permitted(name, 'sqs:ReceiveMessage', () =>
          this.#deps.client.send(
            new ReceiveMessageCommand({
              QueueUrl,
              MaxNumberOfMessages: Math.min(MAX_CONCURRENT, limit - seen.size),
              VisibilityTimeout: UNSEEN_SECONDS,
              WaitTimeSeconds: 1,
              MessageAttributeNames: ['All'],
              MessageSystemAttributeNames: ['SentTimestamp'],
            }),
          ),
        );
        for (const message of Messages) seen.set(message.MessageId ?? '', message);
      }
    } finally {
      await this.#giveBack(QueueUrl, [...seen.values()]);
    }
    return [...seen.values()].map((message) => letterOf(message, queue));
  }

  /** If that fails, they become visible after their timeout. */
  async #giveBack(QueueUrl: string, messages: readonly Message[]): Promise<void> {
    for (let from = 0; from < messages.length; from += MAX_CONCURRENT) {
      const Entries = messages.slice(from, from + MAX_CONCURRENT).map(({ ReceiptHandle }, index) => ({
        Id: `${index}`,
        ReceiptHandle,
        VisibilityTimeout: 0,
      }));
      await this.#deps.client
        .send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries }))
        .catch(() => undefined);
    }
  }

  async #attributes(name: string): Promise<{ readonly arn: string; readonly messages: number }> {
    const QueueUrl = await this.url(name);
    const { Attributes = {} } = await this.#permitted(name, 'sqs:GetQueueAttributes', () =>
      this.#deps.client.send(
        new GetQueueAttributesCommand({
          QueueUrl,
          AttributeNames: ['QueueArn', ...COUNTS],
        }),
      ),
    );
    return {
      arn: Attributes['QueueArn'] ?? '',
      messages: COUNTS.reduce((sum, name) => sum + Number(Attributes[name] ?? 0), 0),
    };
  }

  /** Returns the URL of a queue by its name without the prefix. */
  async url(name: string): Promise<string> {
    const { QueueUrl = '' } = await this.#permitted(name, 'sqs:GetQueueUrl', () =>
      this.#deps.client.send(new GetQueueUrlCommand({ QueueName: `${this.#deps.prefix}-${name}` })),
    );
    return QueueUrl;
  }

  async #permitted<T>(name: string, right: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      const reason = errorMessage(error);
      throw new FleetError(
        `The queue ${this.#deps.prefix}-${name} does not answer (${reason}): check table, account and region, and that you have ${right}.`,
        { cause: error },
      );
    }
  }
}

function boxOf(queue: string): Box {
  const agent = agentOfQueue(queue);
  const box = agent === undefined ? BOXES.find((each) => each.queue === queue) : boxOfAgent(agent);
  if (box) return box;
  throw new FleetError(
    `Queue ${queue} not found. Specify one of: ${BOXES.map((each) => each.queue).join(', ')}, and ${OF_AGENTS}ID-${QUEUES.evictionsDue.name} of each agent.`,
  );
}

/** Does the same for a queue to which dead letters can be redriven. Throws `FleetError` for others. */
function redrivable(queue: string): Box {
  const box = boxOf(queue);
  if (box.name !== EXPIRY_DEAD_LETTER_NAME) return box;
  throw new FleetError("Dead letters of expiry can't be redriven. The next resync reevaluates their pods.");
}

/** SQS runs one redrive per queue at a time, and reports a running one only in the text of its error. */
function notMoved(queue: string, error: unknown): FleetError {
  const reason = errorMessage(error);
  const message = /task running/i.test(reason)
    ? `A redrive of the dead letters of ${queue} is already running (${reason}). Wait until it ends.`
    : `The dead letters of ${queue} could not be redriven (${reason}). Check your permissions: sqs:StartMessageMoveTask, ReceiveMessage, and DeleteMessage on the dead-letter queue, sqs:SendMessage on the queue.`;
  return new FleetError(message, { cause: error });
}

function letterOf(
  { MessageId = '', Body = '', Attributes, MessageAttributes }: Message,
  queue: string,
): DeadLetter {
  const reason = MessageAttributes?.['reason']?.StringValue;
  return {
    id: MessageId,
    queue,
    at: Number(Attributes?.SentTimestamp ?? 0),
    ...defined({ reason }),
    body: Body,
  };
}

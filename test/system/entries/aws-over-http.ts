import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as bodyJson, text as bodyText } from 'node:stream/consumers';
import * as dynamoDb from '@aws-sdk/client-dynamodb';
import type { SQSEvent, SQSRecord } from 'aws-lambda';
import { systemClock } from '#shared/time/clock.ts';
import { FakeDynamoDb } from '#test/world/fake-dynamodb.ts';
import { sqsRecord } from '#test/world/sqs-event.ts';

/** Whom STS and SQS name as the sender of every message. */
const SENDER = 'AIDAENTRIES';

interface Message {
  readonly id: string;
  readonly body: string;
  readonly group: string | undefined;
  readonly sentAt: number;
  visibleAt: number;
  receives: number;
}

/** A message to send, as the API of SQS takes it. */
interface Entry {
  readonly Id: string;
  readonly MessageBody: string;
  readonly MessageGroupId?: string;
  readonly DelaySeconds?: number;
}

interface SqsInput {
  readonly QueueUrl: string;
  readonly Entries?: readonly (Entry & {
    readonly ReceiptHandle: string;
    readonly VisibilityTimeout: number;
  })[];
  readonly MaxNumberOfMessages?: number;
}

/** While a message is worked on nobody else is given it. */
const VISIBILITY_MS = 30_000;
/** How long a call for messages waits where there are none: short, so that what is stopped ends soon. */
const LONGEST_WAIT_MS = 200;

/**
 * What the programs' entries ask of AWS, over HTTP on 127.0.0.1: the table, SQS, one secret, and STS. For tests of the entries: any call that
 * it does not know is an error.
 */
export class AwsOverHttp {
  readonly table = new FakeDynamoDb(systemClock);
  readonly #queues = new Map<string, Message[]>();
  readonly #secrets = new Map<string, string>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  static async start(): Promise<AwsOverHttp> {
    const aws = new AwsOverHttp();
    aws.#server.listen(0, '127.0.0.1');
    await once(aws.#server, 'listening');
    return aws;
  }

  /** What a process is told, so that every client of the SDK asks here. */
  get environment() {
    return {
      AWS_ENDPOINT_URL: this.url,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    };
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  queueUrl(name: string): string {
    return `${this.url}/000000000000/${name}`;
  }

  keepSecret(arn: string, value: string): void {
    this.#secrets.set(arn, value);
  }

  send(queue: string, body: string, group?: string): void {
    const sentAt = Date.now();
    this.#messages(queue).push({ id: randomUUID(), body, group, sentAt, visibleAt: sentAt, receives: 0 });
  }

  /** All that a queue holds, in order. */
  bodies(queue: string): readonly string[] {
    return this.#messages(queue).map(({ body }) => body);
  }

  /** What Lambda would hand a function now; `undefined`: nothing. */
  take(queue: string, most = 10): SQSEvent | undefined {
    const taken = this.#take(queue, most);
    return taken.length > 0 ? { Records: taken.map((message) => record(queue, message)) } : undefined;
  }

  /** What a function did not report, as Lambda deletes it. */
  delete(queue: string, ids: ReadonlySet<string>): void {
    this.#queues.set(
      queue,
      this.#messages(queue).filter(({ id }) => !ids.has(id)),
    );
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #messages(queue: string): Message[] {
    const found = this.#queues.get(queue) ?? [];
    this.#queues.set(queue, found);
    return found;
  }

  /** Of a group, what comes first, and nothing while some of it is worked on. */
  #take(queue: string, most: number): readonly Message[] {
    const now = Date.now();
    const blocked = new Set<string>();
    const taken: Message[] = [];
    for (const message of this.#messages(queue)) {
      const isFree = message.visibleAt <= now && !blocked.has(message.group ?? '');
      if (isFree && taken.length < most) taken.push(message);
      else if (message.group !== undefined && queue.endsWith('.fifo')) blocked.add(message.group);
    }
    for (const message of taken) {
      message.visibleAt = now + VISIBILITY_MS;
      message.receives += 1;
    }
    return taken;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [service = '', operation = ''] = String(request.headers['x-amz-target'] ?? '').split('.');
    try {
      if (service === '') {
        await bodyText(request);
        response.setHeader('content-type', 'text/xml');
        response.end(CALLER);
        return;
      }
      const input = await bodyJson(request);
      const output = await this.#perform(service, operation, input);
      response.setHeader('content-type', 'application/x-amz-json-1.0');
      response.end(JSON.stringify(output));
    } catch (error) {
      const { name, message, ...rest } = error as Error;
      response.statusCode = 400;
      response.setHeader('content-type', 'application/x-amz-json-1.0');
      response.end(JSON.stringify({ __type: name, message, ...rest }));
    }
  }

  #perform(service: string, operation: string, input: unknown): object | Promise<object> {
    if (service === 'DynamoDB_20120810') return this.table.perform(dynamoCommand(operation, input));
    if (service === 'secretsmanager' && operation === 'GetSecretValue') {
      const { SecretId } = input as { readonly SecretId: string };
      return { ARN: SecretId, Name: SecretId, SecretString: this.#secrets.get(SecretId) };
    }
    if (service === 'AmazonSQS') return this.#sqs(operation, input as SqsInput);
    throw new Error(`${service}.${operation} is not known here`);
  }

  async #sqs(
    operation: string,
    { QueueUrl, Entries = [], MaxNumberOfMessages = 1 }: SqsInput,
  ): Promise<object> {
    const queue = QueueUrl.split('/').at(-1) ?? '';
    const all = { Successful: Entries.map(({ Id }) => ({ Id })), Failed: [] };
    switch (operation) {
      case 'SendMessageBatch': {
        const sentAt = Date.now();
        const sent = Entries.map(({ Id, MessageBody: body, MessageGroupId: group, DelaySeconds = 0 }) => {
          const id = randomUUID();
          const visibleAt = sentAt + DelaySeconds * 1000;
          this.#messages(queue).push({ id, body, group, sentAt, visibleAt, receives: 0 });
          return { Id, MessageId: id, MD5OfMessageBody: md5(body) };
        });
        return { Successful: sent, Failed: [] };
      }
      case 'ReceiveMessage': {
        const taken = this.#take(queue, MaxNumberOfMessages);
        if (taken.length === 0) await new Promise((resolve) => setTimeout(resolve, LONGEST_WAIT_MS));
        return { Messages: taken.map((message) => received(message)) };
      }
      case 'DeleteMessageBatch':
        this.delete(queue, new Set(Entries.map(({ ReceiptHandle }) => ReceiptHandle)));
        return all;
      case 'ChangeMessageVisibilityBatch':
        for (const { ReceiptHandle, VisibilityTimeout } of Entries) {
          const message = this.#messages(queue).find(({ id }) => id === ReceiptHandle);
          if (message) message.visibleAt = Date.now() + VisibilityTimeout * 1000;
        }
        return all;
      default:
        throw new Error(`SQS ${operation} is not known here`);
    }
  }
}

type DynamoInput = ConstructorParameters<typeof dynamoDb.GetItemCommand>[0];

/** The command of that name; what it does not know the table refuses itself. */
function dynamoCommand(operation: string, input: unknown): unknown {
  const Command = (dynamoDb as unknown as Record<string, new (input: DynamoInput) => unknown>)[
    `${operation}Command`
  ];
  if (!Command) throw new Error(`DynamoDB ${operation} is not known here`);
  return new Command(input as DynamoInput);
}

const md5 = (text: string): string => createHash('md5').update(text).digest('hex');

const attributes = ({ receives, sentAt, group }: Message): SQSRecord['attributes'] => ({
  ApproximateReceiveCount: String(receives),
  SentTimestamp: String(sentAt),
  SenderId: SENDER,
  ApproximateFirstReceiveTimestamp: String(sentAt),
  ...(group === undefined ? {} : { MessageGroupId: group }),
});

const received = (message: Message) => ({
  MessageId: message.id,
  ReceiptHandle: message.id,
  Body: message.body,
  MD5OfBody: md5(message.body),
  Attributes: attributes(message),
});

const record = (queue: string, message: Message): SQSRecord => ({
  ...sqsRecord(message.body, { messageId: message.id }),
  attributes: attributes(message),
  eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queue}`,
});

const CALLER = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::000000000000:user/entries</Arn><UserId>${SENDER}</UserId><Account>000000000000</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>`;

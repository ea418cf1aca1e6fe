import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import * as dynamoDb from '@aws-sdk/client-dynamodb';
import type { SQSEvent, SQSRecord } from 'aws-lambda';
import { systemClock } from '#shared/time/clock.ts';
import { FakeDynamoDb } from './fake-dynamodb.ts';
import { sqsRecord } from './sqs-event.ts';

/** A recorded call. */
export interface AwsCall {
  /** The access key's ID, by which tests identify the caller. */
  readonly who: string;
  /** The service name in the call's signature: `dynamodb`, `sqs`, `scheduler`, … */
  readonly service: string;
  /** For example `GetItem`. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly region: string;
  readonly path: string;
  /** The SDK's count of its tries, from 1. */
  readonly attempt: number;
}

type Answer = (call: AwsCall) => object | string | Promise<object>;

interface Message {
  readonly id: string;
  readonly body: string;
  readonly group: string | undefined;
  readonly sender: string;
  readonly sentAt: number;
  visibleAt: number;
  receives: number;
}

/** A message to send, to delete, or to make visible again, in the format of the SQS API. */
interface Entry {
  readonly Id: string;
  readonly MessageBody: string;
  readonly MessageGroupId?: string;
  readonly DelaySeconds?: number;
  readonly ReceiptHandle: string;
  readonly VisibilityTimeout: number;
}

/** The options of a sent message; absent: any sender, without a delay. */
interface Sent {
  readonly id?: string;
  readonly group?: string | undefined;
  readonly sender?: string;
  readonly delaySeconds?: number | undefined;
}

export interface AwsOverHttpOptions {
  /** Returns the value of a secret for a caller. */
  readonly secrets: (arn: string, who: string) => string;
  /** Invokes a function by its name with an event, and returns its response. */
  readonly invoke?: (functionName: string, event: object) => Promise<object>;
  /** The time that a receive call waits for messages. By default short, so that a stopped process ends soon. */
  readonly waitMs?: number;
  /** Returns a promise that a call waits for before it is answered. Absent: no call waits. */
  readonly held?: (call: AwsCall) => Promise<void> | undefined;
}

/** A message in flight is not delivered again for this long. */
const VISIBILITY_MS = 30_000;
const ACCOUNT = '123456789012';

/**
 * An in-memory account that answers over HTTP as AWS does to the project's code, and records all calls. An unknown call
 * is an error.
 */
export class AwsOverHttp {
  readonly calls: AwsCall[] = [];
  readonly table = new FakeDynamoDb(systemClock);
  readonly #queues = new Map<string, Message[]>();
  readonly #options: AwsOverHttpOptions;
  readonly #server = createServer(async (request, response) => {
    const call = callOf(request, await text(request));
    this.calls.push(call);
    try {
      await this.#options.held?.(call);
      const answer = await this.#answer(call);
      const isXml = typeof answer === 'string';
      response.writeHead(200, { 'content-type': isXml ? 'text/xml' : 'application/x-amz-json-1.0' });
      response.end(isXml ? answer : JSON.stringify(answer));
    } catch (error) {
      const { name, message, CancellationReasons } = error as Error & { CancellationReasons?: unknown };
      response.writeHead(400, { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-errortype': name });
      response.end(JSON.stringify({ __type: name, message, CancellationReasons }));
    }
  });

  private constructor(options: AwsOverHttpOptions) {
    this.#options = options;
  }

  static async start(options: AwsOverHttpOptions): Promise<AwsOverHttp> {
    const aws = new AwsOverHttp(options);
    aws.#server.listen(0, '127.0.0.1');
    await once(aws.#server, 'listening');
    return aws;
  }

  /** Returns the environment that makes every SDK client in a process call this account, as the given caller. */
  environment(who: string, region: string): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: who,
      AWS_SECRET_ACCESS_KEY: 'secret',
    };
  }

  by(who: string): readonly AwsCall[] {
    return this.calls.filter((call) => call.who === who);
  }

  /** Puts a message into a queue, by the queue's name. */
  send(
    queue: string,
    body: string,
    { id = randomUUID(), group, sender = userId('test'), delaySeconds = 0 }: Sent = {},
  ): void {
    const sentAt = Date.now();
    const visibleAt = sentAt + delaySeconds * 1000;
    this.#messages(queue).push({ id, body, group, sender, sentAt, visibleAt, receives: 0 });
  }

  /** Returns all bodies in a queue, in order. */
  bodies(queue: string): readonly string[] {
    return this.#messages(queue).map(({ body }) => body);
  }

  /** Returns the event that Lambda would pass to a function now; `undefined`: there are no messages. */
  take(queue: string, most = 10): SQSEvent | undefined {
    const taken = this.#take(queue, most);
    return taken.length > 0 ? { Records: taken.map((message) => record(queue, message)) } : undefined;
  }

  /** Deletes the messages that a function did not report as failed, as Lambda does. */
  delete(queue: string, ids: ReadonlySet<string>): void {
    const left = this.#messages(queue).filter(({ id }) => !ids.has(id));
    this.#queues.set(queue, left);
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #messages(queue: string): Message[] {
    const found = this.#queues.get(queue) ?? [];
    this.#queues.set(queue, found);
    return found;
  }

  /** Takes the first messages of a group, and none while one of the group is in flight. */
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

  #answer(call: AwsCall): ReturnType<Answer> {
    const answers: Readonly<Record<string, Answer>> = {
      dynamodb: ({ operation, input }) =>
        operation === 'DescribeLimits'
          ? { TableMaxWriteCapacityUnits: 40_000 }
          : this.table.perform(dynamoCommand(operation, input)),
      sqs: (request) => this.#sqs(request),
      scheduler: () => ({ ScheduleArn: 'arn:aws:scheduler:::schedule/x/y' }),
      events: ({ input }) => ({
        FailedEntryCount: 0,
        Entries: (input['Entries'] as readonly unknown[]).map(() => ({ EventId: randomUUID() })),
      }),
      secretsmanager: ({ input: { SecretId }, who }) => ({
        ARN: SecretId,
        Name: SecretId,
        SecretString: this.#options.secrets(String(SecretId), who),
      }),
      lambda: ({ operation, input, path }) => {
        if (operation === 'Invoke' && this.#options.invoke)
          return this.#options.invoke(functionOf(path), input);
        if (operation === 'GetAccountSettings')
          return { AccountLimit: { UnreservedConcurrentExecutions: 1_000 } };
        return { EventSourceMappings: [{ ScalingConfig: { MaximumConcurrency: 2 } }] };
      },
      monitoring: () => ({ MetricAlarms: [{ AlarmName: 'taintward-late', StateValue: 'OK' }] }),
      // Nothing listens there.
      eks: () => ({ cluster: { endpoint: 'https://127.0.0.1:9', certificateAuthority: { data: 'AA==' } } }),
      sts: ({ operation, who }) => xml(operation, IDENTITY[operation]?.(who) ?? ''),
    };
    const answer = answers[call.service];
    if (!answer) throw new Error(`nobody answers for ${call.service}`);
    return answer(call);
  }

  async #sqs({ operation, input, who }: AwsCall): Promise<object> {
    const queue = String(input['QueueName'] ?? String(input['QueueUrl']).split('/').at(-1));
    const entries = (input['Entries'] ?? []) as readonly Entry[];
    const send = ({ MessageBody: body, MessageGroupId: group, DelaySeconds: delaySeconds }: Entry) => {
      const id = randomUUID();
      this.send(queue, body, { id, group, delaySeconds, sender: userId(who) });
      return { MessageId: id, MD5OfMessageBody: md5(body) };
    };
    switch (operation) {
      case 'SendMessageBatch':
        return { Successful: entries.map((entry) => ({ Id: entry.Id, ...send(entry) })), Failed: [] };
      case 'SendMessage':
        return send(input as unknown as Entry);
      case 'ReceiveMessage': {
        const most = Number(input['MaxNumberOfMessages'] ?? 1);
        const end = Date.now() + (this.#options.waitMs ?? 200);
        let taken = this.#take(queue, most);
        for (; taken.length === 0 && Date.now() < end; taken = this.#take(queue, most)) await delay(20);
        return { Messages: taken.map((message) => received(message)) };
      }
      case 'DeleteMessage':
        this.delete(queue, new Set([String(input['ReceiptHandle'])]));
        return {};
      case 'DeleteMessageBatch':
        this.delete(queue, new Set(entries.map(({ ReceiptHandle }) => ReceiptHandle)));
        return { Successful: entries.map(({ Id }) => ({ Id })), Failed: [] };
      case 'ChangeMessageVisibilityBatch':
        for (const { ReceiptHandle, VisibilityTimeout } of entries) {
          const message = this.#messages(queue).find(({ id }) => id === ReceiptHandle);
          if (message) message.visibleAt = Date.now() + VisibilityTimeout * 1000;
        }
        return { Successful: entries.map(({ Id }) => ({ Id })), Failed: [] };
      case 'GetQueueUrl':
        return { QueueUrl: `https://sqs.eu-west-1.amazonaws.com/${ACCOUNT}/${queue}` };
      case 'GetQueueAttributes': {
        const ApproximateNumberOfMessages = String(this.#messages(queue).length);
        return { Attributes: { QueueArn: queueArn(queue), ApproximateNumberOfMessages } };
      }
      case 'StartMessageMoveTask':
        return { TaskHandle: 'h' };
      default:
        throw new Error(`SQS ${operation} is not known here`);
    }
  }
}

/** Returns the command of that name; the table itself rejects unknown commands. */
function dynamoCommand(operation: string, input: unknown): object {
  const Command = (dynamoDb as unknown as Record<string, new (input: unknown) => object>)[
    `${operation}Command`
  ];
  if (!Command) throw new Error(`DynamoDB ${operation} is not known here`);
  return new Command(input);
}

/** The user ID in the responses of STS and SQS. */
const userId = (who: string): string => `AROA${who}:1`;

const queueArn = (queue: string): string => `arn:aws:sqs:eu-west-1:${ACCOUNT}:${queue}`;

/** SDKs verify the hash of sent and received bodies. */
const md5 = (body: string): string => createHash('md5').update(body).digest('hex');

const attributes = ({ receives, sentAt, group, sender }: Message): SQSRecord['attributes'] => ({
  ApproximateReceiveCount: String(receives),
  SentTimestamp: String(sentAt),
  SenderId: sender,
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
  eventSourceARN: queueArn(queue),
});

const IDENTITY: Readonly<Record<string, (who: string) => string>> = {
  GetCallerIdentity: (who) =>
    `<Arn>arn:aws:sts::${ACCOUNT}:assumed-role/${who}/1</Arn><UserId>${userId(who)}</UserId><Account>${ACCOUNT}</Account>`,
  AssumeRole: () =>
    `<Credentials><AccessKeyId>ASSUMED</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>`,
};

const xml = (operation: string, result: string): string =>
  `<${operation}Response><${operation}Result>${result}</${operation}Result></${operation}Response>`;

/** Operations of APIs whose requests name no operation, by service and path. */
const REST: readonly { readonly service: string; readonly path: RegExp; readonly operation: string }[] = [
  { service: 'scheduler', path: /^\/schedules\/[^/]+$/, operation: 'CreateSchedule' },
  { service: 'eks', path: /^\/clusters\/[^/]+$/, operation: 'DescribeCluster' },
  { service: 'lambda', path: /\/invocations$/, operation: 'Invoke' },
  { service: 'lambda', path: /\/account-settings$/, operation: 'GetAccountSettings' },
  { service: 'lambda', path: /\/event-source-mappings\?/, operation: 'ListEventSourceMappings' },
];

/** Returns the function in a path of Lambda's API. */
export const functionOf = (path: string): string => /\/functions\/([^/]+)\//.exec(path)?.[1] ?? '';

function callOf({ headers, url = '' }: IncomingMessage, body: string): AwsCall {
  const [, who = '', region = '', service = ''] =
    /Credential=([^/]+)\/\d+\/([^/]+)\/([^/]+)\//.exec(`${headers.authorization}`) ?? [];
  const target = `${headers['x-amz-target'] ?? ''}`.replace(/^.*\./, '');
  const form = service === 'sts' ? Object.fromEntries(new URLSearchParams(body)) : undefined;
  const input = form ?? (body === '' ? {} : JSON.parse(body));
  const rest = REST.find((each) => each.service === service && each.path.test(url));
  return {
    who,
    service,
    region,
    path: url,
    attempt: Number(/attempt=(\d+)/.exec(`${headers['amz-sdk-request']}`)?.[1] ?? 1),
    input,
    operation: form?.['Action'] ?? (target || rest?.operation || ''),
  };
}

import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  DescribeTableCommand,
  GetItemCommand,
  ListTagsOfResourceCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { systemClock } from '#shared/time/clock.ts';
import { FakeDynamoDb } from '#test/world/fake-dynamodb.ts';

/** A call as it was made. */
export interface AwsCall {
  /** The access key's ID, by which tests tell who calls. */
  readonly who: string;
  /** As it signs its requests: `dynamodb`, `sqs`, `scheduler`, … */
  readonly service: string;
  /** For example `GetItem`. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly region: string;
  readonly path: string;
}

/** What is asked of the table. */
const COMMANDS: Readonly<Record<string, new (input: never) => object>> = {
  BatchGetItem: BatchGetItemCommand,
  BatchWriteItem: BatchWriteItemCommand,
  DeleteItem: DeleteItemCommand,
  DescribeTable: DescribeTableCommand,
  GetItem: GetItemCommand,
  ListTagsOfResource: ListTagsOfResourceCommand,
  PutItem: PutItemCommand,
  Query: QueryCommand,
  TransactWriteItems: TransactWriteItemsCommand,
  UpdateItem: UpdateItemCommand,
};

type Answer = (call: AwsCall) => object | string | Promise<object>;

export interface RecordingAwsOptions {
  /** What somebody finds in a secret. */
  readonly secrets: (arn: string, who: string) => string;
  /** Has a function, by its name, answer an event. */
  readonly invoke: (functionName: string, event: object) => Promise<object>;
}

/** An account that answers as AWS does to our code, in memory, and notes who called what. */
export class RecordingAws implements AsyncDisposable {
  readonly calls: AwsCall[] = [];
  readonly table = new FakeDynamoDb(systemClock);
  /** Bodies of messages that wait in queues which somebody polls, by the queue's name, and how often each was received before. */
  readonly polled = new Map<string, { readonly body: string; readonly receives: number }[]>();
  readonly #options: RecordingAwsOptions;
  readonly #server = createServer(async (request, response) => {
    const call = callOf(request, await text(request));
    this.calls.push(call);
    try {
      const answer = await this.#answer(call);
      const isXml = typeof answer === 'string';
      response.writeHead(200, { 'content-type': isXml ? 'text/xml' : 'application/x-amz-json-1.0' });
      response.end(isXml ? answer : JSON.stringify(answer));
    } catch (error) {
      const { name, message, CancellationReasons } = error as Error & { CancellationReasons?: unknown };
      response.writeHead(400, {
        'content-type': 'application/x-amz-json-1.0',
        'x-amzn-errortype': name,
      });
      response.end(JSON.stringify({ __type: name, message, CancellationReasons }));
    }
  });

  private constructor(options: RecordingAwsOptions) {
    this.#options = options;
  }

  static async open(options: RecordingAwsOptions): Promise<RecordingAws> {
    const aws = new RecordingAws(options);
    aws.#server.listen(0, '127.0.0.1');
    await once(aws.#server, 'listening');
    return aws;
  }

  /** What makes a process call it, as somebody. */
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

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(call: AwsCall): ReturnType<Answer> {
    const answers: Readonly<Record<string, Answer>> = {
      dynamodb: ({ operation, input }) => {
        if (operation === 'DescribeLimits') return { TableMaxWriteCapacityUnits: 40_000 };
        const Command = COMMANDS[operation];
        if (!Command) throw new Error(`nobody answers ${operation}`);
        return this.table.perform(new Command(input as never));
      },
      sqs: (asked) => this.#received(asked) ?? queueAnswer(asked),
      scheduler: () => ({ ScheduleArn: 'arn:aws:scheduler:::schedule/x/y' }),
      events: ({ input }) => ({
        FailedEntryCount: 0,
        Entries: (input['Entries'] as readonly unknown[]).map(() => ({ EventId: randomUUID() })),
      }),
      secretsmanager: ({ input, who }) => ({
        SecretString: this.#options.secrets(String(input['SecretId']), who),
      }),
      lambda: ({ operation, input, path }) => {
        if (operation === 'Invoke') return this.#options.invoke(functionOf(path), input);
        if (operation === 'GetAccountSettings')
          return { AccountLimit: { UnreservedConcurrentExecutions: 1_000 } };
        if (operation === 'GetFunctionConcurrency') return {};
        return { EventSourceMappings: [{ ScalingConfig: { MaximumConcurrency: 2 } }] };
      },
      monitoring: () => ({ MetricAlarms: [{ AlarmName: 'taintward-late', StateValue: 'OK' }] }),
      // Nobody listens there.
      eks: () => ({ cluster: { endpoint: 'https://127.0.0.1:9', certificateAuthority: { data: 'AA==' } } }),
      sts: ({ operation, who }) => xml(operation, IDENTITY[operation]?.(who) ?? ''),
    };
    const answer = answers[call.service];
    if (!answer) throw new Error(`nobody answers for ${call.service}`);
    return answer(call);
  }

  /** What somebody is given who polls; `undefined`: it is no such queue. */
  #received({ operation, input }: AwsCall): Promise<object> | undefined {
    const waiting = this.polled.get(String(input['QueueUrl']).split('/').at(-1) ?? '');
    if (operation !== 'ReceiveMessage' || !waiting) return undefined;
    const messages = waiting.splice(0).map(({ body, receives }) => ({
      ...{ MessageId: randomUUID(), ReceiptHandle: randomUUID(), Body: body, MD5OfBody: md5(body) },
      Attributes: { ApproximateReceiveCount: String(receives + 1), SentTimestamp: String(Date.now()) },
    }));
    return delay(messages.length === 0 ? EMPTY_MS : 0, { Messages: messages });
  }
}

const EMPTY_MS = 50;

const IDENTITY: Readonly<Record<string, (who: string) => string>> = {
  GetCallerIdentity: (who) =>
    `<Arn>arn:aws:sts::123456789012:assumed-role/${who}/1</Arn><UserId>AROA${who}:1</UserId><Account>123456789012</Account>`,
  AssumeRole: () =>
    `<Credentials><AccessKeyId>ASSUMED</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>`,
};

const xml = (operation: string, result: string): string =>
  `<${operation}Response><${operation}Result>${result}</${operation}Result></${operation}Response>`;

/** SDKs look whether what comes is what was sent. */
const md5 = (body: string): string => createHash('md5').update(body).digest('hex');

function queueAnswer({ operation, input }: AwsCall): object {
  const name = String(input['QueueName'] ?? String(input['QueueUrl']).split('/').at(-1));
  switch (operation) {
    case 'SendMessageBatch': {
      const entries = input['Entries'] as readonly {
        Id: string;
        MessageBody: string;
        MessageAttributes?: object;
      }[];
      return {
        Successful: entries.map(({ Id, MessageBody }) => ({
          Id,
          MessageId: randomUUID(),
          MD5OfMessageBody: md5(MessageBody),
        })),
      };
    }
    case 'GetQueueUrl':
      return { QueueUrl: `https://sqs.eu-west-1.amazonaws.com/123456789012/${name}` };
    case 'GetQueueAttributes':
      return {
        Attributes: {
          QueueArn: `arn:aws:sqs:eu-west-1:123456789012:${name}`,
          ApproximateNumberOfMessages: '1',
        },
      };
    case 'ReceiveMessage':
      return {
        Messages: [
          {
            MessageId: 'm1',
            ReceiptHandle: 'r1',
            Body: '{}',
            MD5OfBody: md5('{}'),
            Attributes: { SentTimestamp: '0' },
          },
        ],
      };
    case 'StartMessageMoveTask':
      return { TaskHandle: 'h' };
    case 'SendMessage':
      return { MessageId: randomUUID(), MD5OfMessageBody: md5(String(input['MessageBody'])) };
    case 'DeleteMessage':
      return {};
    default:
      return { Successful: [] };
  }
}

/** What we ask of APIs that name no operation, by service and path. */
const REST: readonly { readonly service: string; readonly path: RegExp; readonly operation: string }[] = [
  { service: 'scheduler', path: /^\/schedules\/[^/]+$/, operation: 'CreateSchedule' },
  { service: 'eks', path: /^\/clusters\/[^/]+$/, operation: 'DescribeCluster' },
  { service: 'lambda', path: /\/invocations$/, operation: 'Invoke' },
  { service: 'lambda', path: /\/account-settings$/, operation: 'GetAccountSettings' },
  { service: 'lambda', path: /\/event-source-mappings\?/, operation: 'ListEventSourceMappings' },
  { service: 'lambda', path: /\/functions\/[^/]+\/concurrency$/, operation: 'GetFunctionConcurrency' },
];

/** The function that a path of Lambda names. */
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
    input,
    operation: form?.['Action'] ?? (target || rest?.operation || ''),
  };
}

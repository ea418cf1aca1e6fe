import { PRICES, perMillion } from '#test/costs/prices.ts';
import type { AwsRequest } from './aws-tap.ts';
import type { Invocation } from './raw-aws.ts';

/** SQS bills a request once for every 64 KiB of its payload. */
const SQS_CHUNK_BYTES = 64 * 1024;
/** A strongly consistent read unit reads this many bytes. */
const READ_UNIT_BYTES = 4 * 1024;
const WRITES = ['TransactWriteItems', 'PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem'];
const MIB_PER_GB = 1024;
const BYTES_PER_GB = 1024 ** 3;

/** One line of a bill. */
export interface BillLine {
  readonly what: string;
  /** Requests to AWS, or invocations. */
  readonly calls: number;
  readonly units: string;
  readonly dollars: number;
  /** The part of `dollars` that is for computing time. */
  readonly computeDollars?: number;
}

/**
 * A function's invocations and log, and the kind of the queue from which its event source received and deleted
 * messages.
 */
export interface FunctionWork {
  readonly name: string;
  readonly queue: 'fifo' | 'standard';
  readonly invocations: readonly Invocation[];
  readonly logged: readonly string[];
}

/** Returns the costs of requests and invocations, line by line. Polls that found nothing are not included. */
export function bill(
  requests: readonly AwsRequest[],
  functions: readonly FunctionWork[],
): readonly BillLine[] {
  const kinds = Map.groupBy(requests, kindOf);
  return [
    ...[...kinds].map(([what, of]) => requestLine(what, of)),
    ...functions.flatMap((work) => [invocationLine(work), pollLine(work), logLine(work)]),
  ].filter(({ dollars }) => dollars > 0);
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

function kindOf({ service, operation, body }: AwsRequest): string {
  if (service !== 'sqs') return `${service} ${operation}`;
  return `sqs ${operation} ${queueKind(body)}`;
}

const queueKind = (body: string): FunctionWork['queue'] =>
  /"QueueUrl":"[^"]*\.fifo"/.test(body) ? 'fifo' : 'standard';

function requestLine(what: string, requests: readonly AwsRequest[]): BillLine {
  const [{ service, operation, body } = { service: '', operation: '', body: '' }] = requests;
  const calls = requests.length;
  switch (service) {
    case 'dynamodb': {
      const write = WRITES.includes(operation);
      const units = sum(
        requests.map((request) => (write ? (request.capacityUnits ?? 0) : readUnits(request))),
      );
      const price = write ? PRICES.dynamoDbWritesPerMillion : PRICES.dynamoDbReadsPerMillion;
      return { what, calls, units: `${units} ${write ? 'WRU' : 'RRU'}`, dollars: perMillion(units, price) };
    }
    case 'sqs': {
      const units = sum(requests.map((request) => Math.ceil(request.body.length / SQS_CHUNK_BYTES)));
      return {
        what,
        calls,
        units: `${units} requests`,
        dollars: perMillion(units, sqsPrice(queueKind(body))),
      };
    }
    case 'scheduler':
      return {
        what,
        calls,
        units: `${calls} schedules`,
        dollars: perMillion(calls, PRICES.schedulerPerMillion),
      };
    default:
      throw new Error(`There is no price for ${what}.`);
  }
}

/** The stand-in counts one unit per read. A response's JSON is longer than the size that DynamoDB counts. */
const readUnits = ({ capacityUnits = 0, answerBytes = 0 }: AwsRequest): number =>
  Math.max(capacityUnits, Math.ceil(answerBytes / READ_UNIT_BYTES));

function invocationLine({ name, invocations }: FunctionWork): BillLine {
  const gbSeconds = sum(
    invocations.map(({ durationMs, memoryMiB }) => (durationMs / 1000) * (memoryMiB / MIB_PER_GB)),
  );
  const computeDollars = gbSeconds * PRICES.lambdaArmPerGbSecond;
  return {
    what: `lambda Invoke ${name}`,
    calls: invocations.length,
    units: `${gbSeconds.toFixed(3)} GB-s`,
    dollars: perMillion(invocations.length, PRICES.lambdaRequestsPerMillion) + computeDollars,
    computeDollars,
  };
}

/** For each batch the event source receives once and deletes once. */
function pollLine({ name, queue, invocations }: FunctionWork): BillLine {
  const calls = 2 * invocations.length;
  return {
    what: `sqs ReceiveMessage and DeleteMessageBatch for ${name} ${queue}`,
    calls,
    units: `${calls} requests`,
    dollars: perMillion(calls, sqsPrice(queue)),
  };
}

/** Log lines are no calls, but cost money. */
function logLine({ name, logged }: FunctionWork): BillLine {
  const bytes = sum(logged.map((line) => Buffer.byteLength(line)));
  return {
    what: `log of ${name}`,
    calls: 0,
    units: `${bytes} bytes`,
    dollars: (bytes / BYTES_PER_GB) * PRICES.logsPerGb,
  };
}

const sqsPrice = (queue: FunctionWork['queue']): number =>
  queue === 'fifo' ? PRICES.sqsFifoPerMillion : PRICES.sqsStandardPerMillion;

import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import { until } from '#test/cluster/rig/until.ts';
import { TRACE_ATTRIBUTE } from './loops/counted.ts';
import { type Lineage, lineageIn, lineageText } from './loops/lineage.ts';

/** A request to AWS that passed through the tap. */
export interface AwsRequest {
  readonly at: number;
  /** The service name in the request's signature: `dynamodb`, `sqs`, `scheduler`, … */
  readonly service: string;
  /** `GetItem`; for a REST API the method and resource: `POST /schedules`. */
  readonly operation: string;
  readonly body: string;
  /** The lineage of the chain of requests that it belongs to, from the SDK's header. */
  readonly lineage: Lineage;
  /** The response's status; `undefined` before the response. */
  status?: number;
  answerBytes?: number;
  /** The request units that a DynamoDB request used, from the endpoint's response. */
  capacityUnits?: number;
}

/** Requests that are kept from AWS until they are released. */
export interface HeldRequests {
  first(): Promise<AwsRequest>;
  release(): void;
}

interface Hold {
  readonly matches: (request: AwsRequest) => boolean;
  readonly requests: AwsRequest[];
  readonly released: Promise<void>;
}

const CREDENTIAL = /Credential=[^/]+\/\d+\/[^/]+\/([^/]+)\//;
const HOP_BY_HOP = ['connection', 'transfer-encoding', 'keep-alive', 'content-length'];

const Capacity = z.object({ CapacityUnits: z.number() });
const Answer = z.object({ ConsumedCapacity: z.union([Capacity, z.array(Capacity)]).optional() });

const Sent = z.looseObject({ MessageAttributes: z.record(z.string(), z.unknown()).nullish() });
const SentBatch = z.looseObject({ Entries: z.array(Sent) });

/**
 * A proxy between clients of AWS and its stand-in. It records requests, asks DynamoDB for the capacity that each
 * request uses, passes chains of requests on to queues as SQS does, and can hold requests back. The stand-in does not
 * check signatures.
 */
export class AwsTap {
  readonly requests: AwsRequest[] = [];
  /** The lineage of requests that have none. */
  chain: Lineage = new Map();
  readonly #upstream: URL;
  readonly #agent = new http.Agent({ keepAlive: true });
  readonly #holds = new Set<Hold>();
  readonly #server: http.Server;

  private constructor(upstream: URL) {
    this.#upstream = upstream;
    this.#server = http.createServer((request, response) => {
      this.#pass(request, response).catch(() => response.destroy());
    });
  }

  /** `upstream`: the endpoint behind the tap, which need not answer yet. */
  static async open(upstream: string): Promise<AwsTap> {
    const tap = new AwsTap(new URL(upstream));
    tap.#server.listen(0, '127.0.0.1');
    await once(tap.#server, 'listening');
    return tap;
  }

  /** The endpoint for an SDK. */
  get url(): string {
    return `http://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  since(at: number): readonly AwsRequest[] {
    return this.requests.filter((request) => request.at >= at);
  }

  /** Keeps matching requests from AWS from now on. */
  hold(matches: (request: AwsRequest) => boolean): HeldRequests {
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const hold: Hold = { matches, requests: [], released };
    this.#holds.add(hold);
    return {
      first: () => until('the awaited AWS request comes', () => hold.requests[0]),
      release: () => {
        this.#holds.delete(hold);
        resolve();
      },
    };
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await closed;
  }

  async #pass(incoming: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { headers, method = '', url = '' } = incoming;
    const raw = await buffer(incoming);
    const service = CREDENTIAL.exec(headers.authorization ?? '')?.[1] ?? '';
    const target = String(headers['x-amz-target'] ?? '');
    const operation = target.slice(target.lastIndexOf('.') + 1) || `${method} /${url.split(/[/?]/)[1]}`;
    const parent = lineageIn(String(headers['x-amzn-trace-id'] ?? ''));
    const lineage = parent.size > 0 ? parent : this.chain;
    const request: AwsRequest = { at: Date.now(), service, operation, body: raw.toString(), lineage };
    this.requests.push(request);
    for (const hold of [...this.#holds].filter(({ matches }) => matches(request))) {
      hold.requests.push(request);
      await hold.released;
    }
    await this.#forward(request, { incoming, raw }, response);
  }

  async #forward(
    request: AwsRequest,
    { incoming, raw }: { readonly incoming: http.IncomingMessage; readonly raw: Buffer },
    response: http.ServerResponse,
  ): Promise<void> {
    const measured = request.service === 'dynamodb';
    const body = measured ? Buffer.from(withCapacity(request.body)) : chained(request, raw);
    const { hostname, port } = this.#upstream;
    const call = http.request({
      hostname,
      port,
      agent: this.#agent,
      method: incoming.method,
      path: incoming.url,
      headers: { ...withoutHops(incoming.headers), 'content-length': body.length },
    });
    response.once('close', () => call.destroy());
    call.end(body);
    const [answer] = (await once(call, 'response')) as [http.IncomingMessage];
    const content = await buffer(answer);
    request.status = answer.statusCode ?? 0;
    request.answerBytes = content.length;
    if (measured && request.status === 200) request.capacityUnits = capacityOf(content);
    response.writeHead(request.status, { ...withoutHops(answer.headers), 'content-length': content.length });
    response.end(content);
  }
}

const withoutHops = (headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));

const withCapacity = (body: string): string =>
  JSON.stringify({ ...JSON.parse(body), ReturnConsumedCapacity: 'TOTAL' });

/** Returns a request that sends messages, with its chain in an attribute of each message. */
function chained({ operation, body, lineage }: AwsRequest, raw: Buffer): Buffer {
  if (lineage.size === 0 || !operation.startsWith('SendMessage')) return raw;
  const header = { DataType: 'String', StringValue: lineageText(lineage) };
  const marked = (message: z.output<typeof Sent>) => ({
    ...message,
    MessageAttributes: { ...message.MessageAttributes, [TRACE_ATTRIBUTE]: header },
  });
  const sent: unknown = JSON.parse(body);
  if (operation === 'SendMessage') return Buffer.from(JSON.stringify(marked(Sent.parse(sent))));
  const { Entries, ...batch } = SentBatch.parse(sent);
  return Buffer.from(JSON.stringify({ ...batch, Entries: Entries.map(marked) }));
}

function capacityOf(answer: Buffer): number {
  const { ConsumedCapacity = [] } = Answer.parse(JSON.parse(answer.toString()));
  return [ConsumedCapacity].flat().reduce((sum, { CapacityUnits }) => sum + CapacityUnits, 0);
}

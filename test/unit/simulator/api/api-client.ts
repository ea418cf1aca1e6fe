import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterEach, beforeEach } from 'node:test';
import { type SimulatedApiServer, startApiServer } from '#simulator/api/server.ts';
import { aStore } from '../builders.ts';

export interface Answer {
  readonly code: number;
  readonly text: string;
  /** The body, if it is one JSON document. */
  readonly body: unknown;
}

/** Returns the value at a path in parsed JSON, or `undefined`. */
export function at(json: unknown, ...path: readonly (string | number)[]): unknown {
  let value = json;
  for (const name of path) {
    value = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  }
  return value;
}

/** Returns the value at a path in each item of a list. */
export const each = (list: unknown, ...path: readonly (string | number)[]): unknown[] =>
  Array.isArray(list) ? list.map((item) => at(item, ...path)) : [];

export interface CallOptions {
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Client of the simulated API server that connects as real clients do: over TLS, with the server's token. */
export class ApiClient {
  readonly #server: SimulatedApiServer;

  constructor(server: SimulatedApiServer) {
    this.#server = server;
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const response = await this.#send(method, path, options);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(Buffer.from(chunk));
    const text = Buffer.concat(chunks).toString();
    const isOne = response.headers['content-type'] === 'application/json' && !text.includes('}\n{');
    return { code: response.statusCode ?? 0, text, body: isOne ? JSON.parse(text) : undefined };
  }

  get = (path: string, headers?: Readonly<Record<string, string>>) =>
    this.call('GET', path, headers === undefined ? {} : { headers });
  post = (path: string, body: unknown) => this.call('POST', path, { body });
  delete = (path: string, body?: unknown) => this.call('DELETE', path, body === undefined ? {} : { body });
  patch = (path: string, type: string, body: unknown) =>
    this.call('PATCH', path, { body, type: `application/${type}-patch+json` });

  /** Yields the events of a watch until the server ends it. */
  async *watch(path: string): AsyncGenerator<unknown> {
    const response = await this.open(path);
    let unfinished = '';
    for await (const chunk of response.setEncoding('utf8')) {
      const lines = (unfinished + chunk).split('\n');
      unfinished = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line);
    }
  }

  /** Returns the response to a GET, unread. */
  open = (path: string) => this.#send('GET', path, {});

  async #send(method: string, path: string, { body, type, headers }: CallOptions): Promise<IncomingMessage> {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const outgoing = request(`${this.#server.url}${path}`, {
      method,
      ca: this.#server.certificate,
      headers: {
        authorization: `Bearer ${this.#server.token}`,
        ...(text === undefined
          ? {}
          : { 'content-type': type ?? 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...headers,
      },
    });
    outgoing.end(text);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return response;
  }
}

/** Serves a new cluster during each test of a file. */
export function servedCluster() {
  const start = async () => {
    const store = aStore({ historyLimit: 10 });
    const server = await startApiServer(store);
    return { store, server, client: new ApiClient(server) };
  };
  const served = {} as Awaited<ReturnType<typeof start>>;
  beforeEach(async () => {
    Object.assign(served, await start());
  });
  afterEach(() => served.server.close());
  return served;
}

/** Headers of a request for a table, as kubectl sends them. */
export const AS_TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' };

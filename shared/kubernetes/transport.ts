import http from 'node:http';
import https from 'node:https';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { ApiError } from './api-error.ts';
import { type Call, METHODS } from './call.ts';
import { failure, refusal, unreachable } from './call-errors.ts';
import type { Connection, RequestAccess } from './connection.ts';
import { parseInt64Json } from './int64-json.ts';
import { splitLines } from './split-lines.ts';

/** For one whole call, watches apart. Half of what the API server itself allows (`--request-timeout` 60 s). */
export const REQUEST_TIMEOUT_MS = 30_000;
/**
 * Connections to one server: the evictions that run in parallel, two watches and a list, and no more, for each
 * may hold one of the 400 requests that a default API server serves at once (`--max-requests-inflight`).
 */
const MAX_SOCKETS = 64;
/** Idle connections go before servers (90 s) and load balancers (60 s) cut them, perhaps under a request. */
const IDLE_SOCKET_MS = 30_000;
const AGENT_OPTIONS: http.AgentOptions = {
  keepAlive: true,
  maxSockets: MAX_SOCKETS,
  timeout: IDLE_SOCKET_MS,
};
/** How a connection ends that the server closed while it was idle. */
const CUT_WHILE_IDLE: readonly unknown[] = ['ECONNRESET', 'EPIPE'];

/**
 * JSON over HTTP/1.1 to one API server, on connections that are kept and bounded in number. Every method rejects
 * with `ApiError`, for a refusal and for no answer alike.
 */
export class Transport {
  readonly #connection: Connection;
  readonly #plainAgent = new http.Agent(AGENT_OPTIONS);
  readonly #tlsAgent = new https.Agent(AGENT_OPTIONS);
  #closed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Names the server in messages. */
  get host(): string {
    return this.#connection.host;
  }

  /** The answer's JSON; integers beyond 2^53 are bigints. */
  async read(call: Call): Promise<unknown> {
    const body = await this.#within(REQUEST_TIMEOUT_MS, call, async (signal) => {
      const response = await this.#open(call, signal);
      return bodyText(response);
    });
    return this.parse(call, body);
  }

  /** For calls whose answer says nothing that success does not. */
  async perform(call: Call): Promise<void> {
    await this.#within(REQUEST_TIMEOUT_MS, call, async (signal) => {
      const response = await this.#open(call, signal);
      // To its end, so that the next call finds the connection free.
      for await (const _ of response);
    });
  }

  /**
   * The answer's lines as they come, for at most `timeoutMs`; reads no faster than the caller. Returns when the
   * server ends the answer or `call.signal` aborts.
   */
  async *lines(call: Call, timeoutMs: number): AsyncGenerator<string, void, undefined> {
    const deadline = AbortSignal.timeout(timeoutMs);
    try {
      const response = await this.#open(call, anyOf(deadline, call.signal));
      response.setEncoding('utf8');
      for await (const line of splitLines(response)) {
        if (call.signal?.aborted) return;
        yield line;
      }
    } catch (error) {
      if (call.signal?.aborted) return;
      throw this.#explain(call, error, deadline, timeoutMs);
    }
  }

  parse(call: Call, json: string): unknown {
    try {
      return parseInt64Json(json);
    } catch {
      throw failure(call, this.host, "its answer is not JSON, so not a Kubernetes API server's");
    }
  }

  /** Ends all connections; a call under way rejects. */
  close(): void {
    this.#closed = true;
    this.#plainAgent.destroy();
    this.#tlsAgent.destroy();
  }

  async #within<T>(timeoutMs: number, call: Call, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = AbortSignal.timeout(timeoutMs);
    try {
      return await run(anyOf(deadline, call.signal));
    } catch (error) {
      throw this.#explain(call, error, deadline, timeoutMs);
    }
  }

  #explain(call: Call, error: unknown, deadline: AbortSignal, timeoutMs: number): ApiError {
    if (error instanceof ApiError) return error;
    if (call.signal?.aborted) return failure(call, this.host, 'the call was aborted', error);
    if (deadline.aborted) {
      return failure(call, this.host, `there was no complete answer within ${timeoutMs / 1000} s`, error);
    }
    return unreachable(call, this.host, error);
  }

  /** Sends the call. Resolves with an answer that is a success, its body still to be read. */
  async #open(call: Call, signal: AbortSignal): Promise<http.IncomingMessage> {
    const access = await this.#access(call);
    const response = await this.#send(call, access, signal);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    if (status === 401) this.#connection.forgetCredentials?.();
    throw refusal(call, this.host, status, await bodyText(response), response.headers['retry-after']);
  }

  async #access(call: Call): Promise<RequestAccess> {
    try {
      return await this.#connection.requestOptions();
    } catch (error) {
      const why = error instanceof Error ? error.message.replace(/\.$/, '') : 'no credentials';
      throw failure(call, this.host, why, error);
    }
  }

  #send(call: Call, access: RequestAccess, signal: AbortSignal): Promise<http.IncomingMessage> {
    const { server, headers, ...tls } = access;
    const { protocol, origin, pathname } = server;
    const [client, agent] = protocol === 'https:' ? [https, this.#tlsAgent] : [http, this.#plainAgent];
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const query = call.query === undefined ? '' : `?${new URLSearchParams(call.query)}`;
    return new Promise((resolve, reject) => {
      const request = client.request(`${origin}${pathname.replace(/\/$/, '')}${call.path}${query}`, {
        ...tls,
        method: METHODS[call.verb],
        agent,
        signal,
        headers: {
          ...headers,
          accept: 'application/json',
          'user-agent': 'taintward',
          // Lists shrink to a tenth; a proxy that compresses a watch would hold its events back.
          ...(call.verb === 'watch' ? {} : { 'accept-encoding': 'gzip' }),
          ...(body === undefined
            ? {}
            : {
                'content-type': call.contentType ?? 'application/json',
                // Node sends a DELETE's body without its length unless told.
                'content-length': Buffer.byteLength(body),
              }),
        },
      });
      let answered = false;
      request.once('response', (response) => {
        answered = true;
        resolve(response);
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        const stale = request.reusedSocket && CUT_WHILE_IDLE.includes(error.code);
        // Every call we make may be made twice: UIDs and names guard it.
        if (stale && !answered && !this.#closed) resolve(this.#send(call, access, signal));
        else reject(error);
      });
      request.end(body);
    });
  }
}

const anyOf = (deadline: AbortSignal, signal: AbortSignal | undefined): AbortSignal =>
  signal === undefined ? deadline : AbortSignal.any([deadline, signal]);

const unzip = promisify(gunzip);

async function bodyText(response: http.IncomingMessage): Promise<string> {
  const bytes = await buffer(response);
  return (response.headers['content-encoding'] === 'gzip' ? await unzip(bytes) : bytes).toString();
}

import http from 'node:http';
import https from 'node:https';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Clock, systemClock } from '#shared/time/clock.ts';
import { ApiError, LateCallError } from './api-error.ts';
import { Breaker } from './breaker.ts';
import { type Call, callText, METHODS } from './call.ts';
import { failure, refusal, unreachable } from './call-errors.ts';
import { ClockSkew } from './clock-skew.ts';
import type { Connection, RequestAccess } from './connection.ts';
import { parseInt64Json } from './int64-json.ts';
import { Sockets } from './sockets.ts';
import { splitLines } from './split-lines.ts';
import { Turns } from './turns.ts';

/** For one call from its turn on: the connection, the request and the whole answer. */
export const CALL_TIMEOUT_MS = 10_000;
/** For one page of a list, which may hold megabytes. Half of what the API server allows (`--request-timeout`). */
export const PAGE_TIMEOUT_MS = 30_000;
/** Each may hold one of the 400 requests that a default API server serves at once (`--max-requests-inflight`). */
const MAX_SOCKETS = 64;
/** Fewer than there are sockets, so that no call waits for one: a socket takes a moment to be free again. */
const CALLS_AT_ONCE = 48;
/** How a connection ends that the server closed while it was idle. */
const CUT_WHILE_IDLE: readonly unknown[] = ['ECONNRESET', 'EPIPE'];

/**
 * JSON over HTTP/1.1 to one API server, on connections that are kept. Calls take turns and fail at once while the
 * server does not answer; lists and watches have connections of their own and are always tried. Every method
 * rejects with `ApiError`, for a refusal and for no answer alike.
 */
export class Transport {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #turns = new Turns(CALLS_AT_ONCE);
  readonly #breaker = new Breaker();
  readonly #skew = new ClockSkew();
  readonly #calling = new Sockets(MAX_SOCKETS);
  readonly #following = new Sockets();
  #closed = false;

  constructor(connection: Connection, clock: Clock = systemClock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** Names the server in messages. */
  get host(): string {
    return this.#connection.host;
  }

  /** Milliseconds by which the server's clock is ahead of ours; `undefined` while that is not known. */
  get skewMs(): number | undefined {
    return this.#skew.at(this.#clock.now());
  }

  /** The server counts as out of reach. */
  get breakerOpen(): boolean {
    return this.#breaker.open;
  }

  /** The answer's JSON; integers beyond 2^53 are bigints. Rejects with `LateCallError`, too, if the call has a `notAfter`. */
  async read(call: Call): Promise<unknown> {
    return this.parse(call, await this.#inTurn(call, bodyText));
  }

  /** As {@link read}, for calls whose answer says nothing that success does not. */
  async perform(call: Call): Promise<void> {
    await this.#inTurn(call, async (response) => {
      // To its end, so that the next call finds the connection free.
      for await (const _ of response);
    });
  }

  /** As {@link read}, for a page of a list. */
  async readPage(call: Call): Promise<unknown> {
    const access = await this.#access(call);
    const page = await this.#within(PAGE_TIMEOUT_MS, call, async (signal) =>
      bodyText(await this.#open(call, access, this.#following, signal)),
    );
    return this.parse(call, page);
  }

  /**
   * The answer's lines as they come, for at most `timeoutMs`; reads no faster than the caller. Returns when the
   * server ends the answer or `call.signal` aborts.
   */
  async *lines(call: Call, timeoutMs: number): AsyncGenerator<string, void, undefined> {
    const deadline = new Deadline(timeoutMs, call.signal);
    try {
      const access = await this.#access(call);
      const response = await this.#open(call, access, this.#following, deadline.signal);
      response.setEncoding('utf8');
      for await (const line of splitLines(response)) {
        if (call.signal?.aborted) return;
        yield line;
      }
    } catch (error) {
      if (call.signal?.aborted) return;
      throw this.#explain(call, error, deadline);
    } finally {
      deadline.clear();
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
    this.#calling.close();
    this.#following.close();
  }

  async #inTurn<T>(call: Call, use: (response: http.IncomingMessage) => Promise<T>): Promise<T> {
    this.#refuseWhileOpen(call);
    return this.#turns.run(
      async () => {
        this.#refuseLate(call);
        this.#refuseWhileOpen(call);
        const begun = this.#breaker.begin(this.#clock.now());
        // Not part of the call's time: a plugin may take longer, and nobody gets on without it.
        const access = await this.#access(call);
        try {
          return await this.#within(CALL_TIMEOUT_MS, call, async (signal) =>
            use(await this.#open(call, access, this.#calling, signal)),
          );
        } catch (error) {
          if (error instanceof ApiError && !this.#closed) this.#breaker.failed(begun, this.#clock.now());
          throw error;
        }
      },
      { inHurry: call.notAfter !== undefined },
    );
  }

  #refuseWhileOpen(call: Call): void {
    const until = this.#breaker.refusesUntil(this.#clock.now());
    if (until === undefined) return;
    const at = new Date(until).toISOString();
    throw failure(call, this.host, `it did not answer several calls in a row and is not asked before ${at}`);
  }

  #refuseLate(call: Call): void {
    if (this.#isLate(call)) throw this.#late(call);
  }

  #isLate({ notAfter }: Call): boolean {
    return notAfter !== undefined && this.#clock.now() > notAfter;
  }

  #late(call: Call): LateCallError {
    return new LateCallError(`Did not ${callText(call)} at ${this.host}: it could not be sent in time.`);
  }

  async #within<T>(timeoutMs: number, call: Call, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = new Deadline(timeoutMs, call.signal);
    try {
      return await run(deadline.signal);
    } catch (error) {
      throw this.#explain(call, error, deadline);
    } finally {
      deadline.clear();
    }
  }

  #explain(call: Call, error: unknown, deadline: Deadline): ApiError | LateCallError {
    if (error instanceof ApiError || error instanceof LateCallError) return error;
    if (call.signal?.aborted) return failure(call, this.host, 'the call was aborted', error);
    if (deadline.passed) {
      return failure(call, this.host, `there was no complete answer within ${deadline.ms / 1000} s`, error);
    }
    return unreachable(call, this.host, error);
  }

  async #access(call: Call): Promise<RequestAccess> {
    try {
      return await this.#connection.requestOptions();
    } catch (error) {
      const why = error instanceof Error ? error.message.replace(/\.$/, '') : 'no credentials';
      throw failure(call, this.host, why, error);
    }
  }

  /** Sends the call. Resolves with an answer that is a success, its body still to be read. */
  async #open(
    call: Call,
    access: RequestAccess,
    sockets: Sockets,
    signal: AbortSignal,
  ): Promise<http.IncomingMessage> {
    if (this.#closed) throw failure(call, this.host, 'its connections were closed');
    signal.throwIfAborted();
    const response = await this.#send(call, access, sockets, signal);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    if (status === 401) this.#connection.forgetCredentials?.();
    throw refusal(call, this.host, response, await bodyText(response));
  }

  #send(
    call: Call,
    access: RequestAccess,
    sockets: Sockets,
    signal: AbortSignal,
  ): Promise<http.IncomingMessage> {
    const { server, headers, ...tls } = access;
    const { origin, pathname } = server;
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const query = call.query === undefined ? '' : `?${new URLSearchParams(call.query)}`;
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const client = server.protocol === 'https:' ? https : http;
    const request = client.request(`${origin}${pathname.replace(/\/$/, '')}${call.path}${query}`, {
      ...tls,
      method: METHODS[call.verb],
      agent: sockets.agentFor(server),
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
    let over = false;
    const giveUp = (reason: unknown): void => {
      over = true;
      request.destroy();
      reject(reason);
    };
    // Without a socket a request that is destroyed does not say so.
    const aborted = () => giveUp(signal.reason);
    signal.addEventListener('abort', aborted);
    const giveUpLate = () => giveUp(this.#late(call));
    const lateTimer =
      call.notAfter === undefined ? undefined : setTimeout(giveUpLate, call.notAfter - this.#clock.now());

    let sentAt = 0;
    request.once('socket', () => {
      clearTimeout(lateTimer);
      // The socket is connected: what is written now is sent now.
      if (this.#isLate(call)) return giveUpLate();
      sentAt = this.#clock.now();
      request.end(body);
    });
    request.once('response', (response) => {
      over = true;
      this.#breaker.answered();
      const date = Date.parse(response.headers.date ?? '');
      if (date) this.#skew.hear({ sentAt, receivedAt: this.#clock.now(), date });
      resolve(response);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      const stale = request.reusedSocket && CUT_WHILE_IDLE.includes(error.code);
      // Every call we make may be made twice: UIDs and names guard it.
      if (stale && !over && !this.#closed && !this.#isLate(call)) {
        const again = this.#send(call, access, sockets, signal);
        // One that comes too late now was perhaps sent before.
        resolve(again.catch((second) => Promise.reject(second instanceof LateCallError ? error : second)));
      } else {
        reject(error);
      }
    });
    return promise.finally(() => {
      clearTimeout(lateTimer);
      signal.removeEventListener('abort', aborted);
    });
  }
}

/** A time limit that aborts a signal, as the caller's own signal does. Unlike `AbortSignal.timeout` it can be cleared. */
class Deadline {
  readonly ms: number;
  readonly signal: AbortSignal;
  readonly #passed = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number, signal: AbortSignal | undefined) {
    this.ms = ms;
    this.signal = signal ? AbortSignal.any([this.#passed.signal, signal]) : this.#passed.signal;
    this.#timer = setTimeout(() => this.#passed.abort(), ms);
  }

  get passed(): boolean {
    return this.#passed.signal.aborted;
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

const unzip = promisify(gunzip);

async function bodyText(response: http.IncomingMessage): Promise<string> {
  const bytes = await buffer(response);
  return (response.headers['content-encoding'] === 'gzip' ? await unzip(bytes) : bytes).toString();
}

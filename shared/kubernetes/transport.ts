import { promisify } from 'node:util';
import { gunzip, gunzipSync } from 'node:zlib';
import { type Clock, systemClock } from '#shared/time/clock.ts';
import { ApiError, failure, LateCallError, late, refusal, unreachable, watchError } from './api-error.ts';
import { parseInt64Json } from './api-json.ts';
import { Breaker } from './breaker.ts';
import type { Trim } from './bulk.ts';
import type { Call } from './call.ts';
import { ClockSkew } from './clock-skew.ts';
import type { Connection, RequestAccess } from './connection.ts';
import { HalfLineError, LongLineError, splitLines } from './lines.ts';
import { type ListJson, readListJson } from './list-json.ts';
import { paced } from './pace.ts';
import { type Answer, Sockets } from './sockets.ts';
import { Turns } from './turns.ts';

/** For one call from its turn on: the connection, the request and the whole answer. */
export const CALL_TIMEOUT_MS = 10_000;
/** For one page of a list, which may hold megabytes. Half of what the API server allows (`--request-timeout`). */
export const PAGE_TIMEOUT_MS = 30_000;
/** etcd takes objects of 1.5 MiB (`--max-request-bytes`), which JSON may write longer; no server has a reason for more. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;
/**
 * Of one answer, unzipped. A page of 500 pods has 6 MB, one of 50 nodes 1 MB; even at an object's greatest size of 1.5
 * MiB, 20 fit.
 */
export const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** Each may hold one of the 400 requests that a default API server serves at once (`--max-requests-inflight`). */
const MAX_SOCKETS = 64;
/** Fewer than there are sockets, so that no call waits for one: a socket takes a moment to be free again. */
const CALLS_AT_ONCE = 60;

/**
 * JSON over HTTP/2 or HTTP/1.1 to one API server, on connections that are kept. Calls take turns and fail at once while the
 * server does not answer; lists and watches have connections of their own and are always tried. Every method
 * rejects with `ApiError`, for a refusal and for no answer alike.
 */
export class Transport {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #turns = new Turns(CALLS_AT_ONCE);
  readonly #breaker = new Breaker();
  readonly #skew = new ClockSkew();
  readonly #calling: Sockets;
  readonly #following: Sockets;
  /** What is not to come back in a message: a watch may have begun with the second newest. */
  #secrets: readonly string[] = [];
  #closed = false;

  constructor(connection: Connection, clock: Clock = systemClock) {
    this.#connection = connection;
    this.#clock = clock;
    this.#calling = new Sockets(clock, MAX_SOCKETS);
    this.#following = new Sockets(clock);
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
    return this.parse(call, await this.#inTurn(call, body));
  }

  /** As {@link read}, for an answer that is no JSON. */
  async readText(call: Call): Promise<string> {
    return (await this.#inTurn(call, body)).toString();
  }

  /** As {@link read}, for calls whose answer says nothing that success does not. */
  async perform(call: Call): Promise<void> {
    await this.#inTurn(call, async (answer) => {
      // To its end, so that the next call finds the connection free.
      for await (const _ of answer.body);
    });
  }

  /** As {@link read}, for a page of a list, whose items go through `trim` and `project`. */
  async readList<T>(call: Call, project: (item: unknown) => T, trim: Trim): Promise<ListJson<T>> {
    const access = await this.#access(call);
    const page = await this.#within(PAGE_TIMEOUT_MS, call, async (signal) =>
      body(await this.#open(call, access, this.#following, signal)),
    );
    try {
      return await readListJson(page, project, trim);
    } catch (error) {
      throw error instanceof SyntaxError ? this.#notJson(call) : error;
    }
  }

  /**
   * The answer's lines as they come, for at most `timeoutMs`; reads no faster than the caller. `opened` is called when
   * the answer begins. Returns when the server ends the answer or `call.signal` aborts.
   */
  async *lines(call: Call, timeoutMs: number, opened?: () => void): AsyncGenerator<Buffer, void, undefined> {
    const deadline = new Deadline(timeoutMs, call.signal);
    try {
      const access = await this.#access(call);
      const answer = await this.#within(PAGE_TIMEOUT_MS, { ...call, signal: deadline.signal }, (signal) =>
        this.#open(call, access, this.#following, signal),
      );
      opened?.();
      for await (const line of splitLines(answer.body, MAX_LINE_BYTES)) {
        await paced();
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

  parse(call: Call, json: string | Buffer): unknown {
    try {
      return parseInt64Json(String(json));
    } catch {
      throw this.#notJson(call);
    }
  }

  /** As {@link parse}, for an event of a watch, without what `trim` takes away. */
  parseEvent(call: Call, line: Buffer, trim: Trim): unknown {
    try {
      return parseInt64Json(trim(line, 2));
    } catch {
      return this.parse(call, line);
    }
  }

  /** What an `ERROR` event of a watch says. */
  watchError(call: Call, object: unknown): ApiError {
    return watchError(call, this.host, object, this.#secrets);
  }

  /** Ends all connections; a call under way rejects. */
  close(): void {
    this.#closed = true;
    this.#calling.close();
    this.#following.close();
  }

  async #inTurn<T>(call: Call, use: (answer: Answer) => Promise<T>): Promise<T> {
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

  #notJson(call: Call): ApiError {
    return failure(call, this.host, "its answer is not JSON, so not a Kubernetes API server's");
  }

  #refuseWhileOpen(call: Call): void {
    const until = this.#breaker.refusesUntil(this.#clock.now());
    if (until === undefined) return;
    const at = new Date(until).toISOString();
    throw failure(call, this.host, `it did not answer several calls in a row and is not asked before ${at}`);
  }

  #refuseLate(call: Call): void {
    const { notAfter = Number.POSITIVE_INFINITY } = call;
    if (this.#clock.now() > notAfter) throw late(call, this.host);
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
    if (error instanceof LargeBodyError) {
      return failure(call, this.host, `its answer has more than ${mebibytes(MAX_BODY_BYTES)}`);
    }
    if (error instanceof LongLineError) {
      const limit = mebibytes(MAX_LINE_BYTES);
      return failure(
        call,
        this.host,
        `it sent a line of more than ${limit}, which no Kubernetes object needs`,
      );
    }
    if (error instanceof HalfLineError) {
      return failure(call, this.host, 'its answer ended in the middle of an event', error);
    }
    return unreachable(call, this.host, error);
  }

  async #access(call: Call): Promise<RequestAccess> {
    const access = await this.#connection.requestOptions().catch((error: unknown) => {
      const why = error instanceof Error ? error.message.replace(/\.$/, '') : 'no credentials';
      throw failure(call, this.host, why, error);
    });
    const authorization = Object.entries(access.headers).find(([name]) => /^authorization$/i.test(name))?.[1];
    if (authorization === undefined) return access;
    const secret = authorization.slice(authorization.indexOf(' ') + 1);
    if (secret !== '' && !this.#secrets.includes(secret))
      this.#secrets = [secret, ...this.#secrets.slice(0, 1)];
    if (access.server.protocol === 'https:') return access;
    const why = 'its address is plain http, which would show the token to anybody on the way';
    throw failure(
      call,
      this.host,
      `${why}; write the server in the kubeconfig as https://${access.server.host}`,
    );
  }

  /** Sends the call. Resolves with an answer that is a success, its body still to be read. */
  async #open(call: Call, access: RequestAccess, sockets: Sockets, signal: AbortSignal): Promise<Answer> {
    if (this.#closed) throw failure(call, this.host, 'its connections were closed');
    const answer = await sockets.send(call, access, signal);
    const { status, headers, sentAt } = answer;
    this.#breaker.answered();
    const date = Date.parse(headers.date ?? '');
    if (date) this.#skew.hear({ sentAt, receivedAt: this.#clock.now(), date });
    if (status >= 200 && status < 300) return answer;
    if (status === 401) this.#connection.forgetCredentials?.();
    throw refusal(call, this.host, answer, String(await body(answer)), this.#secrets);
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
/** Of what is unzipped at once: 1 ms or so. What is larger is unzipped beside other work. */
const SMALL_ZIP_BYTES = 256 * 1024;

const mebibytes = (bytes: number): string => `${bytes / 1024 / 1024} MiB`;

class LargeBodyError extends Error {
  override readonly name = 'LargeBodyError';
}

async function body(answer: Answer): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of answer.body) {
    size += piece.length;
    if (size > MAX_BODY_BYTES) throw new LargeBodyError();
    pieces.push(piece);
  }
  const bytes = Buffer.concat(pieces);
  if (answer.headers['content-encoding'] !== 'gzip') return bytes;
  try {
    const options = { maxOutputLength: MAX_BODY_BYTES, chunkSize: unzippedBytes(bytes) };
    return bytes.length <= SMALL_ZIP_BYTES ? gunzipSync(bytes, options) : await unzip(bytes, options);
  } catch (error) {
    const isLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    throw isLarge ? new LargeBodyError() : error;
  }
}

/** What a gzip text says at its end that it holds: to be taken for a hint. */
function unzippedBytes(zipped: Buffer): number {
  const said = zipped.length < 4 ? 0 : zipped.readUInt32LE(zipped.length - 4);
  return Math.min(Math.max(said, 64), MAX_BODY_BYTES);
}

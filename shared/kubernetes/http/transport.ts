import type { SkewRange } from '#shared/eviction/skew.ts';
import { type Clock, stopwatchMs, systemClock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { discard, wholeBody } from './answer-body.ts';
import { ANSWER_BYTES, AnswerLimitError, answerKind, UnderWay } from './answer-limits.ts';
import {
  ApiError,
  failure,
  LateCallError,
  late,
  refusal,
  unansweredInTime,
  unreachable,
  watchError,
} from './api-error.ts';
import { parseInt64Json } from './api-json.ts';
import { Breaker } from './breaker.ts';
import type { Trim } from './bulk.ts';
import type { AnswerKind, Call } from './call.ts';
import { ClockSkew } from './clock-skew.ts';
import type { Connection, RequestAccess } from './connection.ts';
import { UNANSWERED_WRITE } from './eviction-refusal.ts';
import { checkStructure } from './json-structure.ts';
import { HalfLineError, splitLines } from './lines.ts';
import { type ListJson, readListJson } from './list-json.ts';
import { paced } from './pace.ts';
import { PrioritySemaphore } from './priority-semaphore.ts';
import { type Answer, Sockets } from './sockets.ts';

/** Timeout of one call from its turn on: the connection, the request, and the whole response. */
export const CALL_TIMEOUT_MS = 10_000;
/** Timeout of one page of a list, which may have megabytes: half of the API server's limit (`--request-timeout`). */
export const PAGE_TIMEOUT_MS = 30_000;
/** Each may use one of the 400 concurrent requests of a default API server (`--max-requests-inflight`). */
const MAX_SOCKETS = 64;
/** Fewer than the sockets, so that no call waits for one: a used socket is not free again immediately. */
export const MAX_CONCURRENT_CALLS = 60;

/**
 * JSON over HTTP/2 or HTTP/1.1 on reused connections. Calls take turns, and fail immediately while the server is
 * silent. Lists and watches have their own, and are always tried. Every method rejects with `ApiError`.
 */
export class Transport {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #turns = new PrioritySemaphore(MAX_CONCURRENT_CALLS);
  readonly #breaker = new Breaker();
  #lastFailure = '';
  readonly #skew: ClockSkew;
  readonly #calling: Sockets;
  readonly #following: Sockets;
  readonly #underWay = new UnderWay();
  /** Secrets that must not appear in messages: a watch may have begun with the second newest. */
  #secrets: readonly string[] = [];
  #closed = false;

  constructor(connection: Connection, clock: Clock = systemClock) {
    this.#connection = connection;
    this.#clock = clock;
    this.#skew = new ClockSkew(clock);
    this.#calling = new Sockets(clock, MAX_SOCKETS);
    this.#following = new Sockets(clock);
  }

  get host(): string {
    return this.#connection.host;
  }

  /** Milliseconds by which the server's clock is ahead of ours; `undefined`: not known yet. */
  get skewMs(): number | undefined {
    return this.#skew.at(this.#clock.now());
  }

  /** How far the clock of each server that responded in the last ten minutes is ahead of ours. */
  get skews(): readonly SkewRange[] {
    return this.#skew.rangesAt(this.#clock.now());
  }

  /** The server's time, rather too early than too late; our own time if no response was dated. */
  get serverTime(): EpochMs {
    const now = this.#clock.now();
    return Math.floor(now + (this.#skew.leastAt(now) ?? 0));
  }

  get breakerOpen(): boolean {
    return this.#breaker.open;
  }

  /** The server answered another process at this time, by our clock. */
  answeredElsewhere(at: EpochMs): void {
    this.#breaker.answeredElsewhere(stopwatchMs(this.#clock) - (this.#clock.now() - at));
  }

  /** Integers beyond 2^53 are bigints. Rejects with `LateCallError`, too, if the call has a `notAfter`. */
  async read(call: Call): Promise<unknown> {
    return this.#inTurn(call, (answer) =>
      this.#whole(answer, answerKind(call), (json) => this.parse(call, json)),
    );
  }

  /** As {@link read}, for a page of a list, which is parsed item by item. */
  async readItems<T>(call: Call, project: (item: unknown) => T): Promise<ListJson<T>> {
    return this.#inTurn(call, (answer) =>
      this.#whole(answer, answerKind(call), (json) => this.#list(call, json, project, untrimmed)),
    );
  }

  /** As {@link read}, for a response that is not JSON. */
  async readText(call: Call): Promise<string> {
    return this.#inTurn(call, (answer) => this.#whole(answer, answerKind(call), String));
  }

  /** As {@link read}, for calls whose response contains nothing beyond its success. */
  async perform(call: Call): Promise<void> {
    await this.#inTurn(call, (answer) => discard(answer, ANSWER_BYTES[answerKind(call)]));
  }

  /** As {@link readItems}, but without waiting for a turn. Items are processed by `trim` and `project`. */
  async readList<T>(call: Call, project: (item: unknown) => T, trim: Trim): Promise<ListJson<T>> {
    const access = await this.#access(call);
    const held = this.#underWay.hold();
    try {
      const page = await this.#within(PAGE_TIMEOUT_MS, call, async (signal) =>
        wholeBody(await this.#open(call, access, this.#following, signal), ANSWER_BYTES.list, held),
      );
      return await this.#list(call, page, project, trim);
    } finally {
      held.release();
    }
  }

  /**
   * Yields lines for at most `timeoutMs`, no faster than the caller reads; `opened` is called when the response begins.
   * Returns when the server ends it or `call.signal` aborts.
   */
  async *lines(call: Call, timeoutMs: number, opened?: () => void): AsyncGenerator<Buffer, void, undefined> {
    const deadline = new Deadline(timeoutMs, call.signal);
    const held = this.#underWay.hold();
    try {
      const access = await this.#access(call);
      const answer = await this.#within(PAGE_TIMEOUT_MS, { ...call, signal: deadline.signal }, (signal) =>
        this.#open(call, access, this.#following, signal),
      );
      opened?.();
      for await (const line of splitLines(answer.body, ANSWER_BYTES.object, held)) {
        await paced();
        if (call.signal?.aborted) return;
        yield line;
      }
    } catch (error) {
      if (call.signal?.aborted) return;
      throw this.#explain(call, error, deadline);
    } finally {
      held.release();
      deadline.clear();
    }
  }

  parse(call: Call, json: Buffer): unknown {
    try {
      return parseChecked(json);
    } catch (error) {
      throw this.#unread(call, error);
    }
  }

  /** As {@link parse}, for an event of a watch, without the parts that `trim` removes. */
  parseEvent(call: Call, line: Buffer, trim: Trim): unknown {
    try {
      return parseChecked(trim(line, 2));
    } catch {
      return this.parse(call, line);
    }
  }

  watchError(call: Call, object: unknown): ApiError {
    return watchError(call, this.host, object, this.#secrets);
  }

  /** Closes all connections; pending calls reject. */
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
        const timed = call.allowed ? { ...call, notAfter: await call.allowed() } : call;
        const begun = this.#breaker.begin(stopwatchMs(this.#clock));
        // This is not part of the call's time: a plugin may take longer, and every call needs its credentials.
        const access = await this.#access(call);
        try {
          return await this.#within(CALL_TIMEOUT_MS, call, async (signal) =>
            use(await this.#open(timed, access, this.#calling, signal)),
          );
        } catch (error) {
          if (isOfServer(error) && !this.#closed) {
            this.#breaker.failed(begun, stopwatchMs(this.#clock));
            this.#lastFailure = error.why;
          }
          throw error;
        }
      },
      { inHurry: call.inHurry === true },
    );
  }

  /** Uses the whole body of a response, which counts as in memory until `use` completes. */
  async #whole<T>(answer: Answer, kind: AnswerKind, use: (body: Buffer) => T | Promise<T>): Promise<T> {
    const held = this.#underWay.hold();
    try {
      return await use(await wholeBody(answer, ANSWER_BYTES[kind], held));
    } finally {
      held.release();
    }
  }

  async #list<T>(call: Call, json: Buffer, project: (item: unknown) => T, trim: Trim): Promise<ListJson<T>> {
    try {
      return await readListJson(json, project, trim);
    } catch (error) {
      throw this.#unread(call, error);
    }
  }

  #unread(call: Call, error: unknown): unknown {
    if (error instanceof AnswerLimitError) return failure(call, this.host, error.message);
    if (!(error instanceof SyntaxError)) return error;
    return failure(call, this.host, "its answer is not JSON, so not a Kubernetes API server's");
  }

  #refuseWhileOpen(call: Call): void {
    if (this.#breaker.refusesUntil(stopwatchMs(this.#clock)) === undefined) return;
    const why = 'it did not answer several calls in a row, so calls are suspended for some seconds';
    throw failure(call, this.host, `${why}; the last error: ${this.#lastFailure}`);
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
    if (deadline.passed) return unansweredInTime(call, this.host, deadline.ms, error);
    if (error instanceof AnswerLimitError) return failure(call, this.host, error.message);
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
    const [authorization] = Object.entries(access.headers).flatMap(([name, value]) =>
      /^authorization$/i.test(name) ? value : [],
    );
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

  async #open(call: Call, access: RequestAccess, sockets: Sockets, signal: AbortSignal): Promise<Answer> {
    if (this.#closed) throw failure(call, this.host, 'its connections were closed');
    const answer = await sockets.send(call, access, signal);
    const { status, headers, sentAt } = answer;
    this.#breaker.answered();
    const date = Date.parse(headers.date ?? '');
    if (date) this.#skew.receive({ sentAt, receivedAt: this.#clock.now(), date });
    if (status >= 200 && status < 300) return answer;
    if (status === 401) this.#connection.forgetCredentials?.();
    const text = await this.#whole(answer, 'refusal', String);
    throw refusal(call, this.host, answer, text, this.#secrets, this.#connection.whenForbidden);
  }
}

/** A time limit that aborts a signal, as the caller's own signal does. Unlike `AbortSignal.timeout`, it can be cleared. */
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

/** A delayed write proves nothing about other calls. */
const isOfServer = (error: unknown): error is ApiError =>
  error instanceof ApiError && !error.causes.includes(UNANSWERED_WRITE);

const untrimmed: Trim = (json) => json.toString();

function parseChecked(text: string | Buffer): unknown {
  checkStructure(text);
  return parseInt64Json(String(text));
}

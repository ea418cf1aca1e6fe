import http, { type IncomingHttpHeaders } from 'node:http';
import type { ClientHttp2Stream } from 'node:http2';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { defined } from '#shared/defined.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { LateCallError, late } from './api-error.ts';
import { stringifyInt64Json } from './api-json.ts';
import { type Call, FIELD_MANAGER, METHODS } from './call.ts';
import type { RequestAccess } from './connection.ts';
import { type Dialling, dial } from './dial.ts';
import { Multiplexed } from './multiplexed.ts';
import { proxyFor, proxyHeaders } from './proxy.ts';

/** Idle connections are closed before servers (90 s) and load balancers (60 s) cut them, perhaps during a request. */
const IDLE_MS = 30_000;
/** Pieces of a body that are read ahead of the consumer: 16 KB each. */
const PIECES_AHEAD = 8;
/** Errors of a connection that the server closed while it was idle. */
const CUT_WHILE_IDLE: readonly unknown[] = [
  'ECONNRESET',
  'EPIPE',
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_STREAM_CANCEL',
  'ERR_HTTP2_STREAM_ERROR',
];

/** The head of a response, with its body still to be read. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AsyncIterable<Buffer>;
  readonly sentAt: EpochMs;
}

/**
 * Connections to one server, kept for the next request: HTTP/2 if offered, else HTTP/1.1. A request gets an established
 * one, so that the time of sending is known; if canceled earlier, it leaves it to the next.
 */
export class Sockets {
  readonly #clock: Clock;
  readonly #plain: http.Agent;
  readonly #tls: https.Agent;
  readonly #dialling = new Set<Dialling>();
  /** By their access. `undefined`: the server turned out to use HTTP/1.1. */
  readonly #multiplexed = new Map<string, Multiplexed[]>();
  readonly #connecting = new Map<string, Promise<Multiplexed | undefined>>();
  /** Servers that support only HTTP/1.1, with the connection that showed it. */
  readonly #oneByOne = new Map<string, Socket | undefined>();
  readonly #sessions = new Map<string, Buffer>();
  /** All connections that are not closed. Some accept no more requests, and wait for the server to close its side. */
  readonly #open = new Set<Socket>();
  #closed = false;

  constructor(clock: Clock, atMost = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    const options: https.AgentOptions = { keepAlive: true, maxSockets: atMost, timeout: IDLE_MS };
    this.#plain = this.#dialled(new http.Agent(options));
    this.#tls = this.#dialled(new https.Agent(options));
  }

  /**
   * Rejects with `LateCallError` if the call was not sent by its `notAfter`, with an aborted signal's reason, or a
   * network error. If it was, it has all the signal's time for its response.
   */
  async send(call: Call, access: RequestAccess, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    const key = keyOf(access);
    if (access.server.protocol === 'http:' || this.#oneByOne.has(key))
      return this.#sendAlone(call, access, signal);
    for (;;) {
      const { promise, resolve, reject } = Promise.withResolvers<Multiplexed | undefined>();
      const stopListening = whenAborted(signal, reject);
      const inTime = this.#whenLate(call, access, reject);
      void this.#shared(key, access).then(resolve, reject);
      const shared = await promise.finally(() => {
        inTime();
        stopListening();
      });
      if (shared === undefined) return this.#sendAlone(call, access, signal);
      // Other requests may have been faster.
      if (shared.free) return this.#sendShared(shared, call, access, signal);
    }
  }

  close(): void {
    this.#closed = true;
    this.#plain.destroy();
    this.#tls.destroy();
    const reason = new Error('the connections were closed');
    for (const dialling of this.#dialling) dialling.destroy(reason);
    for (const each of [...this.#multiplexed.values()].flat()) each.destroy(reason);
    for (const socket of this.#open) socket.destroy();
  }

  /** Calls `giveUp` once when it is too late to send the call. The returned function stops the timer. */
  #whenLate(call: Call, { server }: RequestAccess, giveUp: (reason: LateCallError) => void): () => void {
    const { notAfter = Number.POSITIVE_INFINITY } = call;
    if (!Number.isFinite(notAfter)) return () => undefined;
    let timer: NodeJS.Timeout | undefined;
    let immediate: NodeJS.Immediate | undefined;
    const watch = (): void => {
      const leftMs = notAfter - this.#clock.now();
      if (leftMs >= 0) timer = setTimeout(watch, leftMs + 1);
      // TLS reports written bytes in the next turn of the event loop, which a busy process must process first.
      else immediate = setImmediate(() => giveUp(late(call, server.host)));
    };
    watch();
    return () => {
      clearTimeout(timer);
      clearImmediate(immediate);
    };
  }

  /** Returns a connection that accepts a request now; `undefined`: the server uses HTTP/1.1. */
  async #shared(key: string, access: RequestAccess): Promise<Multiplexed | undefined> {
    for (;;) {
      const free = this.#multiplexed.get(key)?.find((each) => each.free);
      if (free || this.#oneByOne.has(key)) return free;
      const connecting =
        this.#connecting.get(key) ?? this.#connect(key, access).finally(() => this.#connecting.delete(key));
      this.#connecting.set(key, connecting);
      await connecting;
    }
  }

  async #connect(key: string, access: RequestAccess): Promise<Multiplexed | undefined> {
    const socket = (await this.#dial(key, access, ['h2', 'http/1.1'])) as TLSSocket;
    if (socket.alpnProtocol !== 'h2') {
      this.#oneByOne.set(key, socket);
      socket.once('close', () => this.#oneByOne.set(key, undefined));
      socket.on('error', () => undefined);
      return undefined;
    }
    const opened = await Multiplexed.open(access.server.origin, socket, IDLE_MS);
    if (this.#closed) opened.destroy(new Error('the connections were closed'));
    const others = this.#multiplexed.get(key)?.filter((each) => !each.closed) ?? [];
    this.#multiplexed.set(key, [...others, opened]);
    return opened;
  }

  async #dial(key: string, access: RequestAccess, protocols: readonly string[]): Promise<Socket> {
    const session = this.#sessions.get(key);
    const dialling = dial(access, { protocols, ...defined({ session }) });
    this.#dialling.add(dialling);
    try {
      const socket = await dialling.socket;
      socket.on('session', (fresh: Buffer) => this.#sessions.set(key, fresh));
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
      if (this.#closed) socket.destroy();
      return socket;
    } finally {
      this.#dialling.delete(dialling);
    }
  }

  #sendShared(
    connection: Multiplexed,
    call: Call,
    access: RequestAccess,
    signal: AbortSignal,
  ): Promise<Answer> {
    const sentAt = this.#clock.now();
    if (sentAt > (call.notAfter ?? Number.POSITIVE_INFINITY)) throw late(call, access.server.host);
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { reused } = connection;
    const body = bodyOf(call);
    const stream = connection.request(
      {
        ':method': METHODS[call.verb],
        ':path': pathOf(call, access),
        ':scheme': 'https',
        ':authority': access.server.host,
        ...headersOf(call, access, body),
      },
      body,
    );
    const stopListening = whenAborted(signal, (reason) => {
      stream.destroy(reason);
      connection.check();
    });
    // The session may have all bytes, and cannot take them back: whether the server receives all is unknown.
    const written = this.#whenLate(call, access, () => stream.destroy(new HalfSentError()));
    stream.once('finish', written);
    let answered = false;
    stream.once('response', (headers) => {
      answered = true;
      written();
      resolve({ status: headers[':status'] ?? 0, headers, body: whole(stream, connection, headers), sentAt });
    });
    stream.on('error', reject);
    stream.once('close', () => {
      written();
      stopListening();
      if (!answered) reject(new CutError());
    });
    return promise.catch((error: NodeJS.ErrnoException) => {
      const stale = reused && !answered && !signal.aborted && CUT_WHILE_IDLE.includes(error.code);
      if (!stale || this.#closed) throw error;
      connection.retire();
      return this.#again(call, access, signal, error);
    });
  }

  async #sendAlone(call: Call, access: RequestAccess, signal: AbortSignal): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const body = bodyOf(call);
    const request = this.#request(call, access, body, signal);
    let over = false;
    const giveUp = (reason: unknown): void => {
      over = true;
      request.destroy();
      reject(reason);
    };
    // A request without a socket emits nothing when it is destroyed.
    const stopListening = whenAborted(signal, giveUp);
    // Until the last byte is with the operating system: the server acts on a complete request, however late it
    // responds.
    const written = this.#whenLate(call, access, giveUp);
    request.once('finish', written);
    let sentAt = 0;
    const send = () => {
      sentAt = this.#clock.now();
      // The socket is connected, so bytes that are written now are sent now.
      if (sentAt > (call.notAfter ?? Number.POSITIVE_INFINITY)) giveUp(late(call, access.server.host));
      else request.end(body);
    };
    request.once('socket', send);
    request.once('response', (response) => {
      over = true;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response, sentAt });
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      const stale = request.reusedSocket && CUT_WHILE_IDLE.includes(error.code);
      if (!stale || over || this.#closed) reject(error);
      else void this.#again(call, access, signal, error).then(resolve, reject);
    });
    return promise.finally(() => {
      written();
      stopListening();
    });
  }

  /** All calls may be made twice: UIDs and names guard them. A call that is late now may have been sent before. */
  async #again(call: Call, access: RequestAccess, signal: AbortSignal, first: Error): Promise<Answer> {
    try {
      return await this.send(call, access, signal);
    } catch (second) {
      throw second instanceof LateCallError ? first : second;
    }
  }

  #request(
    call: Call,
    access: RequestAccess,
    body: string | undefined,
    signal: AbortSignal,
  ): http.ClientRequest {
    const { server, headers: _headers, proxy: given, ...tls } = access;
    const isPlain = server.protocol === 'http:';
    const [client, agent] = isPlain ? [http, this.#plain] : [https, this.#tls];
    const proxy = isPlain ? proxyFor(server, given) : undefined;
    const path = pathOf(call, access);
    return client.request(server.origin, {
      ...tls,
      access,
      // A proxy needs the whole address.
      path: proxy === undefined ? path : `${server.origin}${path}`,
      method: METHODS[call.verb],
      agent,
      signal,
      headers: { ...headersOf(call, access, body), ...(proxy === undefined ? {} : proxyHeaders(proxy)) },
    } as https.RequestOptions);
  }

  #dialled<A extends http.Agent>(agent: A): A {
    agent.createConnection = (options, callback) => {
      const { access } = options as { readonly access?: RequestAccess };
      if (access === undefined) throw new TypeError('a request without its access');
      const key = keyOf(access);
      const ready = this.#oneByOne.get(key);
      if (ready && !ready.destroyed) {
        this.#oneByOne.set(key, undefined);
        callback?.(null, ready);
        return undefined;
      }
      void this.#dial(key, access, ['http/1.1']).then(
        (socket) => callback?.(null, socket),
        (error: Error) => callback?.(error, undefined as never),
      );
      // A returned socket would be used immediately.
      return undefined;
    };
    return agent;
  }
}

function whenAborted(signal: AbortSignal, giveUp: (reason: Error) => void): () => void {
  const aborted = () => giveUp(signal.reason);
  signal.addEventListener('abort', aborted);
  return () => signal.removeEventListener('abort', aborted);
}

/**
 * Yields the body, read from now on: Node may drop data without a listener when a stream closes, and ends a broken
 * stream like a complete one. Throws if the body is incomplete.
 */
function whole(
  stream: ClientHttp2Stream,
  connection: Multiplexed,
  { 'content-length': length }: IncomingHttpHeaders,
): AsyncGenerator<Buffer, void, undefined> {
  const pieces: Buffer[] = [];
  let [ended, over] = [false, false];
  let failure: Error | undefined;
  let wake: () => void = () => undefined;
  // `on` of node:events is not used, because its queues take 32 KB for each response.
  stream.on('data', (piece: Buffer) => {
    if (pieces.push(piece) >= PIECES_AHEAD) stream.pause();
    wake();
  });
  stream.once('error', (error: Error) => {
    failure = error;
    wake();
  });
  stream.once('end', () => {
    ended = true;
    wake();
  });
  stream.once('close', () => {
    over = true;
    wake();
  });
  return (async function* () {
    let bytes = 0;
    try {
      for (;;) {
        const piece = pieces.shift();
        if (piece) {
          if (stream.isPaused() && pieces.length === 0) stream.resume();
          bytes += piece.length;
          yield piece;
        } else if (failure && !ended) {
          throw failure;
        } else if (ended || over) {
          break;
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      if (!ended) stream.destroy();
    }
    const isUnbroken = ended && stream.rstCode === 0 && !connection.broken;
    if (length === undefined ? !isUnbroken : bytes !== Number(length)) throw new CutError();
  })();
}

class CutError extends Error {
  readonly code = 'ECONNRESET';
}

/** A request was started, but not completely written by its `notAfter`. */
class HalfSentError extends Error {
  readonly code = 'ERR_HALF_SENT';
}

const keys = new WeakMap<RequestAccess, string>();

/** The key is made once per access object, because certificates are long. */
function keyOf(access: RequestAccess): string {
  const known = keys.get(access);
  if (known !== undefined) return known;
  const { server, headers: _headers, proxy, ...tls } = access;
  const key = JSON.stringify([
    server.origin,
    proxy?.href,
    ...Object.entries(tls).map(([name, value]) => [name, String(value)]),
  ]);
  keys.set(access, key);
  return key;
}

const bodyOf = ({ body }: Call): string | undefined =>
  body === undefined ? undefined : stringifyInt64Json(body);

function pathOf(call: Call, { server }: RequestAccess): string {
  const query = call.query === undefined ? '' : `?${new URLSearchParams(call.query)}`;
  return `${server.pathname.replace(/\/$/, '')}${call.path}${query}`;
}

const headersOf = (call: Call, { headers }: RequestAccess, body: string | undefined) => ({
  ...headers,
  accept: 'application/json',
  'user-agent': FIELD_MANAGER,
  // Compression shrinks lists to a tenth. A proxy that compresses a watch would delay its events.
  ...(call.verb === 'watch' ? {} : { 'accept-encoding': 'gzip' }),
  ...(body === undefined
    ? {}
    : {
        'content-type': call.contentType ?? 'application/json',
        // By default, Node sends the body of a DELETE without its length.
        'content-length': Buffer.byteLength(body),
      }),
});

import type { OutgoingHttpHeaders } from 'node:http';
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';

/** The limit until a server sets another one. */
export const MAX_CONCURRENT_STREAMS = 100;
/** Unread bytes that may be in flight to us on one connection, and on one of its streams. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
const STREAM_WINDOW_BYTES = 256 * 1024;
/** A connection whose other end is gone stays silent: it is pinged, and destroyed if there is no response. */
const PING_EVERY_MS = 15_000;
const PONG_TIMEOUT_MS = 3_000;
/** Time for a clean close. The server may never close its side: then the descriptor would stay open. */
export const GOODBYE_MS = 1_000;

class SilentConnectionError extends Error {
  readonly code = 'ETIMEDOUT';
}

/** An HTTP/2 connection, for many requests at a time. */
export class Multiplexed {
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #idleMs: number;
  readonly #pings: NodeJS.Timeout;
  #streams = 0;
  #requests = 0;
  #pinging = false;
  #idle: NodeJS.Timeout | undefined;

  private constructor(session: ClientHttp2Session, socket: Socket, idleMs: number) {
    this.#session = session;
    this.#socket = socket;
    this.#idleMs = idleMs;
    this.#pings = setInterval(() => this.check(), PING_EVERY_MS);
    this.#pings.unref();
    session.once('close', () => {
      clearInterval(this.#pings);
      clearTimeout(this.#idle);
    });
    // The streams report the error.
    session.on('error', () => undefined);
    session.on('goaway', () => this.#rest());
    this.#rest();
  }

  /** Resolves when the server has sent its limit of concurrent streams. An idle connection closes after `idleMs`. */
  static async open(origin: string, socket: Socket, idleMs: number): Promise<Multiplexed> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const session = http2.connect(origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES));
    session.once('remoteSettings', () => resolve());
    session.once('error', reject);
    socket.once('error', reject);
    session.once('close', () => reject(new SilentConnectionError()));
    const timer = setTimeout(() => session.destroy(new SilentConnectionError()), PONG_TIMEOUT_MS);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
    return new Multiplexed(session, socket, idleMs);
  }

  /** The connection is gone, and so are the outstanding responses of its requests. */
  get broken(): boolean {
    return this.#session.destroyed;
  }

  /** The connection accepts no more requests. */
  get closed(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  /** The connection accepts another request now. */
  get free(): boolean {
    const { maxConcurrentStreams = MAX_CONCURRENT_STREAMS } = this.#session.remoteSettings;
    return !this.closed && this.#streams < Math.min(maxConcurrentStreams, MAX_CONCURRENT_STREAMS);
  }

  /** The connection has carried requests before: the server may have closed it unnoticed. */
  get reused(): boolean {
    return this.#requests > 0;
  }

  /** Sends a request immediately; only while {@link free}. */
  request(headers: OutgoingHttpHeaders, body: string | undefined): ClientHttp2Stream {
    this.#streams += 1;
    this.#requests += 1;
    clearTimeout(this.#idle);
    this.#session.ref();
    const stream = this.#session.request(headers, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    stream.once('close', () => {
      this.#streams -= 1;
      this.#rest();
    });
    return stream;
  }

  /** Destroys the connection if its other end does not respond now. */
  check(): void {
    if (this.#pinging || this.closed) return;
    this.#pinging = true;
    const timer = setTimeout(() => this.destroy(new SilentConnectionError()), PONG_TIMEOUT_MS);
    timer.unref();
    this.#session.ping(() => {
      clearTimeout(timer);
      this.#pinging = false;
    });
  }

  /** Lets pending requests complete, and accepts no more. */
  retire(): void {
    if (!this.closed) this.#session.close();
    this.#rest();
  }

  destroy(reason: Error): void {
    this.#session.destroy(reason);
  }

  #rest(): void {
    if (this.#streams > 0) return;
    if (this.closed) {
      setTimeout(() => this.#socket.destroy(), GOODBYE_MS).unref();
      return;
    }
    this.#session.unref();
    this.#idle = setTimeout(() => this.retire(), this.#idleMs);
    this.#idle.unref();
  }
}

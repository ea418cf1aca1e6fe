import type { OutgoingHttpHeaders } from 'node:http';
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';

/** Until a server says otherwise. */
const MAX_CONCURRENT_STREAMS = 100;
/** What may be under way to us on one connection, and on one of its streams, before it is read. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
const STREAM_WINDOW_BYTES = 256 * 1024;
/** A connection whose other end is gone says nothing: it is asked, and given up when it does not answer. */
const PING_EVERY_MS = 15_000;
const PONG_TIMEOUT_MS = 3_000;
/** For a goodbye. The server may never close its side: then the descriptor would stay open. */
const GOODBYE_MS = 1_000;

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
    // Its streams tell of it.
    session.on('error', () => undefined);
    session.on('goaway', () => this.#rest());
    this.#rest();
  }

  /** Takes a connected socket over. Resolves when the server has said how much it takes at once. `idleMs`: closed then. */
  static async open(origin: string, socket: Socket, idleMs: number): Promise<Multiplexed> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const session = http2.connect(origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES));
    session.once('remoteSettings', () => resolve());
    session.once('error', reject);
    session.once('close', () => reject(new SilentConnectionError()));
    const timer = setTimeout(() => session.destroy(new SilentConnectionError()), PONG_TIMEOUT_MS);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
    return new Multiplexed(session, socket, idleMs);
  }

  /** It is gone, and so is what its requests had still to be told. */
  get broken(): boolean {
    return this.#session.destroyed;
  }

  /** It will take no more requests. */
  get closed(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  /** It takes another request now. */
  get free(): boolean {
    const { maxConcurrentStreams = MAX_CONCURRENT_STREAMS } = this.#session.remoteSettings;
    return !this.closed && this.#streams < Math.min(maxConcurrentStreams, MAX_CONCURRENT_STREAMS);
  }

  /** It has carried requests before: the server may have closed it unheard. */
  get reused(): boolean {
    return this.#requests > 0;
  }

  /** Sends a request at once; only while {@link free}. */
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

  /** Gives the connection up if its other end does not answer now. */
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

  /** Lets its requests end and takes no more. */
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

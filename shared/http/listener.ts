import { once } from 'node:events';
import {
  createServer as createHttp,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { Connection, TICKS_TO_BEGIN } from './connection.ts';
import { isInReserve } from './descriptors.ts';
import { isOwnName } from './own-name.ts';

export const CONNECTIONS = 64;
const HEADER_BYTES = 4 * 1024;
const IDLE_SECONDS = 60;
export const TICK_MS = 1_000;
/** The same trouble is reported once in this many looks. */
export const TICKS_BETWEEN_REPORTS = 60;

/** The log of the listener itself. */
export interface ListenerLog {
  error(
    event: 'listener.accept-failed' | 'listener.request-failed',
    fields: { readonly listener: string; readonly error: unknown },
  ): void;
}

/** Information about a request besides its headers. */
export interface RequestInfo {
  /** The request's target; its host means nothing. */
  readonly url: URL;
  /** Marks the caller as authenticated: the connection is kept, and isn't closed in favor of unknown callers. */
  know(): void;
}

export type Serve = (
  request: IncomingMessage,
  response: ServerResponse,
  info: RequestInfo,
) => Promise<void> | void;

export interface ListenerOptions {
  readonly name: string;
  readonly at: { readonly host: string; readonly port: number } | { readonly path: string };
  /** PEM; absent: plain HTTP. */
  readonly tls?: { readonly key: string; readonly cert: string };
  readonly log: ListenerLog;
  /** Its errors are logged, and answered with 500. */
  readonly serve: Serve;
  readonly headers?: Readonly<Record<string, string>>;
  /** Names besides those of `isOwnName`; `any`: `serve` checks them. */
  readonly names?: readonly string[] | 'any';
  /** Default: 64. */
  readonly connections?: number;
  /** The connections that are reserved for known callers. Default: none. */
  readonly forKnown?: number;
  /** Default: 4 KiB. */
  readonly headerBytes?: number;
  /** Idle time after which a known caller's connection is closed. Default: 60 s. */
  readonly idleSeconds?: number;
}

export interface Listener {
  /** 0 if it listens at a path. */
  readonly port: number;
  /** Cuts all connections. */
  close(): Promise<void>;
}

/**
 * No caller can end the process, keep others out, or delay its own work: docs/concepts/threat-model.md. Rejects with
 * the system's error if it can't listen.
 */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const places = new Places(options);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => places.admit(socket));
  if ('path' in options.at) server.listen(options.at.path);
  else server.listen(options.at.port, options.at.host);
  await once(server, 'listening');
  server.on('error', (error) => places.report(error));
  const ticking = setInterval(() => places.tick(), TICK_MS);
  return {
    port: 'path' in options.at ? 0 : (server.address() as AddressInfo).port,
    async close() {
      clearInterval(ticking);
      const closed = once(server, 'close');
      server.close();
      places.close();
      await closed;
    },
  };
}

/** The connections of a listener: admits new ones, and chooses those to close. */
class Places {
  readonly #options: ListenerOptions;
  readonly #http: Server;
  readonly #most: number;
  readonly #mostUnknown: number;
  readonly #idleSeconds: number;
  readonly #secure: ReturnType<typeof createSecureContext> | undefined;
  /** The longest idle first. */
  readonly #connections = new Set<Connection>();
  #ticksToReport = 0;

  constructor(options: ListenerOptions) {
    const { connections = CONNECTIONS, forKnown = 0, headerBytes = HEADER_BYTES, tls } = options;
    this.#options = options;
    this.#most = connections;
    this.#mostUnknown = connections - forKnown;
    this.#idleSeconds = options.idleSeconds ?? IDLE_SECONDS;
    this.#secure = tls && createSecureContext(tls);
    // The connections handle timeouts themselves.
    const timeouts = { headersTimeout: 0, requestTimeout: 0, keepAliveTimeout: 0 };
    this.#http = createHttp({ ...timeouts, maxHeaderSize: headerBytes, requireHostHeader: false });
    for (const event of ['request', 'checkExpectation']) {
      this.#http.on(event, (request, response) => this.#request(request, response));
    }
    this.#http.on('clientError', refuseUnreadable);
  }

  admit(raw: Socket): void {
    const isShort = isInReserve(raw);
    if (isShort)
      this.report(new Error('too few file descriptors are free: idle connections are closed for new ones'));
    if (!this.#makeRoom(isShort)) {
      raw.destroy();
      return;
    }
    const connection = new Connection(this.#decrypted(raw), this.#idleSeconds);
    this.#connections.add(connection);
    connection.once('close', () => this.#connections.delete(connection));
    this.#http.emit('connection', connection);
  }

  #decrypted(raw: Socket): Socket {
    if (!this.#secure) return raw;
    raw.on('error', () => undefined);
    return new TLSSocket(raw, {
      isServer: true,
      secureContext: this.#secure,
      ALPNProtocols: ['http/1.1'],
    });
  }

  /** Closes a connection if places or descriptors are short. Returns false if none can be closed for a new one. */
  #makeRoom(isShort: boolean): boolean {
    const unknown = [...this.#connections].filter(({ isKnown }) => !isKnown);
    const isFull = isShort || this.#connections.size >= this.#most;
    if (!isFull && unknown.length < this.#mostUnknown) return true;
    const isFree = ({ isDispensable }: Connection) => isDispensable;
    const closed =
      unknown.find(isFree) ??
      (isFull ? [...this.#connections].find(isFree) : undefined) ??
      // A caller of continuous requests is always being answered; one whose last answer is old may read a long one.
      unknown.findLast(({ isServed }) => isServed);
    if (closed) this.#cut(closed);
    return closed !== undefined;
  }

  #cut(connection: Connection): void {
    this.#connections.delete(connection);
    connection.destroy();
  }

  tick(): void {
    if (this.#ticksToReport > 0) this.#ticksToReport -= 1;
    for (const connection of [...this.#connections]) if (connection.tick()) this.#cut(connection);
  }

  report(reason: unknown): void {
    if (this.#ticksToReport > 0) return;
    this.#ticksToReport = TICKS_BETWEEN_REPORTS;
    this.#options.log.error('listener.accept-failed', { listener: this.#options.name, error: reason });
  }

  close(): void {
    for (const connection of [...this.#connections]) this.#cut(connection);
  }

  #request(request: IncomingMessage, response: ServerResponse): void {
    const connection = request.socket as unknown as Connection;
    // A caller that disconnects during an answer causes no error here.
    response.on('error', () => undefined);
    connection.serve(request, response, () => void this.#answer(request, response, connection));
    response.once('close', () => {
      if (this.#connections.delete(connection)) this.#connections.add(connection);
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse, connection: Connection): Promise<void> {
    const { name, log, serve, headers = {}, names = [] } = this.#options;
    try {
      for (const [header, value] of Object.entries(headers)) response.setHeader(header, value);
      response.setHeader('keep-alive', `timeout=${connection.isKnown ? this.#idleSeconds : TICKS_TO_BEGIN}`);
      const { host } = request.headers;
      // HTTP/1.0 has no host names; browsers don't use it.
      if (host === undefined && request.httpVersion !== '1.0')
        return refuse(response, 400, 'The Host header is missing.');
      if (host !== undefined && names !== 'any' && !isOwnName(host, names)) {
        return refuse(response, 421, 'This server is not known by that name: use its address.');
      }
      const url = URL.parse(request.url ?? '', 'http://self');
      if (!url) return refuse(response, 400, 'That is no URL.');
      await serve(request, response, {
        url,
        know: () => {
          connection.isKnown = true;
          if (!response.headersSent) response.setHeader('keep-alive', `timeout=${this.#idleSeconds}`);
        },
      });
    } catch (reason) {
      log.error('listener.request-failed', { listener: name, error: reason });
      if (response.headersSent) response.destroy();
      else refuse(response, 500, 'The request failed: the log says why.');
    }
  }
}

function refuse(response: ServerResponse, status: number, sentence: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${sentence}\n`);
}

const UNREADABLE: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The headers are too long.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Payload Too Large', 'The chunk extensions are too long.'],
};
const NO_HTTP = ['400 Bad Request', 'That is no HTTP request.'] as const;

/** Answers a request that the parser can't read, unless an answer is in progress, and closes the connection. */
function refuseUnreadable({ code = '' }: NodeJS.ErrnoException, stream: unknown): void {
  const connection = stream as Connection;
  const [status, sentence] = UNREADABLE[code] ?? NO_HTTP;
  if (!connection.writable || connection.isAnswering) {
    connection.destroy();
    return;
  }
  const body = `${sentence}\n`;
  connection.write(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  connection.destroySoon();
}

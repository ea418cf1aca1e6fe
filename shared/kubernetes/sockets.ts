import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';
import { LateCallError, late } from './api-error.ts';
import { type Call, METHODS } from './call.ts';
import type { RequestAccess } from './connection.ts';

/** TCP and TLS. Whoever takes longer is not there, or too busy for the calls that would follow. */
const CONNECT_TIMEOUT_MS = 3_000;
/** Idle connections go before servers (90 s) and load balancers (60 s) cut them, perhaps under a request. */
const IDLE_MS = 30_000;
/** How a connection ends that the server closed while it was idle. */
const CUT_WHILE_IDLE: readonly unknown[] = ['ECONNRESET', 'EPIPE'];

/** The head of an answer, its body still to be read. */
export interface Answer {
  readonly response: http.IncomingMessage;
  /** When the request was sent. */
  readonly sentAt: EpochMs;
}

/**
 * Connections to one server, kept for the next request. A request gets its socket only when that is connected, so
 * that it knows when it is sent; one given up before then leaves the connection to the next.
 */
export class Sockets {
  readonly #clock: Clock;
  readonly #plain: http.Agent;
  readonly #tls: https.Agent;
  readonly #connecting = new Set<Socket>();
  #closed = false;

  constructor(clock: Clock, atMost = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    const options: https.AgentOptions = { keepAlive: true, maxSockets: atMost, timeout: IDLE_MS };
    this.#plain = this.#whenConnected(new http.Agent(options), 'connect');
    this.#tls = this.#whenConnected(new https.Agent(options), 'secureConnect');
  }

  /**
   * Sends a call. Rejects with `LateCallError` when it could not be sent by its `notAfter`, with the signal's reason
   * when that aborts, or with an error of the network.
   */
  send(call: Call, access: RequestAccess, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const request = this.#request(call, access, body, signal);
    let over = false;
    const giveUp = (reason: unknown): void => {
      over = true;
      request.destroy();
      reject(reason);
    };
    // A request that has no socket yet says nothing when it is destroyed.
    const aborted = () => giveUp(signal.reason);
    signal.addEventListener('abort', aborted);
    const tooLate = () => giveUp(late(call, access.server.host));
    const { notAfter = Number.POSITIVE_INFINITY } = call;
    const timer = Number.isFinite(notAfter) && setTimeout(tooLate, Math.max(0, notAfter - this.#clock.now()));

    let sentAt = 0;
    request.once('socket', () => {
      if (timer) clearTimeout(timer);
      sentAt = this.#clock.now();
      // The socket is connected: what is written now is sent now.
      if (sentAt > notAfter) tooLate();
      else request.end(body);
    });
    request.once('response', (response) => {
      over = true;
      resolve({ response, sentAt });
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      const stale = request.reusedSocket && CUT_WHILE_IDLE.includes(error.code);
      if (!stale || over || this.#closed) return reject(error);
      // Every call we make may be made twice: UIDs and names guard it. One that is late now may have been sent before.
      this.send(call, access, signal).then(resolve, (second: unknown) =>
        reject(second instanceof LateCallError ? error : second),
      );
    });
    return promise.finally(() => {
      if (timer) clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
    });
  }

  /** Ends all connections. */
  close(): void {
    this.#closed = true;
    this.#plain.destroy();
    this.#tls.destroy();
    for (const socket of this.#connecting) socket.destroy(new Error('the connections were closed'));
  }

  #request(
    call: Call,
    { server, headers, ...tls }: RequestAccess,
    body: string | undefined,
    signal: AbortSignal,
  ): http.ClientRequest {
    const { protocol, origin, pathname } = server;
    const [client, agent] = protocol === 'https:' ? [https, this.#tls] : [http, this.#plain];
    const query = call.query === undefined ? '' : `?${new URLSearchParams(call.query)}`;
    return client.request(`${origin}${pathname.replace(/\/$/, '')}${call.path}${query}`, {
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
  }

  #whenConnected<A extends http.Agent>(agent: A, connected: 'connect' | 'secureConnect'): A {
    const connect = agent.createConnection.bind(agent);
    agent.createConnection = (options, callback) => {
      const socket = connect(options) as Socket;
      this.#connecting.add(socket);
      const timer = setTimeout(() => socket.destroy(new ConnectTimeoutError()), CONNECT_TIMEOUT_MS);
      const settle = (error?: Error): void => {
        clearTimeout(timer);
        this.#connecting.delete(socket);
        callback?.(error ?? null, socket);
      };
      socket.once(connected, () => settle());
      socket.once('error', settle);
      // Returned, the socket would be used at once.
      return undefined;
    };
    return agent;
  }
}

class ConnectTimeoutError extends Error {
  readonly code = 'ETIMEDOUT';
}

import { once } from 'node:events';
import type http from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Transform } from 'node:stream';
import { text } from 'node:stream/consumers';
import { generate } from 'selfsigned';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { until } from './until.ts';

/** A request from the service to the API server. */
export interface TappedRequest {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  readonly body: string;
  /** The API server's answer; `undefined` before it comes. */
  status?: number;
  /** The time at which the request was forwarded; `undefined`: not yet, or never. */
  forwardedAt?: number;
  /**
   * The response that the client received, which need not be the API server's, and the time when all of it was sent;
   * `undefined`: not yet, or never.
   */
  answer?: { readonly status: number; readonly at: number };
}

/** A request between the client and the API server. */
export interface Passage {
  readonly request: TappedRequest;
  /** The response to the client. */
  readonly response: Http2ServerResponse;
  /** Forwards the request; returns the API server's response. */
  readonly forward: () => Promise<http.IncomingMessage>;
}

/** Requests that are kept from the API server until they are released. */
export interface Held {
  /** Resolves with the first request that is held. */
  first(): Promise<TappedRequest>;
  release(): void;
}

interface Hold {
  readonly matches: (request: TappedRequest) => boolean;
  readonly requests: TappedRequest[];
  readonly released: Promise<void>;
}

const certificate = await generate([{ name: 'commonName', value: 'wiretap' }], {
  keyType: 'ec',
  curve: 'P-256',
  algorithm: 'sha256',
  extensions: [{ name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] }],
});

/** Headers that a proxy does not forward. */
const HOP_BY_HOP = ['connection', 'host', 'transfer-encoding', 'keep-alive'];

/**
 * A proxy between a service and the API server that records requests, can hold requests back, and can be cut. The
 * service connects to it by HTTP/2, as to an API server, with its own credentials.
 */
export class Wiretap {
  /** Every request so far except watches, in the order of arrival. */
  readonly requests: TappedRequest[] = [];
  readonly #upstream: Connection;
  readonly #agent = new https.Agent({ keepAlive: true });
  readonly #holds = new Set<Hold>();
  /** Handles a request; by default the request and its response are forwarded. */
  carry: (passage: Passage) => Promise<void> = async ({ response, forward }) =>
    passOn(await forward(), response);
  #server: Http2SecureServer;
  readonly #sockets = new Set<Socket>();
  #port = 0;

  private constructor(upstream: Connection) {
    this.#upstream = upstream;
    this.#server = this.#newServer();
  }

  static async open(upstream: Connection): Promise<Wiretap> {
    const tap = new Wiretap(upstream);
    await tap.mend();
    return tap;
  }

  /** The connection by which a service reaches the API server through the wiretap. */
  get connection(): Connection {
    const host = `127.0.0.1:${this.#port}`;
    const access = { server: new URL(`https://${host}`), headers: {}, ca: certificate.cert };
    return { host, requestOptions: async () => access };
  }

  /** Breaks all connections and stops listening on the port. */
  async cut(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Listens again, on the same port. */
  async mend(): Promise<void> {
    this.#server = this.#newServer();
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Keeps matching requests from the API server from now on. */
  hold(matches: (request: TappedRequest) => boolean): Held {
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const hold: Hold = { matches, requests: [], released };
    this.#holds.add(hold);
    return {
      first: () => until('the awaited request comes', () => hold.requests[0]),
      release: () => {
        this.#holds.delete(hold);
        resolve();
      },
    };
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.cut();
    this.#agent.destroy();
  }

  #newServer(): Http2SecureServer {
    const { private: key, cert } = certificate;
    const server = createSecureServer({ key, cert }, (request, response) => {
      this.#pass(request, response).catch(() => response.destroy());
    });
    return server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  async #pass(incoming: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = incoming;
    const body = await text(incoming);
    const contentType = headers['content-type'] ?? '';
    const request: TappedRequest = { at: Date.now(), method, path, contentType, body };
    if (!path.includes('watch=1')) this.requests.push(request);
    for (const hold of [...this.#holds].filter(({ matches }) => matches(request))) {
      hold.requests.push(request);
      await hold.released;
    }
    // The event also fires for a response that was broken off.
    response.once('finish', () => {
      if (response.writableEnded) request.answer = { status: response.statusCode, at: Date.now() };
    });
    const forward = () => this.#forward(request, headers, response);
    await this.carry({ request, response, forward });
  }

  async #forward(
    request: TappedRequest,
    headers: http.IncomingHttpHeaders,
    response: Http2ServerResponse,
  ): Promise<http.IncomingMessage> {
    const { server, ca, rejectUnauthorized, servername } = await this.#upstream.requestOptions();
    const passed = Object.entries(headers).filter(
      ([name]) => !HOP_BY_HOP.includes(name) && !name.startsWith(':'),
    );
    request.forwardedAt = Date.now();
    const call = https.request(new URL(request.path, server), {
      method: request.method,
      agent: this.#agent,
      headers: Object.fromEntries(passed),
      ...(ca === undefined ? {} : { ca }),
      ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
      ...(servername === undefined ? {} : { servername }),
    });
    response.once('close', () => call.destroy());
    call.end(request.body);
    const [answer] = (await once(call, 'response')) as [http.IncomingMessage];
    request.status = answer.statusCode ?? 0;
    answer.on('error', () => response.destroy());
    return answer;
  }
}

/** Forwards an API server's response to the client as it arrives, optionally through `through`. */
export function passOn(
  answer: http.IncomingMessage,
  response: Http2ServerResponse,
  through?: Transform,
): void {
  response.writeHead(answer.statusCode ?? 0, withoutHops(answer.headers));
  (through ? answer.pipe(through) : answer).pipe(response);
}

const withoutHops = (headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));

import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { generate } from 'selfsigned';
import type { Connection, RequestAccess } from '#shared/kubernetes/http/connection.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { type Clock, systemClock } from '#shared/time/clock.ts';
import { settled } from '#test/world/turns.ts';

/** A request as the server received it. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly httpVersion: string;
}

export type Answer = (response: ServerResponse, request: Received) => void;

/** An object that accepts cleanup functions, such as a test. */
export interface Ending {
  after(close: () => unknown): void;
}

/**
 * Starts a server on a free port of this machine, with all its connections, until the end of the test. The test ends
 * after its clients have seen that: a mocked timer that they clear later would remove one of the next test.
 */
export async function listening(t: Ending, server: Server) {
  const sockets = new Set<Socket>();
  let ever = 0;
  server.on('connection', (socket: Socket) => {
    ever += 1;
    sockets.add(socket.on('error', () => undefined));
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  /** Breaks all connections. */
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(async () => {
    server.close();
    cut();
    await settled();
  });
  const { port } = server.address() as AddressInfo;
  /** The number of connections ever opened and the number open now. */
  const connections = () => ({ ever, open: sockets.size });
  return { host: `127.0.0.1:${port}`, port, cut, connections };
}

/** Connects a client's socket with a port of this machine. */
export function tunnel(outer: Duplex, port: number): Socket {
  const inner = connect(port, '127.0.0.1');
  for (const socket of [outer, inner]) socket.on('error', () => undefined);
  outer.once('close', () => inner.destroy());
  outer.pipe(inner).pipe(outer);
  return inner;
}

/** A client whose access is obtained for each call, until the end of the test. */
export function clientOf(
  t: Ending,
  access: () => RequestAccess,
  {
    host = access().server.host,
    clock = systemClock,
  }: { readonly host?: string; readonly clock?: Clock } = {},
): RestApi {
  const api = new RestApi({ host, requestOptions: async () => access() }, clock);
  t.after(() => api.close());
  return api;
}

export const certificateOf = (name: string) =>
  generate([{ name: 'commonName', value: name }], { keySize: 2048 });

let own: ReturnType<typeof certificateOf> | undefined;

/** The keys of servers whose clients do not verify them. */
export async function serverKeys() {
  own ??= certificateOf('localhost');
  const { private: key, cert } = await own;
  return { key, cert };
}

export interface ScriptedOptions {
  readonly path?: string;
  readonly clock?: Clock;
  readonly protocol?: 'http/1.1' | 'http/1.1 over TLS' | 'h2';
  /** The maximum number of concurrent requests on an HTTP/2 connection, and the flow-control window of their bodies. */
  readonly streams?: number;
  readonly windowBytes?: number;
  readonly access?: Partial<RequestAccess>;
}

/** An API server with the test's answers, and a `RestApi` for it. Both close at the end of the test. */
export async function scriptedServer(
  t: Ending,
  answer: Answer,
  { path = '', clock = systemClock, protocol = 'http/1.1', access: more, ...windows }: ScriptedOptions = {},
) {
  const requests: Received[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '', headers, httpVersion } = request;
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const received = { method, url, headers, body, httpVersion };
    requests.push(received);
    answer(response, received);
  };
  const isTls = protocol !== 'http/1.1';
  const server = isTls ? await tlsServer(protocol === 'h2', windows, serve) : http.createServer(serve);
  const { host, port, cut, connections } = await listening(t, server);

  let forgotten = 0;
  const connection: Connection = {
    host,
    requestOptions: async () => ({
      server: new URL(`${isTls ? 'https' : 'http'}://${host}${path}`),
      headers: isTls ? { Authorization: 'Bearer sesame' } : { 'Impersonate-User': 'sesame' },
      ...(isTls ? { rejectUnauthorized: false } : {}),
      ...more,
    }),
    forgetCredentials: () => {
      forgotten += 1;
    },
  };
  const api = new RestApi(connection, clock);
  t.after(() => api.close());
  return {
    api,
    connection,
    host,
    port,
    server,
    requests,
    cut,
    connections,
    /** The number of times that the client was asked to forget its credentials. */
    forgotten: () => forgotten,
  };
}

async function tlsServer(
  isHttp2: boolean,
  { streams = 100, windowBytes = 65_535 }: ScriptedOptions,
  serve: http.RequestListener,
): Promise<Server> {
  const keys = await serverKeys();
  if (!isHttp2) return https.createServer(keys, serve);
  const settings = { maxConcurrentStreams: streams, initialWindowSize: windowBytes };
  return http2.createSecureServer({ ...keys, settings }, serve as never);
}

export const json =
  (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

/** A failure in the API server's format. */
export const status = (code: number, reason: string, message: string, headers = {}): Answer =>
  json({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }, code, headers);

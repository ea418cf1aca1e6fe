import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import http2, {
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import https from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { generate } from 'selfsigned';
import type { RequestAccess } from '#shared/kubernetes/http/connection.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';

const pem = await generate([{ name: 'commonName', value: 'localhost' }], { keySize: 2048 });

export type TlsAnswer = (response: Http2ServerResponse, request: Http2ServerRequest) => void;

/** A TLS server with HTTP/2, or with HTTP/1.1 only, and a `RestApi` for it. Both close at the end of the test. */
export async function tlsServer(
  t: TestContext,
  answer: TlsAnswer,
  {
    clock = systemClock,
    streams = 100,
    windowBytes = 65_535,
    http2: speaksHttp2 = true,
    proxy,
  }: {
    readonly clock?: { now(): number };
    readonly streams?: number;
    /** The flow-control window for a request's body, in bytes. */
    readonly windowBytes?: number;
    readonly http2?: boolean;
    readonly proxy?: URL;
  } = {},
) {
  const requests: Http2ServerRequest[] = [];
  const sessions: ServerHttp2Session[] = [];
  const serve = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    requests.push(request);
    request.resume();
    answer(response, request);
  };
  const keys = { key: pem.private, cert: pem.cert };
  const server = speaksHttp2
    ? http2.createSecureServer(
        { ...keys, settings: { maxConcurrentStreams: streams, initialWindowSize: windowBytes } },
        serve,
      )
    : https.createServer(keys, serve as unknown as RequestListener);
  server.on('session', (session) => sessions.push(session));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  // All connections pass this proxy, which counts them and can stop forwarding silently.
  const inside = new Set<Socket>();
  const door = createServer((outer) => {
    const inner = connect((server.address() as AddressInfo).port, '127.0.0.1');
    for (const socket of [outer, inner]) {
      socket.on('error', () => undefined);
      inside.add(socket);
    }
    outer.pipe(inner).pipe(outer);
    connections += 1;
  });
  let connections = 0;
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  const host = `127.0.0.1:${(door.address() as AddressInfo).port}`;

  const access: RequestAccess = {
    server: new URL(`https://${host}`),
    headers: { Authorization: 'Bearer sesame' },
    rejectUnauthorized: false,
    ...(proxy === undefined ? {} : { proxy }),
  };
  const api = new RestApi({ host, requestOptions: async () => access }, clock as typeof systemClock);
  t.after(() => {
    api.close();
    for (const socket of inside) socket.destroy();
    door.close();
    server.close();
  });
  return {
    api,
    host,
    requests,
    /** The server's sessions. */
    sessions,
    connections: () => connections,
    /** Stops forwarding on all connections without closing them. */
    fallSilent(): void {
      for (const socket of inside) {
        socket.unpipe();
        socket.pause();
      }
    },
  };
}

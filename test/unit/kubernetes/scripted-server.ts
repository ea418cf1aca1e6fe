import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { type Clock, systemClock } from '#shared/time/clock.ts';

/** A request as the server received it. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Answer = (response: ServerResponse, request: Received) => void;

/** An object that accepts cleanup functions, such as a test. */
export interface Ending {
  after(close: () => void): void;
}

/** An HTTP server with the test's answers, and a `RestApi` for it. Both close at the end of the test. */
export async function scriptedServer(
  t: Ending,
  answer: Answer,
  { path = '', clock = systemClock }: { readonly path?: string; readonly clock?: Clock } = {},
) {
  const requests: Received[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    const received = { method, url, headers, body: await text(request) };
    requests.push(received);
    answer(response, received);
  });
  let connections = 0;
  let open = 0;
  server.on('connection', (socket) => {
    connections += 1;
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  let forgotten = 0;
  const connection: Connection = {
    host: `127.0.0.1:${port}`,
    requestOptions: async () => ({
      server: new URL(`http://127.0.0.1:${port}${path}`),
      headers: { 'Impersonate-User': 'sesame' },
    }),
    forgetCredentials: () => {
      forgotten += 1;
    },
  };
  const api = new RestApi(connection, clock);
  t.after(() => {
    api.close();
    server.closeAllConnections();
    server.close();
  });
  return {
    api,
    connection,
    host: `127.0.0.1:${port}`,
    requests,
    /** The number of connections ever opened and the number open now. */
    connections: () => ({ ever: connections, open }),
    /** The number of times that the client was asked to forget its credentials. */
    forgotten: () => forgotten,
  };
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

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { generate } from 'selfsigned';
import { replaceOwn } from '#shared/files/owner-only.ts';
import { type ListenerLog, openListener, type RequestInfo } from '#shared/http/listener.ts';
import { methodNotAllowed, StatusError } from '../objects/status.ts';
import type { ObjectStore } from '../objects/store.ts';
import { reviewAt } from './access-reviews.ts';
import { DISCOVERY } from './discovery.ts';
import { answerForObjects } from './object-requests.ts';
import { openApiAt } from './openapi.ts';
import { sendJson } from './representation.ts';
import { parseApiPath } from './request.ts';

/** Longer than clients keep an idle connection (Go: 90 s), so that no connection is closed during a request. */
const IDLE_SECONDS = 120;
/** A service that evicts here uses up to 64 connections for calls and a few for watches; kubectl uses one per command. */
const CONNECTIONS = 512;
/** The share of all connections that is reserved for callers with the token. */
const CONNECTIONS_WITH_TOKEN = 256;
/** The size of requests' headers: selectors and names of fields make kubectl's requests long. */
const MAX_HEADER_BYTES = 16 * 1024;

/** The paths that need no token; the real server also serves them to everybody. */
const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz'];

export interface SimulatedApiServer {
  /** https, on 127.0.0.1. */
  readonly url: string;
  /** PEM, new at every start. */
  readonly certificate: string;
  /** The bearer token that every request needs, new at every start. */
  readonly token: string;
  /** Ends open watches and stops. */
  close(): Promise<void>;
}

/** Receives failures of requests that are not the client's fault. */
export type ApiServerLog = ListenerLog & {
  error(event: 'simulated-cluster.request-failed', fields: { readonly error: unknown }): void;
};

/** Serves the objects over the Kubernetes API, on a free port of the loopback interface. */
export async function startApiServer(store: ObjectStore, log?: ApiServerLog): Promise<SimulatedApiServer> {
  const { key, certificate } = await loopbackCertificate();
  const token = randomBytes(32).toString('base64url');
  const isAuthorized = bearerCheck(token);
  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    info: RequestInfo,
  ): Promise<void> => {
    try {
      await answer(store, isAuthorized, request, response, info);
    } catch (error) {
      if (!(error instanceof StatusError)) log?.error('simulated-cluster.request-failed', { error });
      if (response.headersSent) response.destroy();
      else refuse(response, error);
    }
  };
  const { port, close } = await openListener({
    name: 'simulated-cluster',
    at: { host: '127.0.0.1', port: 0 },
    tls: { key, cert: certificate },
    log: log ?? NO_LOG,
    serve,
    connections: CONNECTIONS,
    forKnown: CONNECTIONS_WITH_TOKEN,
    headerBytes: MAX_HEADER_BYTES,
    idleSeconds: IDLE_SECONDS,
  });
  return { url: `https://127.0.0.1:${port}`, certificate, token, close };
}

const NO_LOG: ListenerLog = { error: () => undefined };

async function answer(
  store: ObjectStore,
  isAuthorized: (request: IncomingMessage) => boolean,
  request: IncomingMessage,
  response: ServerResponse,
  { url: { pathname, searchParams }, know }: RequestInfo,
): Promise<void> {
  if (HEALTH_PATHS.includes(pathname)) {
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end('ok');
    return;
  }
  if (!isAuthorized(request)) throw new StatusError(401, 'Unauthorized', 'Unauthorized');
  know();
  const document = DISCOVERY[pathname] ?? openApiAt(pathname);
  if (document !== undefined) {
    if (request.method !== 'GET') throw methodNotAllowed();
    sendJson(response, 200, document);
    return;
  }
  const review = reviewAt(pathname);
  if (review !== undefined) {
    if (request.method !== 'POST') throw methodNotAllowed();
    // kubectl sends reviews as protobuf; the answer does not depend on the body.
    request.resume();
    sendJson(response, 201, review);
    return;
  }
  const path = parseApiPath(pathname);
  if (path === undefined) {
    throw new StatusError(404, 'NotFound', 'the server could not find the requested resource');
  }
  await answerForObjects(store, { request, response, query: searchParams, path });
}

function refuse(response: ServerResponse, error: unknown): void {
  const status =
    error instanceof StatusError
      ? error
      : new StatusError(
          500,
          'InternalError',
          'Internal error occurred: see the log of the simulated cluster',
        );
  // Unread bytes of the request's body would be parsed as the next request.
  if (status.code === 413) response.setHeader('connection', 'close');
  if (status.retryAfterSeconds !== undefined) response.setHeader('retry-after', status.retryAfterSeconds);
  sendJson(response, status.code, status.body());
}

/** Returns a function that reports whether a request carries the token, in constant time. */
function bearerCheck(token: string): (request: IncomingMessage) => boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const expected = digest(`Bearer ${token}`);
  return ({ headers }) => timingSafeEqual(expected, digest(headers.authorization ?? ''));
}

/** The key is new at every start, so the validity period protects nothing; it is wide enough for any clock. */
const VALID_FROM = new Date(Date.UTC(2020, 0, 1));
const VALID_TO = new Date(Date.UTC(9999, 11, 31));

/**
 * A self-signed certificate for 127.0.0.1 and localhost, with a new key (ECDSA P-256): kubectl sends a token over
 * TLS only.
 */
async function loopbackCertificate(): Promise<{ key: string; certificate: string }> {
  const { private: key, cert: certificate } = await generate([{ name: 'commonName', value: 'simulated' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: VALID_FROM,
    notAfterDate: VALID_TO,
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          { type: 7, ip: '127.0.0.1' },
          { type: 2, value: 'localhost' },
        ],
      },
    ],
  });
  return { key, certificate };
}

/** The context, cluster and user of the simulated cluster's kubeconfig. */
export const SIMULATED_CONTEXT = 'simulated';

/** Writes a server's kubeconfig atomically, readable by its owner only, because a kubectl may be reading the old one. */
export function writeKubeconfig(
  path: string,
  { url, certificate, token }: Pick<SimulatedApiServer, 'url' | 'certificate' | 'token'>,
): void {
  const content = `apiVersion: v1
kind: Config
current-context: ${SIMULATED_CONTEXT}
contexts:
- name: ${SIMULATED_CONTEXT}
  context:
    cluster: ${SIMULATED_CONTEXT}
    user: ${SIMULATED_CONTEXT}
    namespace: default
clusters:
- name: ${SIMULATED_CONTEXT}
  cluster:
    server: ${url}
    certificate-authority-data: ${Buffer.from(certificate).toString('base64')}
users:
- name: ${SIMULATED_CONTEXT}
  user:
    token: ${token}
`;
  replaceOwn(path, content);
}

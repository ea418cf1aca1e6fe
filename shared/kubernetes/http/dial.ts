import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import net, { isIP, type Socket } from 'node:net';
import tls, { type ConnectionOptions, type TLSSocket } from 'node:tls';
import { defined } from '#shared/defined.ts';
import { reasonOf } from './api-error.ts';
import { DialError, type RequestAccess } from './connection.ts';
import { hostOf, portOf, proxyFor, proxyHeaders } from './proxy.ts';
import { lookup } from './resolve.ts';
import { namesakes, secureContext } from './trust.ts';

/** Timeout of addresses, TCP, a proxy's tunnel, and TLS together. A slower server is down, or too busy. */
export const CONNECT_TIMEOUT_MS = 3_000;

export interface Dialling {
  /** The connected socket, for https after the handshake. Rejects with an error of the network. */
  readonly socket: Promise<Socket>;
  destroy(reason: Error): void;
}

export interface DialOptions {
  /** The protocols to offer within TLS (ALPN). */
  readonly protocols: readonly string[];
  /** TLS session of an earlier connection to the same server with the same access. */
  readonly session?: Buffer;
}

class ConnectTimeoutError extends Error {
  readonly code = 'ETIMEDOUT';
}

/** Connects to a server, through its proxy if it has one. For a plain http server, the connection ends at the proxy. */
export function dial(access: RequestAccess, options: DialOptions): Dialling {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(new ConnectTimeoutError()), CONNECT_TIMEOUT_MS);
  return {
    socket: connect(access, options, over.signal).finally(() => clearTimeout(timer)),
    destroy: (reason) => over.abort(reason),
  };
}

async function connect(access: RequestAccess, options: DialOptions, over: AbortSignal): Promise<Socket> {
  try {
    return await attempt(access, options, over);
  } catch (error) {
    // OpenSSL tried only one of the authorities with this name.
    for (const ca of isBadSignature(error) ? namesakes(access.ca) : []) {
      const other = await attempt({ ...access, ca }, options, over).catch(() => undefined);
      if (other) return other;
    }
    throw error;
  }
}

const isBadSignature = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException).code === 'CERT_SIGNATURE_FAILURE' ||
  (error instanceof DialError && isBadSignature(error.cause ?? {}));

async function attempt(access: RequestAccess, options: DialOptions, over: AbortSignal): Promise<Socket> {
  const { server } = access;
  const proxy = proxyFor(server, access.proxy);
  const overTls = [server, proxy].some((url) => url?.protocol === 'https:');
  // Create the context first, so that invalid certificates are reported as such.
  const context = overTls ? secureContext(access) : undefined;
  const first = proxy ?? server;
  const [host, port] = [hostOf(first), portOf(first)];
  const tcp = net.connect({ host, port, lookup, noDelay: true, keepAlive: true });
  const reached: Promise<Socket> = ready(tcp, 'connect', over).then((): Socket | Promise<Socket> =>
    // As in Go, the cluster's CA, certificate, and tls-server-name apply to its proxy, too.
    context && proxy?.protocol === 'https:'
      ? secure(tcp, proxy, access, { secureContext: context }, over)
      : tcp,
  );
  const socket = await reached.catch((error: unknown) => {
    if (proxy === undefined) throw error;
    throw new DialError(`the proxy ${proxy.host} cannot be reached: ${reasonOf(error)}`, { cause: error });
  });
  if (server.protocol !== 'https:') return socket;
  if (proxy) await tunnel(socket, server, proxy, over);
  const { protocols, session } = options;
  const offer = { ALPNProtocols: [...protocols], ...defined({ session }) };
  return secure(socket, server, access, { secureContext: context, ...offer }, over);
}

async function secure(
  socket: Socket,
  url: URL,
  { servername, rejectUnauthorized }: RequestAccess,
  options: ConnectionOptions,
  over: AbortSignal,
): Promise<TLSSocket> {
  const host = hostOf(url);
  const secured = tls.connect({
    ...options,
    ...serverName(servername ?? host),
    ...defined({ rejectUnauthorized }),
    socket,
    host,
  });
  await ready(secured, 'secureConnect', over);
  return secured;
}

/** An IP address is not a name. */
const serverName = (host: string) => (isIP(host) ? {} : { servername: host });

async function ready(socket: Socket, event: 'connect' | 'secureConnect', over: AbortSignal): Promise<void> {
  const destroy = () => socket.destroy(over.reason);
  over.addEventListener('abort', destroy);
  try {
    if (over.aborted) destroy();
    await once(socket, event);
  } finally {
    over.removeEventListener('abort', destroy);
  }
}

async function tunnel(socket: Socket, server: URL, proxy: URL, over: AbortSignal): Promise<void> {
  const path = `${server.hostname}:${portOf(server)}`;
  const request = http.request({
    createConnection: () => socket,
    method: 'CONNECT',
    path,
    headers: { host: path, ...proxyHeaders(proxy) },
    signal: over,
  });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once('connect', resolve);
  // A server that is not a proxy responds as to any request.
  request.once('response', resolve);
  request.on('error', (error) => reject(over.aborted ? over.reason : error));
  request.end();
  const { statusCode = 0 } = await promise;
  if (statusCode === 200) return;
  socket.destroy();
  throw new DialError(`the proxy ${proxy.host} answered ${statusCode}`);
}

import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { generate } from 'selfsigned';
import { SeededRandom } from './seeded-random.ts';

export const PROTOCOLS = ['http/1.1', 'http/1.1 over TLS', 'h2'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** The behavior of an API server. */
export interface ServerManners {
  readonly protocol: Protocol;
  /** The shortest and longest time to answer a delete, and any other call. */
  readonly deleteMs: readonly [number, number];
  readonly callMs: readonly [number, number];
  /** True if the server cancels a request when its client hangs up, as Go's servers do. */
  readonly cancels: boolean;
  /** True if a request is performed first and answered later; otherwise it is performed right before the answer. */
  readonly doesFirst: boolean;
  /** The chance that the server cuts a connection during a call, before or after it performed the request. */
  readonly cuts: number;
}

/** The history of one pod. */
export interface ServedPod {
  readonly node: string;
  readonly name: string;
  readonly uid: string;
  version: number;
  marked: boolean;
  /** The number of performed deletes. */
  deletes: number;
  /** The numbers of requested deletes, of those whose connection the server cut, and of rejected ones. */
  requests: number;
  cut: number;
  refused: number;
  /** The number of deletes on which the client hung up. */
  hungUp: number;
}

/** The time that a client has to wait for an answer. */
const PATIENCE_MS = 8_000;

const pem = await generate([{ name: 'commonName', value: 'localhost' }], { keySize: 2048 });

/** An API server on a real socket of this machine: nodes with one taint, and pods that are marked and deleted. */
export class SocketServer {
  readonly pods = new Map<string, ServedPod>();
  readonly #seed: number;
  readonly #manners: ServerManners;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** The connections that the server cut, by the client's port. */
  readonly #cut = new Set<number>();
  /** The number of times that each call came, so that its latency is the same in every run. */
  readonly #calls = new Map<string, number>();

  constructor(seed: number, manners: ServerManners) {
    this.#seed = seed;
    this.#manners = manners;
    const serve = (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response);
    const keys = { key: pem.private, cert: pem.cert };
    this.#server =
      manners.protocol === 'http/1.1'
        ? http.createServer(serve)
        : manners.protocol === 'h2'
          ? http2.createSecureServer(keys, serve as never)
          : https.createServer(keys, serve);
    // On a server with TLS, the socket to cut is the underlying one.
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      this.#cut.delete(socket.remotePort ?? 0);
      socket.on('error', () => undefined);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  async listen(): Promise<URL> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = this.#server.address() as AddressInfo;
    return new URL(`${this.#manners.protocol === 'http/1.1' ? 'http' : 'https'}://127.0.0.1:${port}`);
  }

  addPod(node: string, name: string): void {
    const counts = { deletes: 0, requests: 0, cut: 0, refused: 0, hungUp: 0 };
    this.pods.set(name, { node, name, uid: `uid-${name}`, version: 1, marked: false, ...counts });
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request;
    const port = request.socket.remotePort ?? 0;
    response.on('error', () => undefined);
    const { pathname, searchParams } = new URL(url, 'http://server');
    const name = /\/pods\/([^/]+)/.exec(pathname)?.[1] ?? '';
    const pod = this.pods.get(name);
    const isDelete = method === 'DELETE';
    if (pod && isDelete) pod.requests += 1;
    let hungUp = false;
    const requestedAt = performance.now();
    response.once('close', () => {
      hungUp = !response.writableEnded;
      if (!hungUp || !pod || !isDelete) return;
      if (this.#cut.has(port)) pod.cut += 1;
      else if (performance.now() - requestedAt < PATIENCE_MS) pod.hungUp += 1;
    });
    const body = await text(request).catch(() => '');
    const random = this.#randomOf(`${method} ${pathname}`);
    const { deleteMs, callMs, cuts, doesFirst, cancels } = this.#manners;
    const cut = random.chance(cuts) ? random.pick(['before', 'after'] as const) : undefined;
    const answerMs = random.between(...(isDelete ? deleteMs : callMs));
    const perform = () => this.#perform(method, pathname, searchParams, body);
    const early = doesFirst && cut !== 'before' ? perform() : undefined;
    await delay(answerMs);
    if (cut !== undefined) {
      if (cut === 'after' && !early) perform();
      return this.#cutOff(port);
    }
    if (hungUp && cancels && !early) return;
    const { status, json } = early ?? perform();
    if (hungUp) return;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(json));
  }

  /** Cuts a connection; all calls that share it fail. */
  #cutOff(port: number): void {
    this.#cut.add(port);
    for (const socket of this.#sockets) if (socket.remotePort === port) socket.destroy();
  }

  #randomOf(call: string): SeededRandom {
    const times = (this.#calls.get(call) ?? 0) + 1;
    this.#calls.set(call, times);
    let hash = this.#seed;
    for (const character of `${call} ${times}`) hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0;
    return new SeededRandom(hash);
  }

  #perform(method: string, pathname: string, query: URLSearchParams, body: string) {
    if (pathname === '/version') return done({ major: '1', minor: '36' });
    if (pathname.endsWith('/events')) return done({ kind: 'Event' }, 201);
    if (pathname.startsWith('/api/v1/nodes/')) {
      const name = pathname.split('/').at(-1);
      return done({
        kind: 'Node',
        metadata: { name, resourceVersion: '1' },
        spec: { taints: [{ key: 'a', effect: 'NoExecute' }] },
      });
    }
    if (pathname === '/api/v1/pods') {
      const node = query.get('fieldSelector')?.split('=')[1];
      const items = [...this.pods.values()]
        .filter((pod) => pod.node === node && pod.deletes === 0)
        .map(podJson);
      return done({ kind: 'PodList', metadata: { resourceVersion: '9' }, items });
    }
    const pod = this.pods.get(/\/pods\/([^/]+)/.exec(pathname)?.[1] ?? '');
    if (!pod || (pod.deletes > 0 && method !== 'DELETE')) return refused(404, 'NotFound');
    if (method === 'PATCH') {
      pod.marked = true;
      pod.version += 1;
    }
    if (method === 'DELETE') return this.#delete(pod, body);
    return done(podJson(pod));
  }

  #delete(pod: ServedPod, body: string) {
    const { preconditions = {} } = JSON.parse(body || '{}') as {
      readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
    };
    const { uid, resourceVersion } = preconditions;
    const isOther = uid !== pod.uid || (resourceVersion ?? String(pod.version)) !== String(pod.version);
    if (pod.deletes > 0 || isOther) {
      pod.refused += 1;
      return refused(pod.deletes > 0 ? 404 : 409, pod.deletes > 0 ? 'NotFound' : 'Conflict');
    }
    pod.deletes += 1;
    return done({ kind: 'Status', status: 'Success' });
  }
}

const done = (json: object, status = 200) => ({ status, json });

const refused = (code: number, reason: string) =>
  done({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code, message: reason }, code);

const podJson = ({ node, name, uid, version, marked }: ServedPod) => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: {
    name,
    namespace: 'default',
    uid,
    creationTimestamp: '2026-01-01T00:00:00Z',
    resourceVersion: String(version),
  },
  spec: { nodeName: node, tolerations: [] },
  status: {
    conditions: marked
      ? [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }]
      : [],
  },
});

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import { openListener, type RequestInfo } from '#shared/http/listener.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { once } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import { FAILED, type Failure, TOKEN_HEADER } from './api.ts';
import type { ApiServer } from './api-server.ts';
import type { PageFiles } from './page-files.ts';
import { isSame, Sessions } from './session.ts';

/** The console cannot be served at its address. The message names the setting and the fix. */
export class ConsoleAddressError extends Error {
  override readonly name = 'ConsoleAddressError';
}

export interface ConsoleOptions {
  /** An address of the loopback interface. Absent: the IPv4 address. */
  readonly host?: string | undefined;
  /** 0: any free port. */
  readonly port: number;
  /** The setting by which the operator chooses the port. */
  readonly portSetBy: string;
  /** Makes the API. Called for the first request of a session, and again after a failure. */
  readonly api: () => Promise<ApiServer>;
  /** Absent: the page of this release. */
  readonly page?: PageFiles | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Console {
  readonly address: string;
  /** Makes a new URL that admits one browser once. It is as secret as the console. */
  link(): string;
  close(): Promise<void>;
}

const LOOPBACK = ['127.0.0.1', '::1'];
const COOKIE = 'taintward';
/** Reserved, so that other users of this machine can't lock an operator out. */
export const CONNECTIONS_OF_SESSIONS = 16;
/** Browsers send the cookies of all servers of this machine to each of them. */
export const MAX_HEADER_BYTES = 64 * 1024;
const TEXT = 'text/plain; charset=utf-8';

/** Headers of every response. */
const HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/**
 * Serves the console on the loopback interface, to browsers that opened one of its links. Defenses:
 * docs/internals/decisions/console.md. Rejects with `ConsoleAddressError`.
 */
export async function startConsole(options: ConsoleOptions): Promise<Console> {
  const { host = '127.0.0.1', clock } = options;
  if (!LOOPBACK.includes(host)) {
    throw new ConsoleAddressError(
      `the console is served on ${LOOPBACK.join(' or ')} only, and not on ${host}: reach it from elsewhere by ssh -L`,
    );
  }
  const sessions = new Sessions({ clock });
  const named = isIPv6(host) ? `[${host}]` : host;
  const authorities: string[] = [];
  const guarded = new Guarded({ ...options, authorities, sessions });
  const listener = await openListener({
    name: 'console',
    at: { host, port: options.port },
    log: options.log,
    names: 'any',
    forKnown: CONNECTIONS_OF_SESSIONS,
    headerBytes: MAX_HEADER_BYTES,
    headers: { ...HEADERS, 'content-security-policy': policyOf(), 'cache-control': 'no-store' },
    serve: (request, response, question) => guarded.answer(request, response, question),
  }).catch((error: NodeJS.ErrnoException) => {
    throw new ConsoleAddressError(
      `the console cannot be served on port ${options.port} of ${host} (${error.code}): choose another with ${options.portSetBy}, or 0 for any`,
    );
  });
  const { port } = listener;
  authorities.push(`${named}:${port}`, `localhost:${port}`);
  return {
    address: `http://${named}:${port}`,
    link: () => `http://${named}:${port}/?key=${sessions.link()}`,
    close() {
      sessions.close();
      return listener.close();
    },
  };
}

interface GuardedDeps extends Pick<ConsoleOptions, 'api' | 'page' | 'log'> {
  readonly authorities: readonly string[];
  readonly sessions: Sessions;
}

/** `scripts` are hashes of inline scripts, which are allowed in addition to its files. */
const policyOf = (...scripts: readonly string[]): string =>
  [
    "default-src 'none'",
    ["script-src 'self'", ...scripts.map((hash) => `'${hash}'`)].join(' '),
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

class Guarded {
  readonly #deps: GuardedDeps;
  /** Page and API are loaded on first use: a service may run for months without users. */
  readonly #load = once(async () => {
    const { api, page } = this.#deps;
    const [made, { readPageFiles }] = await Promise.all([api(), import('./page-files.ts')]);
    return { api: made, page: page ?? readPageFiles() };
  });

  constructor(deps: GuardedDeps) {
    this.#deps = deps;
  }

  /** Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse, question: RequestInfo): Promise<void> {
    try {
      await this.#answer(request, response, question);
    } catch (error) {
      // Leave out the first part, which is the session's secret.
      const [, , ...path] = question.url.pathname.split('/');
      this.#deps.log.error('console.failed', { path: path.join('/'), error });
      if (response.headersSent) response.destroy();
      else refuse(response, 500, FAILED);
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { url, know }: RequestInfo,
  ): Promise<void> {
    const { authorities, sessions } = this.#deps;
    // With DNS rebinding, a page of another site reaches this server, but with the other site's name.
    const authority = request.headers.host ?? '';
    if (!authorities.includes(authority)) {
      return refuse(response, 421, `The console is at http://${authorities[0]} and under no other name.`);
    }
    const { pathname, searchParams } = url;
    if (pathname === '/') {
      if (this.#enter(request, response, searchParams.get('key'))) know();
      return;
    }
    const [, first = '', ...rest] = pathname.split('/');
    const session = sessions.find(first, cookieOf(request));
    if (!session)
      return refuse(
        response,
        401,
        `This session has ended, as with each restart of the service: ${NEW_LINK}`,
      );
    know();
    const path = rest.join('/');
    const site = request.headers['sec-fetch-site'];
    const isPage = path === '';
    // Navigations from other sites are allowed, because they only open the console's page.
    if (!isPage && site !== undefined && site !== 'same-origin') return refuse(response, 403, ELSEWHERE);
    const reads = request.method === 'GET' || request.method === 'HEAD';
    if (!reads) {
      if (request.headers.origin !== `http://${authority}`) return refuse(response, 403, ELSEWHERE);
      const given = request.headers[TOKEN_HEADER];
      if (typeof given !== 'string' || !isSame(given, session.token)) return refuse(response, 403, NO_TOKEN);
    }
    // Requests without a session must not cause anything to be loaded.
    const { api, page } = await this.#load();
    if (reads && isPage) {
      response.setHeader('content-security-policy', policyOf(page.inlineHash));
      return send(request, response, page.document);
    }
    if (reads && path.startsWith('assets/')) {
      return sendAsset(request, response, page, path.slice('assets/'.length));
    }
    const { token, ended } = session;
    await api.answer(request, response, { path, searchParams, token, ended });
  }

  /** Opens a session by a link. False: the link is not valid. */
  #enter(request: IncomingMessage, response: ServerResponse, key: string | null): boolean {
    const { sessions } = this.#deps;
    // A prefetch must not use up the link.
    const isPrefetch = request.method !== 'GET' || /prefetch|prerender/.test(purposeOf(request));
    const session = key === null || isPrefetch ? undefined : sessions.open(key);
    if (!session) {
      refuse(response, 401, `The link was opened before, or not for an hour: ${NEW_LINK}`);
      return false;
    }
    const { path, cookie } = session;
    response.setHeader('set-cookie', `${COOKIE}=${cookie}; Path=/${path}/; HttpOnly; SameSite=Strict`);
    // Not a redirect: if the link was opened from another site, the browser would not send a strict cookie.
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(
      `<!doctype html><html lang="en"><meta charset="utf-8"><title>Taintward</title>` +
        `<meta http-equiv="refresh" content="0; url=/${path}/"><a href="/${path}/">Go on to the console</a></html>\n`,
    );
    return true;
  }
}

const NEW_LINK = 'for a new link, run taintward console, or type console at npm start.';
const ELSEWHERE = 'Another page asked for this: open the console by its own link.';
const NO_TOKEN = 'This is not from a page of this session: load it again.';

const purposeOf = ({ headers }: IncomingMessage): string =>
  `${headers['sec-purpose'] ?? ''} ${headers['purpose'] ?? ''}`;

function cookieOf({ headers }: IncomingMessage): string | undefined {
  const prefix = `${COOKIE}=`;
  const found = (headers.cookie ?? '').split('; ').find((each) => each.startsWith(prefix));
  return found?.slice(prefix.length);
}

function sendAsset(request: IncomingMessage, response: ServerResponse, page: PageFiles, path: string): void {
  const prefix = `${page.version}/`;
  const asset = path.startsWith(prefix) ? page.asset(path.slice(prefix.length)) : undefined;
  if (!asset) {
    refuse(response, 404, 'There is no such file: load the page again.');
    return;
  }
  const etag = `"${page.version}"`;
  response.setHeader('etag', etag);
  response.setHeader('cache-control', 'private, max-age=31536000, immutable');
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304);
    response.end();
    return;
  }
  send(request, response, asset);
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { type, body }: { readonly type: string; readonly body: Buffer },
): void {
  response.writeHead(200, { 'content-type': type, 'content-length': body.length });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function refuse(response: ServerResponse, status: number, error: string): void {
  const json = /^\/[^/]+\/api\//.test(response.req.url ?? '');
  response.writeHead(status, { 'content-type': json ? 'application/json' : TEXT });
  response.end(json ? JSON.stringify({ error } satisfies Failure) : `${error}\n`);
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import { type Asked, openListener } from '#shared/http/listener.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { once } from '#shared/time/once.ts';
import { FAILED, type Failure, TOKEN_HEADER } from './api.ts';
import type { ApiServer } from './api-server.ts';
import type { PageFiles } from './page-files.ts';
import { isSame, Sessions } from './session.ts';

/** The console cannot be served where it is to be; the message names the setting and the fix. */
export class ConsoleAddressError extends Error {
  override readonly name = 'ConsoleAddressError';
}

export interface ConsoleOptions {
  /** An address of the loopback interface; absent: that of IPv4. */
  readonly host?: string;
  /** 0: any free one. */
  readonly port: number;
  /** What the operator sets it by. */
  readonly portSetBy: string;
  /** What is served. It is asked for when the first who got in asks, and again when that failed. */
  readonly content: () => Promise<Content>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The page, and what it asks. */
export interface Content {
  readonly api: ApiServer;
  readonly page: PageFiles;
}

export interface Console {
  /** Where it is, for people. */
  readonly address: string;
  /** A new URL by which one browser gets in, once: it is as secret as what it shows. */
  link(): string;
  /** Ends all sessions and connections. */
  close(): Promise<void>;
}

const LOOPBACK = ['127.0.0.1', '::1'];
const COOKIE = 'taintward';
/** Connections that only sessions have: nobody else on this machine locks an operator out. */
const CONNECTIONS_OF_SESSIONS = 16;
/** Browsers send the cookies of all servers of this machine to each of them. */
const MAX_HEADER_BYTES = 64 * 1024;
const TEXT = 'text/plain; charset=utf-8';

/** What every answer carries. */
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
 * Serves the console on the loopback interface, to browsers that have opened one of its links. See
 * docs/internals/decisions/console.md for what it withstands. Rejects with `ConsoleAddressError`.
 */
export async function startConsole(options: ConsoleOptions): Promise<Console> {
  const { host = '127.0.0.1', content, clock, log } = options;
  if (!LOOPBACK.includes(host)) {
    throw new ConsoleAddressError(
      `the console is served on ${LOOPBACK.join(' or ')} only, and not on ${host}: reach it from elsewhere by ssh -L`,
    );
  }
  const sessions = new Sessions({ clock });
  const named = isIPv6(host) ? `[${host}]` : host;
  const authorities: string[] = [];
  const guarded = new Guarded({ authorities, sessions, content, log });
  const listener = await openListener({
    ...{ name: 'console', at: { host, port: options.port }, log },
    names: 'any',
    forKnown: CONNECTIONS_OF_SESSIONS,
    headerBytes: MAX_HEADER_BYTES,
    headers: { ...HEADERS, 'content-security-policy': policyOf(), 'cache-control': 'no-store' },
    serve: (request, response, asked) => guarded.answer(request, response, asked),
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

interface GuardedDeps {
  readonly authorities: readonly string[];
  readonly sessions: Sessions;
  readonly content: () => Promise<Content>;
  readonly log: Log;
}

/** What a page may do; `scripts` are allowed beside its own files, by their hashes. */
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

/** Who is let in, and to what. */
class Guarded {
  readonly #deps: GuardedDeps;
  readonly #load: () => Promise<Content>;

  constructor(deps: GuardedDeps) {
    this.#deps = deps;
    this.#load = once(deps.content);
  }

  /** Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse, asked: Asked): Promise<void> {
    try {
      await this.#answer(request, response, asked);
    } catch (error) {
      // Without its first part, which is the session's.
      const [, , ...path] = asked.url.pathname.split('/');
      this.#deps.log.error('console.failed', { path: path.join('/'), error });
      if (response.headersSent) response.destroy();
      else refuse(response, 500, FAILED);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, { url, know }: Asked): Promise<void> {
    const { authorities, sessions } = this.#deps;
    // A page whose name was made to lead here says that name.
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
    if (!session) return refuse(response, 401, NO_SESSION);
    know();
    const path = rest.join('/');
    const site = request.headers['sec-fetch-site'];
    const isPage = path === '';
    // Navigations may come from anywhere: what they bring is our page at most.
    if (!isPage && site !== undefined && site !== 'same-origin') return refuse(response, 403, ELSEWHERE);
    const reads = request.method === 'GET' || request.method === 'HEAD';
    if (!reads) {
      if (request.headers.origin !== `http://${authority}`) return refuse(response, 403, ELSEWHERE);
      const given = request.headers[TOKEN_HEADER];
      if (typeof given !== 'string' || !isSame(given, session.token)) return refuse(response, 403, NO_TOKEN);
    }
    // Nobody who has no session has anything loaded.
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

  /** Makes a session of a link; false: that opens none. */
  #enter(request: IncomingMessage, response: ServerResponse, key: string | null): boolean {
    const { sessions } = this.#deps;
    // What only looks ahead is not to use the link up.
    const looksAhead = request.method !== 'GET' || /prefetch|prerender/.test(purposeOf(request));
    const session = key === null || looksAhead ? undefined : sessions.open(key);
    if (!session) {
      refuse(response, 401, NO_SESSION);
      return false;
    }
    const { path, cookie } = session;
    response.setHeader('set-cookie', `${COOKIE}=${cookie}; Path=/${path}/; HttpOnly; SameSite=Strict`);
    // Not a redirect: where the link stood on a page of another site, a strict cookie would not come along.
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(
      `<!doctype html><html lang="en"><meta charset="utf-8"><title>Taintward</title>` +
        `<meta http-equiv="refresh" content="0; url=/${path}/"><a href="/${path}/">Go on to the console</a></html>\n`,
    );
    return true;
  }
}

const NO_SESSION =
  'This session has ended, or the link was opened before, or not for an hour: get a new link where the console was started.';
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

/** In JSON to the page, in words to who opens something by hand. */
function refuse(response: ServerResponse, status: number, error: string): void {
  const json = /^\/[^/]+\/api\//.test(response.req.url ?? '');
  response.writeHead(status, { 'content-type': json ? 'application/json' : TEXT });
  response.end(json ? JSON.stringify({ error } satisfies Failure) : `${error}\n`);
}

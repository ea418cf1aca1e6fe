import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import type { ConsoleAction } from '#shared/console/api.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { aNode, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { servedConsole } from '#test/unit/console/served-console.ts';
import { hostileJson, hostileText } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, sentence } from './refusal.ts';

/**
 * A request by a browser, or by another client. Texts may hold `SESSION` and `TOKEN`, which stand for the values of a signed-in
 * session.
 */
interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  /** True: the request ends before its announced length. */
  readonly isCut: boolean;
}

const QUESTIONS = [
  ...['api/session', 'api/status', 'api/timeline?cluster=prod', 'api/nodes?cluster=prod', 'api/stuck'],
  'api/pending?cluster=prod&state=due&limit=500',
  'api/history?cluster=prod&pod=web-0&what=done&from=0&to=1795348800000&limit=10',
  'api/audit?cluster=prod',
  'api/policy?cluster=prod',
  'api/explain/pod?cluster=prod&namespace=shop&pod=web-0',
  'api/explain/node?cluster=prod&node=n1',
  'api/what-if?cluster=prod&taint=maintenance%3Dx%3ANoExecute&selector=app%3Dweb&nodes=n1,n2',
  ...['api/demo/nodes', 'api/live', '', 'assets/x/main.ts', '?key=x'],
];
const cluster = clusterName('prod');
const ACTS: readonly ConsoleAction[] = [
  { kind: 'stop', cluster, reason: 'a test', durationMs: 60_000 },
  { kind: 'resume', reason: 'a test' },
  { kind: 'resume', cluster, id: 's1', reason: 'a test' },
  { kind: 'hold', cluster, target: { kind: 'pod', namespace: 'shop', name: 'web-0' }, reason: 'a test' },
  { kind: 'release', cluster, id: 'h1', reason: 'a test' },
  { kind: 'release-guard', cluster, reason: 'a test' },
  { kind: 'apply-policy', cluster, text: 'mode: enforce', reason: 'a test' },
  { kind: 'retry', cluster, node: 'n1' as never, reason: 'a test' },
];
const BODIES: readonly (readonly [string, readonly object[]])[] = [
  ['api/preview', ACTS],
  ['api/acts', ACTS.map((act) => ({ act, confirm: 'x' }))],
  [
    'api/policy',
    [{ cluster, text: 'mode: enforce', edit: { setting: 'guard', value: '{ zone: off }' }, count: true }],
  ],
  ['api/demo/taint', [{ node: 'n1', taint: 'a=b:NoExecute' }]],
];
const OWN = [
  ['host', 'HOST'],
  ['cookie', 'taintward=COOKIE'],
  ['x-taintward-token', 'TOKEN'],
  ['origin', 'http://HOST'],
  ['content-type', 'application/json'],
  ['sec-fetch-site', 'same-origin'],
] as const;
/** The headers without which no action is performed. */
const NEEDED = new Map<string, string>(OWN.filter(([name]) => name !== 'sec-fetch-site'));
const HEADERS = [
  ...OWN.map(([name]) => name),
  ...['content-length', 'transfer-encoding', 'expect', 'connection', 'if-none-match', 'purpose', '__proto__'],
];
const VALUES = [
  ...['', '0', '-1', '5', '99999999999999999999', 'chunked', '100-continue', 'upgrade', 'null', 'prefetch'],
  ...['http://evil.example', 'evil.example', 'http://127.0.0.1:1', 'text/plain', 'cross-site', 'taintward='],
  ...['taintward=COOKIE; taintward=x', 'http://HOST', 'HOST', 'TOKEN', 'application/json; charset=utf-16'],
];
const STATUSES = [
  200, 304, 400, 401, 403, 404, 409, 411, 413, 414, 415, 417, 421, 422, 431, 501, 502, 503, 505,
];
/** The statuses of Node's own parser, which answers before the console does. */
const OF_THE_PARSER = [400, 408, 411, 413, 414, 417, 431, 501, 505];

const value = fc.oneof(fc.constantFrom(...VALUES), hostileText);
const header = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom<string>(...HEADERS), value) },
  { weight: 1, arbitrary: fc.tuple(hostileText, value) },
);
/** Mostly valid headers with one changed or missing, and some others. */
const headers = fc
  .tuple(
    fc.option(fc.tuple(fc.nat({ max: OWN.length - 1 }), fc.option(value)), { freq: 1 }),
    fc.array(header, { maxLength: 1 }),
    fc.nat(3),
  )
  .map(([change, more, without]) => [
    ...OWN.flatMap((own, index): (readonly [string, string])[] => {
      if (change?.[0] !== index) return [own];
      return change[1] === null ? [] : [[own[0], change[1]]];
    }),
    ...(without === 0 ? more : []),
  ]);

const edited = (text: string): fc.Arbitrary<string> =>
  fc.array(fc.tuple(fc.nat(), fc.nat(8), hostileText, fc.boolean()), { maxLength: 2 }).map((edits) =>
    edits.reduce((so, [where, length, inserted, isEncoded]) => {
      const at = where % (so.length + 1);
      const put = isEncoded ? encodeURIComponent(inserted.toWellFormed()) : inserted;
      return so.slice(0, at) + put + so.slice(at + length);
    }, text),
  );

const requests: fc.Arbitrary<Request> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      method: fc.oneof(
        { weight: 6, arbitrary: fc.constant('GET') },
        fc.constantFrom('HEAD', 'PUT', 'X', 'OPTIONS'),
      ),
      path: fc.constantFrom(...QUESTIONS).chain((path) => edited(`/SESSION/${path}`)),
      headers,
      body: fc.constant(''),
      isCut: fc.constant(false),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(...BODIES).chain(([path, samples]) =>
      fc.record({
        method: fc.constant('POST'),
        path: fc.oneof({ weight: 6, arbitrary: fc.constant(`/SESSION/${path}`) }, edited(`/SESSION/${path}`)),
        headers,
        body: hostileJson(samples),
        isCut: fc.integer({ min: 0, max: 19 }).map((drawn) => drawn === 0),
      }),
    ),
  },
);

/**
 * Requests to the console, written to its socket as raw bytes. Each answer's status attributes the fault and is never an internal
 * error; each rejection is one sentence. A request without all headers of a signed-in page performs no action.
 */
export const consoleRequests: Kind<Request> = {
  name: 'console-requests',
  open: async () => {
    const closing: (() => unknown)[] = [];
    const served = await servedConsole({ after: (close: () => unknown) => closing.push(close) });
    const ref = aRef(cluster, 'n1');
    await served.store.commit(ref, 0, { node: aNode(), schedule: [aRecord()], end: [], live: true }, NOW);
    return {
      inputs: requests,
      feed: (request) => feed(request, served),
      close: async () => {
        for (const close of closing.reverse()) await close();
      },
    };
  },
};

type Served = Awaited<ReturnType<typeof servedConsole>>;
type Entered = Awaited<ReturnType<Served['enter']>>;
const entered = new WeakMap<Served, Promise<Entered>>();

/** Returns a session, created once: sessions last for hours, and the clock stands still. */
function sessionOf(served: Served): Promise<Entered> {
  const session = entered.get(served) ?? served.enter();
  entered.set(served, session);
  return session;
}

async function feed(request: Request, served: Served): Promise<Outcome> {
  const { port, host, log, rulesStore, send } = served;
  const { path, own, cookie, token } = await sessionOf(served);
  const filled = (text: string) =>
    text
      .replaceAll('SESSION', path.slice(1, -1))
      .replaceAll('COOKIE', cookie.slice('taintward='.length))
      .replaceAll('TOKEN', token)
      .replaceAll('HOST', host);
  const before = await rulesStore.read(cluster);
  const logged = log.lines.length;
  const { status, head, body } = await answered(Number(port), textOf(request, filled));
  must(log.lines.length === logged, `is logged as a failure of ours: ${JSON.stringify(log.lines.at(-1))}`);
  if (status !== undefined)
    must(STATUSES.includes(status), `is answered by ${status}: ${body.slice(0, 500)}`);
  const isOurs = /^content-security-policy:/im.test(head);
  must(isOurs || status === undefined || OF_THE_PARSER.includes(status), `lacks its policy: ${head}`);
  if (isOurs && status !== undefined && status >= 400 && body !== '') sentence(errorIn(body));
  // The server uses one of several headers of the same name.
  const isWhole = [...NEEDED].every(([name, right]) =>
    request.headers.some(([each, value]) => each.toLowerCase() === name && value.startsWith(right)),
  );
  if (!isWhole) {
    const after = await rulesStore.read(cluster);
    must(
      after.orders.revision === before.orders.revision && after.fleetStop?.at === before.fleetStop?.at,
      'acts, and shows not who it is',
    );
    must(request.method !== 'POST' || status !== 200, 'is answered, and shows not who it is');
  }
  const good = await send('GET', `${path}api/session`, own);
  must(good.status === 200, `keeps another request from being answered (${good.status})`);
  return status === 200 || status === 304 ? 'accepted' : 'refused';
}

/** Returns the request as bytes on the wire. A request without a length gets one. */
function textOf(
  { method, path, headers: given, body, isCut }: Request,
  filled: (text: string) => string,
): Buffer {
  const lines = given.map(([name, each]) => `${name}: ${filled(each)}`);
  const bytes = Buffer.from(body);
  const hasLength = given.some(([name]) =>
    ['content-length', 'transfer-encoding'].includes(name.toLowerCase()),
  );
  if (!hasLength) lines.push(`content-length: ${bytes.length + (isCut ? 10 : 0)}`);
  const head = [`${method} ${filled(path)} HTTP/1.1`, ...lines, 'connection: close', '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** Returns the answer once the server ends it, or once it turns out to be an endless event stream. */
async function answered(port: number, text: Buffer) {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    chunks.push(chunk);
    if (/^content-type: text\/event-stream/im.test(chunk.toString('latin1'))) socket.destroy();
  });
  const closed = once(socket, 'close');
  socket.end(text);
  await closed;
  // After `100 Continue` the final answer follows.
  const answer = Buffer.concat(chunks)
    .toString()
    .replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '');
  const end = answer.indexOf('\r\n\r\n');
  const head = end < 0 ? answer : answer.slice(0, end);
  const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1];
  const body = answer.slice(head.length + 4);
  const isChunked = /^transfer-encoding: chunked/im.test(head);
  return {
    status: status === undefined ? undefined : Number(status),
    head,
    // A rejection fits into one chunk. What follows a request without an end is another request, with an answer of its own.
    body: isChunked ? body.replace(/^[0-9a-f]+\r\n/, '').replace(/\r\n0\r\n\r\n.*$/s, '') : body,
  };
}

/** Returns the error message of a rejection: JSON for the page, plain text for a request made by hand. */
function errorIn(body: string): string {
  try {
    return String((JSON.parse(body) as { readonly error?: unknown }).error);
  } catch {
    return body.replace(/\n$/, '');
  }
}

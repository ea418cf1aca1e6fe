import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { answerSocket } from '#functions/service/answer-socket.ts';
import { startProbeServer } from '#shared/engine/clusters/probe-server.ts';
import { listenOnSocket } from '#shared/operations/fleet/state-socket.ts';
import { startApiServer } from '#simulator/api/server.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { aStore } from '#test/unit/simulator/builders.ts';
import { hostileText } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must } from './refusal.ts';

/** The bytes sent to one server: by several connections at a time, repeated, and in pieces. */
interface Flood {
  readonly server: (typeof SERVERS)[number];
  readonly text: string;
  /** Repetitions of the text on a connection: pipelined requests, if the text is a request. */
  readonly times: number;
  readonly connections: number;
  /** Bytes of a piece; 0: the whole text in one piece. */
  readonly piece: number;
  /** True: the rest is never sent. */
  readonly isCut: boolean;
}

const SERVERS = ['probes', 'socket', 'simulated-cluster'] as const;
/** More connections would measure the duration of TLS handshakes. Another test covers the limit of connections. */
const MAX_CONNECTIONS = 24;
/** Callers disconnect after this many turns of the event loop, as real callers do: a slow or long answer is abandoned. */
const WAIT_TURNS = 20;

const target = fc.oneof(
  fc.constantFrom(
    ...[
      '/',
      '//',
      '///',
      '*',
      '/healthz',
      '/readyz?verbose',
      '/metrics',
      '/service',
      '/api/status',
      '/version',
    ],
    ...[
      '/api/v1/nodes',
      '/api/v1/nodes?watch=1',
      '/api/v1/pods?limit=-1',
      'http://[',
      'http://x/healthz',
      '/%',
      '',
    ],
  ),
  hostileText,
);
const method = fc.constantFrom(
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'CONNECT',
  'PRI',
  'X',
);
const header = fc.tuple(
  fc.constantFrom(
    ...['host', 'connection', 'content-length', 'transfer-encoding', 'expect', 'upgrade', 'authorization'],
    ...['content-type', 'accept', 'keep-alive', '__proto__', ''],
  ),
  fc.oneof(
    fc.constantFrom(
      ...[
        'localhost',
        'evil.example',
        'close',
        'keep-alive',
        '0',
        '5',
        '-1',
        '1e9',
        'chunked',
        '100-continue',
      ],
      ...[
        'never',
        'websocket',
        'Bearer TOKEN',
        'application/json',
        '*/*',
        'x'.repeat(5_000),
        'x'.repeat(20_000),
      ],
    ),
    hostileText,
  ),
);
const request = fc
  .record({
    method,
    target,
    version: fc.constantFrom('1.1', '1.1', '1.1', '1.0', '0.9', '2.0', 'x'),
    host: fc.constantFrom(['host', 'localhost'], ['host', 'localhost'], ['host', 'evil.example'], undefined),
    headers: fc.array(header, { maxLength: 3 }),
    body: fc.oneof(fc.constant(''), hostileText, fc.constant('5\r\nhello\r\n0\r\n\r\n')),
  })
  .map(({ host, headers, ...line }) => {
    const all = [...(host ? [host] : []), ...headers].map(([name, value]) => `${name}: ${value}`);
    return [`${line.method} ${line.target} HTTP/${line.version}`, ...all, '', line.body].join('\r\n');
  });

const floods: fc.Arbitrary<Flood> = fc.record({
  server: fc.constantFrom(...SERVERS),
  text: fc.oneof(
    { weight: 6, arbitrary: request },
    { weight: 2, arbitrary: fc.constant('GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n') },
    { weight: 1, arbitrary: hostileText },
  ),
  times: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 300 })),
  connections: fc.oneof(
    { weight: 6, arbitrary: fc.constant(1) },
    fc.integer({ min: 2, max: MAX_CONNECTIONS }),
  ),
  piece: fc.constantFrom(0, 0, 0, 1, 7, 1024),
  isCut: fc.integer({ min: 0, max: 5 }).map((drawn) => drawn === 0),
});

/**
 * Bytes to the servers that read before they authenticate, from many connections. The process survives, and logs no failure of
 * its own. Every answer has a status that attributes the fault, and the next caller is answered.
 */
export const listenerBytes: Kind<Flood> = {
  name: 'listener-bytes',
  open: async () => {
    const log = recordingLog();
    const dir = mkdtempSync(join(tmpdir(), 'listener-'));
    const path = join(dir, 'service.sock');
    const none = () => new Map();
    const probes = await startProbeServer(
      { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
      { registry: new Registry(), states: none, trips: none, faults: none, log },
    );
    const view = () => ({ version: '1', startedAt: 0, clusters: {}, queues: {} });
    const api = () =>
      Promise.resolve({ answer: async (_: unknown, response: { end(): void }) => response.end() });
    const socket = await listenOnSocket(
      path,
      answerSocket({ view, link: () => undefined, api: api as never }),
      log,
    );
    const simulated = await startApiServer(aStore(), log);
    const port = Number(new URL(simulated.url).port);
    const open: Readonly<Record<Flood['server'], () => Socket>> = {
      probes: () => connect(probes.port, '127.0.0.1'),
      socket: () => connect(path),
      'simulated-cluster': () => connectTls({ port, host: '127.0.0.1', ca: simulated.certificate }),
    };
    const good = { probes: '/healthz', socket: '/service', 'simulated-cluster': '/readyz' };
    return {
      inputs: floods,
      feed: async ({ server, text, times, connections, piece, isCut }) => {
        const before = log.lines.length;
        const whole = Buffer.from(text.replaceAll('TOKEN', simulated.token).repeat(times), 'latin1');
        const sent = isCut ? whole.subarray(0, whole.length / 2) : whole;
        const answers = await Promise.all(
          Array.from({ length: connections }, () => answered(open[server](), sent, piece)),
        );
        const statuses = answers.map((answer) => /^HTTP\/1.1 (\d{3})/.exec(answer)?.[1] ?? '');
        for (const [index, status] of statuses.entries()) {
          must(/^(|[1-4]\d\d|501|503|505)$/.test(status), `is answered by ${answers[index]?.slice(0, 500)}`);
        }
        must(
          log.lines.length === before,
          `is logged as a failure of ours: ${JSON.stringify(log.lines.at(-1))}`,
        );
        const request = `GET ${good[server]} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`;
        const next = await answered(open[server](), Buffer.from(request), 0, true);
        must(
          next.startsWith('HTTP/1.1 200 '),
          `keeps the next caller from being answered: ${next.slice(0, 200)}`,
        );
        return statuses.every((status): boolean => /^[123]/.test(status))
          ? 'accepted'
          : ('refused' satisfies Outcome);
      },
      close: async () => {
        await Promise.all([probes.close(), socket?.close(), simulated.close()]);
        rmSync(dir, { recursive: true });
      },
    };
  },
};

/**
 * Returns the answer that arrives before the server ends it, or within the next turns of the event loop; then the caller
 * disconnects.
 */
async function answered(socket: Socket, bytes: Buffer, piece: number, isWaited = false): Promise<string> {
  const chunks: Buffer[] = [];
  let isClosed = false;
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('close', () => {
    isClosed = true;
  });
  const pieces = piece === 0 ? 1 : Math.min(Math.ceil(bytes.length / piece), WAIT_TURNS);
  for (let index = 0; index < pieces && !isClosed; index++) {
    socket.write(
      piece === 0 || index === pieces - 1
        ? bytes.subarray(index * piece)
        : bytes.subarray(index * piece, (index + 1) * piece),
    );
    await nextTurn();
  }
  for (let turn = 0; !isClosed && (isWaited || turn < WAIT_TURNS); turn++) await nextTurn();
  socket.destroy();
  return Buffer.concat(chunks).toString('latin1');
}

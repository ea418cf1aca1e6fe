import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { generate } from 'selfsigned';
import * as z from 'zod';
import { refuse, SyntheticApi } from './api.ts';
import { SyntheticCluster } from './cluster.ts';
import { type Command, command } from './command.ts';

/*
 * The API servers of synthetic clusters in one process: cluster `c0` under /c0, and so on. They accept https, HTTP/2 or
 * 1.1, and any token. The only argument is the size of each cluster, as JSON. The first line on standard output is the
 * address and the certificate. POST / on the control port accepts a command and answers with JSON.
 */

const sizes = z.record(z.string(), z.object({ nodes: z.int(), podsPerNode: z.int() }));
const STORM_BATCH = 20;

const apis = new Map(
  Object.entries(sizes.parse(JSON.parse(process.argv[2] ?? '{}'))).map(([name, size]) => [
    name,
    new SyntheticApi(new SyntheticCluster(size), size),
  ]),
);
/** Clusters in which nodes report as fast as the reports are read. */
const storming = new Set<string>();

function serve(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'https://synthetic');
  const [, name = '', path = ''] = /^\/([^/]+)(\/.*)$/.exec(url.pathname) ?? [];
  const api = apis.get(name);
  if (api === undefined) refuse(response, 404, 'NotFound');
  else void api.answer(path, url.searchParams, request, response).catch(() => response.destroy());
}

function perform(command: Command): unknown {
  const api = apis.get(command.cluster);
  if (api === undefined)
    throw new Error(`There is no cluster ${command.cluster}: name one of ${[...apis.keys()]}.`);
  const at = Date.now();
  switch (command.kind) {
    case 'taint':
      api.cluster.taint(command.nodes, [{ key: command.key, effect: 'NoExecute' }]);
      return { at };
    case 'untaint':
      api.cluster.taint(command.nodes, []);
      return { at };
    case 'churn':
      api.cluster.churn(command.perSecond);
      return { at };
    case 'storm':
      if (command.on) void storm(command.cluster, api);
      else storming.delete(command.cluster);
      return { at };
    case 'faults':
      api.faults = command.faults;
      api.infect();
      return { at };
    case 'cut-watches':
      api.cutWatches();
      return { at };
    case 'forget':
      api.cluster.forget();
      api.cutWatches();
      return { at };
    case 'counts': {
      const counts = api.counts;
      api.counts = {};
      return counts;
    }
    default:
      return command satisfies never;
  }
}

async function storm(name: string, api: SyntheticApi): Promise<void> {
  storming.add(name);
  while (storming.has(name)) {
    api.cluster.heartbeats(STORM_BATCH);
    await api.caughtUp();
  }
}

const { private: key, cert } = await generate([{ name: 'commonName', value: 'synthetic' }], {
  keyType: 'ec',
  curve: 'P-256',
  algorithm: 'sha256',
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
const server = createSecureServer(
  // The limit of streams per connection is kube-apiserver's.
  { key, cert, allowHTTP1: true, settings: { maxConcurrentStreams: 100 } },
  // Node's HTTP/2 requests and responses are compatible with those of HTTP/1.1.
  (request, response) => serve(request as unknown as IncomingMessage, response as unknown as ServerResponse),
);
const control = createServer((request, response) => {
  text(request)
    .then((body) => perform(command.parse(JSON.parse(body))))
    .then(
      (answer) => response.end(JSON.stringify(answer)),
      (error: unknown) => response.writeHead(400).end(String(error)),
    );
});
const portOf = (listening: { address(): AddressInfo | string | null }) =>
  (listening.address() as AddressInfo).port;
server.listen(0, '127.0.0.1', () =>
  control.listen(0, '127.0.0.1', () =>
    process.stdout.write(
      `${JSON.stringify({ port: portOf(server), control: portOf(control), certificate: cert })}\n`,
    ),
  ),
);
// The process ends with its parent.
process.stdin.resume().once('end', () => process.exit(0));

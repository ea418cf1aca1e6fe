import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';
import { type AwsCall, AwsOverHttp, type AwsOverHttpOptions } from '#test/world/aws-over-http.ts';
import { Child } from '#test/world/child.ts';
import { functionEnvironment } from '#test/world/function-environment.ts';

/** A simulated cluster and an AWS account for the entries of programs; removed after the test. */
export interface Installation {
  readonly aws: AwsOverHttp;
  readonly cluster: SimulatedCluster;
  /** The environment of every program for AWS and the installation. */
  readonly environment: Readonly<Record<string, string>>;
  /** Returns a queue's URL by its name. */
  readonly queueUrl: (name: string) => string;
}

export async function startInstallation(
  context: TestContext,
  options: Pick<AwsOverHttpOptions, 'waitMs' | 'held'> = {},
): Promise<Installation> {
  const dir = mkdtempSync(join(tmpdir(), 'entries-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  context.after(() => cluster.close());
  const kubeconfig = () => readFileSync(cluster.kubeconfig, 'utf8');
  const aws = await AwsOverHttp.start({ ...options, secrets: kubeconfig });
  context.after(() => aws.close());
  const environment = aws.environment('test', 'us-east-1');
  const queueUrl = (name: string) => `${environment['AWS_ENDPOINT_URL']}/000000000000/${name}`;
  return {
    aws,
    cluster,
    environment: {
      ...environment,
      ...functionEnvironment(queueUrl),
      NODE_DELTAS_URL: queueUrl('node-deltas.fifo'),
      POD_DELTAS_URL: queueUrl('pod-deltas.fifo'),
      PROBE_HOST: '127.0.0.1',
      PROBE_PORT: '0',
    },
    queueUrl,
  };
}

/** Starts a server until the end of the test, and returns the path of a kubeconfig with a context `c` for it. */
export async function kubeconfigOf(context: TestContext, server: Server): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    server.close().closeAllConnections();
    rmSync(dir, { recursive: true });
  });
  const named = (kind: string, fields: object) => [{ name: 'c', [kind]: fields }];
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = {
    clusters: named('cluster', { server: address }),
    users: named('user', {}),
    contexts: named('context', { cluster: 'c', user: 'c' }),
  };
  const file = join(dir, 'kubeconfig');
  writeFileSync(file, JSON.stringify(kubeconfig));
  return file;
}

/** Replaces the toleration of `db`, for 10 s, by a comparison with the taint's number. */
export const comparing = (text: string): string =>
  text.replaceAll(
    '"key":"maintenance","operator":"Exists","effect":"NoExecute","tolerationSeconds":10',
    '"key":"maintenance","operator":"Gt","value":"3","effect":"NoExecute"',
  );

/** Forwards requests to a simulated cluster, and each line of its answers as `changed`. */
export function forwarding(
  { kubeconfig }: SimulatedCluster,
  changed = (text: string): string => text,
): (...given: Parameters<RequestListener>) => void {
  const text = readFileSync(kubeconfig, 'utf8');
  const [, origin = ''] = /server: (\S+)/.exec(text) ?? [];
  const [, token = ''] = /token: (\S+)/.exec(text) ?? [];
  return (incoming, answer) => {
    const { method, url = '' } = incoming;
    const { 'accept-encoding': _, ...others } = incoming.headers;
    const headers = { ...others, authorization: `Bearer ${token}` };
    const sent = { method, headers, rejectUnauthorized: false };
    const onward = request(new URL(url, origin), sent, (found) => {
      const { 'content-length': _length, ...kept } = found.headers;
      answer.writeHead(found.statusCode ?? 502, kept);
      let rest = '';
      found.setEncoding('utf8').on('data', (part: string) => {
        const lines = `${rest}${part}`.split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) answer.write(changed(`${line}\n`));
      });
      found.on('end', () => answer.end(changed(rest)));
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    incoming.pipe(onward);
  };
}

/** Returns a kubeconfig of an API server that permits everything but deleting pods. */
export const clusterWithoutDelete = (context: TestContext): Promise<string> =>
  kubeconfigOf(
    context,
    createServer(async (request, response) => {
      const { spec } = (await json(request)) as { spec: { resourceAttributes: { verb: string } } };
      const answer = { spec, status: { allowed: spec.resourceAttributes.verb !== 'delete' } };
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    }),
  );

/** Runs a program by its entry, with this environment and no other. The program never outlives the test. */
export function startProgram(
  context: TestContext,
  entry: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Child {
  const child = new Child(process.execPath, [fileURLToPath(import.meta.resolve(entry)), ...args], { env });
  context.after(() => child.kill());
  return child;
}

/** Returns an answer of the probes of a program. */
export async function probed(program: Child, path: string): Promise<string> {
  const port = await program.out.first((line) => JSON.parse(line).port as number | undefined);
  return (await fetch(`http://127.0.0.1:${port}/${path}`)).text();
}

/** Reads of registrations that wait until they are released. */
export function heldRegistry() {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  let reads = 0;
  const held = ({ operation, input }: AwsCall): Promise<void> | undefined => {
    const isRead = operation === 'Query' || operation === 'GetItem';
    if (!isRead || !/"(CLUSTERS|REGISTRATION)"/.test(JSON.stringify(input))) return undefined;
    reads += 1;
    return promise;
  };
  return { held, release, reads: () => reads };
}

/** Returns an option of Node.js by which waits of this time, such as a program's time to stop, are over immediately. */
export const withoutWait = (ms: number): string =>
  `--import=data:text/javascript,${[
    "import%20timers%20from'node:timers/promises'",
    "import{syncBuiltinESMExports}from'node:module'",
    'const{setTimeout:wait}=timers',
    `timers.setTimeout=(ms,...given)=>wait(ms===${ms}?0:ms,...given)`,
    'syncBuiltinESMExports()',
  ].join(';')}`;

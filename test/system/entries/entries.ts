import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';
import { AwsOverHttp } from '#test/world/aws-over-http.ts';
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

export async function startInstallation(context: TestContext): Promise<Installation> {
  const dir = mkdtempSync(join(tmpdir(), 'entries-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  context.after(() => cluster.close());
  const kubeconfig = () => readFileSync(cluster.kubeconfig, 'utf8');
  const aws = await AwsOverHttp.start({ secrets: kubeconfig });
  context.after(() => aws.close());
  const told = aws.environment('test', 'us-east-1');
  const queueUrl = (name: string) => `${told['AWS_ENDPOINT_URL']}/000000000000/${name}`;
  return {
    aws,
    cluster,
    environment: {
      ...told,
      ...functionEnvironment(queueUrl),
      NODE_DELTAS_URL: queueUrl('node-deltas.fifo'),
      POD_DELTAS_URL: queueUrl('pod-deltas.fifo'),
      PROBE_HOST: '127.0.0.1',
      PROBE_PORT: '0',
    },
    queueUrl,
  };
}

export interface Program {
  /** Stops the program; resolves with its exit code and its standard error. */
  stop(): Promise<{ readonly code: number | null; readonly stderr: string }>;
}

/** Runs a program by its entry, with this environment and no other. The program never outlives the test. */
export function startProgram(
  context: TestContext,
  entry: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Program {
  const main = fileURLToPath(import.meta.resolve(entry));
  const child: ChildProcess = spawn(process.execPath, [main, ...args], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  context.after(() => child.kill('SIGKILL'));
  const stderr = child.stderr ? text(child.stderr) : Promise.resolve('');
  const ended = once(child, 'exit');
  return {
    async stop() {
      child.kill('SIGTERM');
      const [code] = await ended;
      return { code, stderr: await stderr };
    },
  };
}

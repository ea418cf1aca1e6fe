import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type SimulatedCluster, startSimulatedCluster } from '#functions/local/simulated-cluster/cluster.ts';
import { systemClock } from '#shared/time/clock.ts';
import { AwsOverHttp } from './aws-over-http.ts';

/** A simulated cluster and an AWS, for the entries of programs to work with; gone after the test. */
export interface World {
  readonly aws: AwsOverHttp;
  readonly cluster: SimulatedCluster;
  /** What every program is told of AWS, and of the installation in it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly kubeconfig: () => string;
}

export async function startWorld(context: TestContext): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'entries-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const aws = await AwsOverHttp.start();
  context.after(() => aws.close());
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  context.after(() => cluster.close());
  return {
    aws,
    cluster,
    environment: {
      ...aws.environment,
      TABLE_NAME: 'taintward',
      HISTORY_DAYS: '7',
      NODE_DELTAS_URL: aws.queueUrl('node-deltas.fifo'),
      POD_DELTAS_URL: aws.queueUrl('pod-deltas.fifo'),
      EVICTIONS_DUE_URL: aws.queueUrl('evictions-due'),
      EVICTIONS_DUE_ARN: 'arn:aws:sqs:us-east-1:000000000000:evictions-due',
      DEAD_LETTER_QUEUE_URL: aws.queueUrl('dead-letters'),
      SCHEDULE_GROUP_NAME: 'taintward',
      SCHEDULE_ROLE_ARN: 'arn:aws:iam::000000000000:role/schedules',
      AGENT_PREFIX: 'taintward-agent-',
      INSTALLATION: 'taintward',
      COMPARISON_OPERATORS: 'false',
      METRIC_NAMESPACE: 'Taintward',
      METRICS_BY_CLUSTER: 'false',
      PROBE_HOST: '127.0.0.1',
      PROBE_PORT: '0',
    },
    kubeconfig: () => readFileSync(cluster.kubeconfig, 'utf8'),
  };
}

export interface Program {
  /** Asks it to stop; resolves with how it ended and what it said on standard error. */
  stop(): Promise<{ readonly code: number | null; readonly stderr: string }>;
}

/** Runs a program by its entry, with this environment and no other. It never outlives the test. */
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

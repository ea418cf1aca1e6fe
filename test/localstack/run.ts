import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Installed } from './install.ts';
import type { Environment } from './programs.ts';

const HOST = join(import.meta.dirname, 'host');
const STARTS_WITHIN_MS = 300_000;
const STOPS_WITHIN_MS = 5_000;
const POLL_MS = 200;
const SHOWN_LINES = 30;

/** The folder in which LocalStack looks for a DynamoDB Local and a Java before it downloads them. */
const LIBRARIES = 'root/var/lib/localstack/lib';
const DYNAMODB_MAIN = 'com.amazonaws.services.dynamodbv2.local.main.ServerRunner';

export interface RunOptions {
  readonly installed: Installed;
  /** A port of the loopback interface. */
  readonly port: number;
  readonly env: Environment;
  /** Ends the wait for its first answer. */
  readonly signal: AbortSignal;
}

/** A running LocalStack. */
export interface RunningLocalStack {
  readonly url: string;
  /** Resolves when it ends by itself. */
  readonly ended: Promise<void>;
  /** Returns the last lines of its log. */
  log(): string;
  /** Ends LocalStack and all processes that it started, and removes its files. */
  close(): Promise<void>;
}

/** Starts LocalStack and waits until it answers. All of its files are in a folder that is removed at its end. */
export async function runLocalStack({
  installed,
  port,
  env,
  signal,
}: RunOptions): Promise<RunningLocalStack> {
  const work = mkdtempSync(join(tmpdir(), 'taintward-localstack-'));
  const logFile = join(work, 'log');
  placePlugin(work);
  placeDynamoDb(work, installed);
  const log = openSync(logFile, 'w');
  const child = spawn(installed.python, [join(HOST, 'launch.py')], {
    cwd: work,
    env: { ...env, ...settings(work, installed, port) },
    // LocalStack ends with this process, whose end of the pipe closes then.
    stdio: ['pipe', log, log],
    // Its own process group, so that all of its processes can be ended.
    detached: true,
  });
  closeSync(log);
  const lastLines = () => readFileSync(logFile, 'utf8').split('\n').slice(-SHOWN_LINES).join('\n');
  const ended = once(child, 'exit').then(() => {});
  const close = async () => {
    await end(child, ended);
    for (const pid of recorded(work)) killQuietly(pid);
    rmSync(work, { recursive: true, force: true, maxRetries: 3 });
  };
  const url = `http://localhost:${port}`;
  try {
    await untilHealthy(url, { child, lastLines, signal });
    return { url, ended, log: lastLines, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function settings(work: string, { ric }: Installed, port: number): Record<string, string> {
  return {
    PYTHONPATH: join(work, 'plugin'),
    PYTHONDONTWRITEBYTECODE: '1',
    HOME: join(work, 'home'),
    TMPDIR: join(work, 'tmp'),
    // In a container it would mistake itself for its own image, and write to /var/lib/localstack.
    OVERRIDE_IN_DOCKER: '0',
    FILESYSTEM_ROOT: join(work, 'root'),
    GATEWAY_LISTEN: `127.0.0.1:${port}`,
    LOCALSTACK_HOST: `localhost:${port}`,
    SQS_ENDPOINT_STRATEGY: 'path',
    SQS_DISABLE_CLOUDWATCH_METRICS: '1',
    DNS_ADDRESS: '0',
    DISABLE_EVENTS: '1',
    SKIP_SSL_CERT_DOWNLOAD: '1',
    DYNAMODB_IN_MEMORY: '1',
    // Streams come from DynamoDB Local itself.
    PROVIDER_OVERRIDE_DYNAMODB: 'v2',
    PROVIDER_OVERRIDE_DYNAMODBSTREAMS: 'v2',
    // Lambda polls queues without a pause; LocalStack, by default, pauses for up to 10 s.
    LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC: '0.2',
    LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC: '1',
    LAMBDA_RUNTIME_EXECUTOR: 'host',
    LAMBDA_HOST_NODE: process.execPath,
    LAMBDA_HOST_RIC: ric,
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
  };
}

/** Places the executor, as a package that LocalStack finds by its entry point. */
function placePlugin(work: string): void {
  for (const folder of ['home', 'tmp', 'plugin']) mkdirSync(join(work, folder));
  copyFileSync(join(HOST, 'host_executor.py'), join(work, 'plugin/host_executor.py'));
  const about = join(work, 'plugin/host_executor-1.dist-info');
  mkdirSync(about);
  writeFileSync(join(about, 'METADATA'), 'Metadata-Version: 2.1\nName: host-executor\nVersion: 1\n');
  writeFileSync(
    join(about, 'entry_points.txt'),
    '[localstack.lambda.runtime_executor]\nhost = host_executor:HostExecutorPlugin\n',
  );
}

/**
 * Places Maven's DynamoDB Local, whose jar names no main class and lacks LocalStack's agent, which permits more than 20
 * indexes.
 */
function placeDynamoDb(work: string, { java, dynamoDb }: Installed): void {
  const [folder, javaFolder] = [
    join(work, LIBRARIES, 'dynamodb-local/2'),
    join(work, LIBRARIES, 'java/21/bin'),
  ];
  for (const each of [folder, javaFolder]) mkdirSync(each, { recursive: true });
  symlinkSync(dynamoDb, join(folder, 'DynamoDBLocal_lib'));
  writeFileSync(join(folder, 'DynamoDBLocal.jar'), '');
  const program = join(javaFolder, 'java');
  writeFileSync(
    program,
    `#!/bin/sh
echo $$ >>'${join(work, 'pids')}'
for word; do
  shift
  case $word in
  -javaagent:*) ;;
  -jar) set -- "$@" -cp ;;
  */DynamoDBLocal.jar) set -- "$@" '${dynamoDb}/*' ${DYNAMODB_MAIN} -disableTelemetry ;;
  *) set -- "$@" "$word" ;;
  esac
done
exec '${java}' "$@"
`,
  );
  chmodSync(program, 0o755);
}

async function untilHealthy(
  url: string,
  {
    child,
    lastLines,
    signal,
  }: { readonly child: ChildProcess; readonly lastLines: () => string; readonly signal: AbortSignal },
): Promise<void> {
  const deadlineAt = Date.now() + STARTS_WITHIN_MS;
  const failure = once(child, 'error').then(([error]) => error as Error);
  while (Date.now() < deadlineAt) {
    signal.throwIfAborted();
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`LocalStack ended before it answered. The end of its log:\n${lastLines()}`);
    const answered = fetch(`${url}/_localstack/health`, { signal: AbortSignal.timeout(2_000) }).then(
      ({ ok }) => ok,
      () => false,
    );
    const outcome = await Promise.race([answered, failure]);
    if (outcome instanceof Error) throw outcome;
    if (outcome) return;
    await delay(POLL_MS);
  }
  throw new Error(
    `LocalStack did not answer within ${STARTS_WITHIN_MS / 1_000} s. The end of its log:\n${lastLines()}`,
  );
}

async function end(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.pid === undefined) return;
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGTERM');
    await Promise.race([ended, delay(STOPS_WITHIN_MS, undefined, { ref: false })]);
  }
  killQuietly(-child.pid);
  await ended;
}

/**
 * Returns the process ID of DynamoDB Local, which has a process group of its own. Functions end with LocalStack, from
 * which they request work.
 */
const recorded = (work: string): readonly number[] =>
  existsSync(join(work, 'pids'))
    ? readFileSync(join(work, 'pids'), 'utf8').split('\n').filter(Boolean).map(Number)
    : [];

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

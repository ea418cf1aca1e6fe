import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** The time that a server may take to answer; those that are started here normally take a second or two. */
const START_TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 50;

/** A program that serves HTTP. */
export interface ServerProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Answers any request once the server is ready. */
  readonly url: string;
  /** The instruction for a missing program, as a sentence. */
  readonly whenMissing: string;
}

/** A running server. */
export interface RunningServer {
  readonly pid: number;
  close(): Promise<void>;
}

/** Starts a program and waits until it answers. It never outlives this process. */
export async function startServer(program: ServerProgram): Promise<RunningServer> {
  const child = spawn(program.command, program.args, {
    env: { ...process.env, ...program.env },
    stdio: 'ignore',
  });
  child.unref();
  const kill = () => child.kill();
  process.once('exit', kill);
  const close = async () => {
    process.off('exit', kill);
    await stop(child);
  };
  try {
    await untilAnswering(program, failureOf(child, program));
    return { pid: child.pid ?? 0, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Resolves with the failure as soon as the program could not start, or ended. */
function failureOf(child: ChildProcess, { command, whenMissing }: ServerProgram): Promise<Error> {
  return new Promise((resolve) => {
    child.once('error', (cause) => resolve(new Error(whenMissing, { cause })));
    child.once('exit', (code, signal) =>
      resolve(
        new Error(`${command} ended (${signal ?? `code ${code}`}) before it answered: run it by hand.`),
      ),
    );
  });
}

async function untilAnswering({ command, url }: ServerProgram, failure: Promise<Error>): Promise<void> {
  const deadlineAt = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadlineAt) {
    const outcome = await Promise.race([failure, answers(url)]);
    if (outcome instanceof Error) throw outcome;
    if (outcome) return;
    await delay(POLL_INTERVAL_MS);
  }
  throw new Error(`${command} did not answer at ${url} within ${START_TIMEOUT_MS / 1000} s: run it by hand.`);
}

async function answers(url: string): Promise<boolean> {
  try {
    await fetch(url);
    return true;
  } catch {
    return false;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.ref();
  child.kill();
  await ended;
}

/** Returns a free port of the loopback interface. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === 'object'
          ? resolve(address.port)
          : reject(new Error('The operating system gave no free port.')),
      );
    });
  });
}

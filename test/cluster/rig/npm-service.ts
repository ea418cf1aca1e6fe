import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePort } from '#test/aws/server-process.ts';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CLI = join(ROOT, 'functions/cli/taintward.js');

/** What a command printed, and its exit code. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The environment of an operator without AWS, whatever that of the suite is. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(AWS|TAINTWARD)_/.test(name)),
);

/** Runs `npx taintward …` in a directory, without a terminal. */
export const taintwardIn = (
  dir: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> =>
  new Promise((resolve) => {
    const options = { cwd: dir, env: { ...ENV, ...env }, maxBuffer: 64 * 1024 * 1024 };
    const child = execFile(process.execPath, [CLI, ...args], options, (_, out, err) =>
      resolve({ code: child.exitCode ?? Number.NaN, out, err }),
    );
  });

/** `npm start`, with npm between, and its state where commands of that directory find it. */
export class NpmService {
  readonly #npm: ChildProcess;
  readonly #port: number;
  /** Resolves with npm's exit code and standard error when all its processes have closed them. */
  readonly ended: Promise<{ readonly code: number | null; readonly err: string }>;
  #hasEnded = false;

  private constructor(npm: ChildProcess, port: number) {
    this.#npm = npm;
    this.#port = port;
    let err = '';
    npm.stderr?.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    npm.stdout?.resume();
    const kill = () => this.#signalAll('SIGKILL');
    process.once('exit', kill);
    this.ended = once(npm, 'close').then(([code]) => {
      process.off('exit', kill);
      this.#hasEnded = true;
      return { code, err };
    });
  }

  /** Starts it in a directory and does not wait. */
  static async spawn(dir: string, args: readonly string[]): Promise<NpmService> {
    const port = await freePort();
    const options = ['--state-dir', join(dir, '.taintward'), '--port', String(port), '--no-console'];
    const npm = spawn('npm', ['--prefix', ROOT, 'start', '--', ...options, ...args], {
      cwd: dir,
      env: ENV,
      // All of its processes are in one group, which can be killed as a whole.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new NpmService(npm, port);
  }

  /** Starts it and waits until it watches these clusters. */
  static async start(dir: string, clusters: readonly string[], args: readonly string[]): Promise<NpmService> {
    const service = await NpmService.spawn(dir, args);
    await until('npm start is ready', async () => {
      if (service.#hasEnded) throw new Error(`npm start ended: ${(await service.ended).err}`);
      const states = (await service.readyz())?.split('\n') ?? [];
      return clusters.every((cluster) => states.includes(`${cluster} live`));
    });
    return service;
  }

  /** Returns the answer of `/readyz?verbose`; `undefined`: nothing answers. */
  async readyz(): Promise<string | undefined> {
    try {
      return await (await fetch(`http://127.0.0.1:${this.#port}/readyz?verbose`)).text();
    } catch {
      return undefined;
    }
  }

  /** Sends npm SIGTERM, as a supervisor does that knows npm alone. */
  terminate(): void {
    this.#npm.kill('SIGTERM');
  }

  /** `kill -9` of npm and of all that it started. */
  async kill(): Promise<void> {
    this.#signalAll('SIGKILL');
    await this.ended;
  }

  #signalAll(signal: NodeJS.Signals): void {
    if (this.#npm.pid === undefined) return;
    try {
      process.kill(-this.#npm.pid, signal);
    } catch {
      // All of them have ended.
    }
  }
}

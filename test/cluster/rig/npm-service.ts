import { join } from 'node:path';
import { freePort } from '#test/aws/server-process.ts';
import { Child, type Outcome, runProgram } from '#test/world/child.ts';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CLI = join(ROOT, 'functions/cli/taintward.js');

/** The environment of an operator without AWS, whatever that of the suite is. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(AWS|TAINTWARD)_/.test(name)),
);

/** Runs `npx taintward …` in a directory, without a terminal. */
export const taintwardIn = (
  dir: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> => runProgram(process.execPath, [CLI, ...args], { cwd: dir, env: { ...ENV, ...env } });

/** `npm start`, with npm between, and its state where commands of that directory find it. */
export class NpmService extends Child {
  readonly #port: number;

  /** Starts it in a directory and does not wait. */
  constructor(dir: string, port: number, args: readonly string[]) {
    const options = ['--state-dir', join(dir, '.taintward'), '--port', String(port), '--no-console'];
    // All of its processes are in one group, which can be killed as a whole.
    const where = { cwd: dir, env: ENV, group: true };
    super('npm', ['--prefix', ROOT, 'start', '--', ...options, ...args], where);
    this.#port = port;
  }

  /** Starts it and waits until it watches these clusters. */
  static async start(dir: string, clusters: readonly string[], args: readonly string[]): Promise<NpmService> {
    const service = new NpmService(dir, await freePort(), args);
    await until('npm start is ready', async () => {
      if (service.ended) throw new Error(`npm start ended: ${service.ended.stderr}`);
      const states = (await service.readyz())?.split('\n') ?? [];
      return clusters.every((cluster) => states.includes(`[+]${cluster}/live ok`));
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
    this.process.kill('SIGTERM');
  }
}

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
      const states = (await service.answer())?.split('\n') ?? [];
      return clusters.every((cluster) => states.includes(`[+]${cluster}/live ok`));
    });
    return service;
  }

  /** Returns the answer of `/readyz?verbose`, or of another path; `undefined`: nothing answers. */
  async answer(path = 'readyz?verbose'): Promise<string | undefined> {
    try {
      return await (await fetch(`http://127.0.0.1:${this.#port}/${path}`)).text();
    } catch {
      return undefined;
    }
  }

  /** Waits until the service applies a stop to these clusters, which takes it up to five seconds. */
  async untilStopped(clusters: readonly string[]): Promise<void> {
    await until('the service applies the stop', async () => {
      const lines = (await this.answer('metrics'))?.split('\n') ?? [];
      return clusters.every((cluster) =>
        lines.includes(`taintward_cluster_mode{cluster="${cluster}",mode="stopped"} 1`),
      );
    });
  }

  /** Sends npm SIGTERM, as a supervisor does that knows npm alone. */
  terminate(): void {
    this.process.kill('SIGTERM');
  }
}

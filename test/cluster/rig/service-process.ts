import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { freePort } from '#test/aws/server-process.ts';
import { Child } from '#test/world/child.ts';
import { type ProcessUsage, processUsage } from './process-usage.ts';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '../../..');
const Package = z.object({ scripts: z.object({ start: z.string().startsWith('exec node ') }) });
/** The arguments of Node in the script `npm start`. */
const [, , ...START] = Package.parse(
  JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')),
).scripts.start.split(' ');
const UNGUARDED = join(import.meta.dirname, 'unguarded.yaml');

export interface ServiceOptions {
  readonly kubeconfig: string;
  readonly contexts: readonly string[];
  /** Absent where all state is kept in the cluster. */
  readonly stateDir?: string;
  readonly port?: number;
  /** The path of a policy document; `false`: none. Absent: enforce everything, without a guard. */
  readonly policy?: string | false;
  readonly env?: Readonly<Record<string, string>>;
  /** A namespace: the process runs as a replica that keeps all state there, for a single cluster named in-cluster. */
  readonly inCluster?: string;
  /** The directory of another release; absent: the current one. */
  readonly release?: string;
  /** Node's arguments: its flags and the program; absent: those of `npm start`. */
  readonly program?: readonly string[];
}

/** A line of the process's output, and its time. */
export interface OutputLine {
  readonly at: number;
  readonly text: string;
}

/**
 * The service as an operator runs it: `npm start -- --context … --kubeconfig … --state-dir … --policy …`, but without
 * npm between.
 */
export class ServiceProcess extends Child {
  readonly output: OutputLine[] = [];
  readonly #port: number;
  readonly #stateDir: string | undefined;
  /** The service's names of its clusters. */
  readonly #clusters: readonly string[];

  private constructor(args: readonly string[], port: number, options: ServiceOptions) {
    super(process.execPath, [...(options.program ?? START), ...args], {
      cwd: options.release ?? ROOT,
      env: { ...process.env, ...options.env },
      onLine: (text) => this.output.push({ at: Date.now(), text }),
    });
    this.#port = port;
    this.#stateDir = options.stateDir;
    this.#clusters = options.inCluster === undefined ? options.contexts : ['in-cluster'];
  }

  /** Starts the service and does not wait. */
  static async spawn(options: ServiceOptions): Promise<ServiceProcess> {
    const port = options.port ?? (await freePort());
    const args = [
      ...options.contexts.flatMap((context) => ['--context', context]),
      ...['--kubeconfig', options.kubeconfig, '--port', String(port)],
      ...(options.stateDir === undefined ? [] : ['--state-dir', options.stateDir]),
      ...(options.inCluster === undefined ? [] : ['--in-cluster', '--namespace', options.inCluster]),
      ...(options.policy === false ? [] : ['--policy', options.policy ?? UNGUARDED]),
    ];
    return new ServiceProcess(args, port, options);
  }

  /** Starts the service and waits until it watches all its clusters. */
  static async start(options: ServiceOptions): Promise<ServiceProcess> {
    const service = await ServiceProcess.spawn(options);
    await service.ready();
    return service;
  }

  get stateDir(): string {
    if (this.#stateDir === undefined) throw new Error('This service keeps all in the cluster.');
    return this.#stateDir;
  }

  async ready(): Promise<void> {
    await until('the service is ready', async () => {
      if (this.ended) throw new Error(`The service ended early: ${this.ended.stderr || 'it said nothing'}`);
      const states = await this.states().catch(() => undefined);
      return states && this.#clusters.every((cluster) => states.includes(`${cluster} live`));
    });
  }

  /**
   * Returns states and conditions from `/readyz?verbose`, as `prod live` and `prod list-failing: Its …`; `undefined`
   * while no cluster is ready.
   */
  async states(): Promise<readonly string[] | undefined> {
    const { isReady, lines } = await this.readyz();
    return isReady ? lines : undefined;
  }

  /** Returns the same lines, whether a cluster is ready or not. */
  async readyz(): Promise<{ readonly isReady: boolean; readonly lines: readonly string[] }> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/readyz?verbose`);
    const text = await answer.text();
    const lines = [...text.matchAll(/^\[[+-]\](\S+)\/(\S+) (?:ok|failed(: .*))$/gm)].map(
      ([, name, what, why = '']) => `${name} ${what}${why}`,
    );
    return { isReady: answer.ok, lines };
  }

  /** Returns the value of a metric without labels. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${name} `));
    if (line === undefined) throw new Error(`There is no metric ${name}.`);
    return Number(line.slice(name.length));
  }

  /** Returns the output lines that contain all of `parts`. */
  printed(...parts: readonly string[]): readonly OutputLine[] {
    return this.output.filter(({ text }) => parts.every((part) => text.includes(part)));
  }

  /** Returns the warnings and errors in the output: lines with `some.event: …`. */
  complaints(): readonly string[] {
    return this.output.map(({ text }) => text).filter((text) => /\s[a-z]+\.[a-z-]+(:\s|:?$)/.test(text));
  }

  /** Waits until an output line contains all of `parts`. */
  untilPrinted(...parts: readonly string[]): Promise<OutputLine> {
    return until(`the service says "${parts.join(' … ')}"`, () => this.printed(...parts).at(-1));
  }

  /** Returns the process's resource usage so far; `undefined` where there is no /proc. */
  usage(): ProcessUsage | undefined {
    return processUsage(this.process.pid);
  }
}

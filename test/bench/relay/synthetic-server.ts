import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { RelayedCluster } from './relay-questions.ts';
import type { Counts } from './server/api.ts';
import type { ClusterSize } from './server/cluster.ts';
import type { CommandInput } from './server/command.ts';

/** A process that simulates the API servers of synthetic clusters. It never outlives this one. */
export class SyntheticServer {
  /** The certificate, in PEM. */
  readonly certificate: string;
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #control: number;

  private constructor(
    child: ChildProcess,
    { port, control, certificate }: { port: number; control: number; certificate: string },
  ) {
    this.#child = child;
    this.#port = port;
    this.#control = control;
    this.certificate = certificate;
  }

  /** Starts the process with these clusters. */
  static async start(clusters: Readonly<Record<string, ClusterSize>>): Promise<SyntheticServer> {
    const main = join(import.meta.dirname, 'server/main.ts');
    const child = spawn(process.execPath, [main, JSON.stringify(clusters)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(child.stdout), 'line');
    return new SyntheticServer(child, JSON.parse(line));
  }

  /** Returns the URL of a cluster's API server. */
  url(cluster: string): string {
    return `https://127.0.0.1:${this.#port}/${cluster}`;
  }

  /** Performs a command; returns its start time (epoch ms). */
  async command(command: Exclude<CommandInput, { kind: 'counts' }>): Promise<number> {
    return ((await this.#perform(command)) as { at: number }).at;
  }

  /** Returns the number of requests by kind, since the last call. */
  async counts(cluster: string): Promise<Counts> {
    return (await this.#perform({ kind: 'counts', cluster })) as Counts;
  }

  /** Returns the connections by which a relay follows some of its clusters. */
  relayed(...clusters: readonly string[]): readonly RelayedCluster[] {
    return clusters.map((name) => ({ name, url: this.url(name), certificate: this.certificate }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#child.kill();
    await exit;
  }

  async #perform(command: CommandInput): Promise<unknown> {
    const body = JSON.stringify(command);
    const response = await fetch(`http://127.0.0.1:${this.#control}`, { method: 'POST', body });
    if (!response.ok) throw new Error(`The synthetic API server refused: ${await response.text()}`);
    return response.json();
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { IMAGE_ENV } from '#test/bench/image-env.ts';
import { bundled } from './bundled.ts';
import { MeasuredProcess, type ProcessOptions } from './measured-process.ts';
import type { RelayAnswer, RelayedCluster, RelayQuestion } from './relay-questions.ts';

const POLL_MS = 200;

export interface RelayOptions extends ProcessOptions {
  readonly clusters: readonly RelayedCluster[];
  /** A file that several relays share; absent: it is the only relay. */
  readonly leases?: string;
}

/** A relay in a process of its own. */
export class RelayProcess {
  readonly process: MeasuredProcess;
  readonly #clusters: readonly string[];
  readonly #open = new Map<number, (answer: unknown) => void>();
  #questions = 0;

  /** Throws `NoQuotaError`. */
  constructor({ clusters, leases = ':memory:', ...options }: RelayOptions) {
    this.#clusters = clusters.map(({ name }) => name);
    const logs = process.env['BENCH_LOG'] !== undefined;
    const args = [
      bundled('test/bench/relay/relay-under-test.ts'),
      JSON.stringify({ clusters, leases, logs }),
    ];
    const env = { ...IMAGE_ENV, NODE_NO_WARNINGS: '1' };
    this.process = new MeasuredProcess(process.execPath, args, { ...options, env });
    this.process.child.stdout?.pipe(process.stderr);
    this.process.child.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
      this.#open.get(id)?.(answer);
      this.#open.delete(id);
    });
    this.process.child.once('exit', () => {
      for (const settle of this.#open.values()) settle(undefined);
    });
  }

  /** Sends a question to the relay. Rejects when the relay has ended. */
  async query<Q extends RelayQuestion>(question: Q): Promise<RelayAnswer[Q]> {
    this.#questions += 1;
    const id = this.#questions;
    const answer = await new Promise<unknown>((resolve) => {
      this.#open.set(id, resolve);
      if (this.process.ended) resolve(undefined);
      else this.process.child.send({ id, question }, (error) => error && resolve(undefined));
    });
    if (answer === undefined) throw new Error('The relay has ended: see its messages above.');
    return answer as RelayAnswer[Q];
  }

  /**
   * Waits until the relay follows all of its clusters (or the given ones), but no longer than `withinMs`. Returns
   * milliseconds from its start; `undefined`: not in time.
   */
  async synced(withinMs: number, clusters = this.#clusters): Promise<number | undefined> {
    const deadlineAt = Date.now() + withinMs;
    while (Date.now() < deadlineAt && !this.process.ended) {
      // A busy relay answers late.
      const late = delay<RelayAnswer['live']>(deadlineAt - Date.now(), {});
      const live = await Promise.race([this.query('live'), late]);
      const moments = clusters.map((name) => live[name]).filter((at) => at !== undefined);
      if (moments.length === clusters.length) return Math.max(...moments) - this.process.startedAt;
      await delay(POLL_MS);
    }
    return undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process.kill();
  }
}

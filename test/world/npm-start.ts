import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

type Fields = Readonly<Record<string, unknown>>;

/** `npm start`, without npm between, in a process of its own, which is killed at the end of the test. */
export class NpmStart {
  readonly process: ChildProcessWithoutNullStreams;
  /** The state directory. */
  readonly state: string;
  readonly out: Lines;
  readonly err: Lines;
  /** Resolves with the exit code; `null`: a signal ended it. */
  readonly ended: Promise<number | null>;

  /** Starts it with these arguments; on the simulated cluster unless they name another. `state`: absent: a new one. */
  constructor(t: Pick<TestContext, 'after'>, args: readonly string[] = [], state?: string) {
    const dir = state === undefined ? mkdtempSync(join(tmpdir(), 'tw-')) : undefined;
    this.state = state ?? join(dir ?? '', 'state');
    const main = join(PROJECT_DIR, 'functions/service/main.ts');
    this.process = spawn(process.execPath, [main, '--state-dir', this.state, ...args]);
    this.out = new Lines(this.process.stdout);
    this.err = new Lines(this.process.stderr);
    this.ended = once(this.process, 'close').then(([code]) => code);
    t.after(async () => {
      this.process.kill('SIGKILL');
      await this.ended;
      if (dir !== undefined) rmSync(dir, { recursive: true });
    });
  }

  /** Types a line at the prompt. */
  readonly type = (line: string): void => void this.process.stdin.write(`${line}\n`);

  readonly signal = (name: NodeJS.Signals): void => void this.process.kill(name);

  /** Resolves with the first result for an unread line of a stream; rejects when it ends without one. */
  async line<T>(find: (line: string) => T | undefined, of: Lines = this.out): Promise<T> {
    return this.#found(await of.next(find));
  }

  /** Resolves with the first line of the JSON log with this event, past or future. */
  async event(name: string, isIt: (fields: Fields) => boolean = () => true): Promise<Fields> {
    return this.#found(
      await this.out.first((line) => {
        const fields: Fields = JSON.parse(line);
        return fields['event'] === name && isIt(fields) ? fields : undefined;
      }),
    );
  }

  #found<T>(found: T | undefined): T {
    return found ?? assert.fail(`npm start ended: ${this.err.all.slice(-20).join('\n')}`);
  }
}

/** The lines of a stream. */
class Lines {
  readonly all: string[] = [];
  #read = 0;
  #news = Promise.withResolvers<void>();
  #hasEnded = false;

  constructor(stream: Readable) {
    createInterface({ input: stream })
      .on('line', (line) => {
        this.all.push(line);
        this.#news.resolve();
        this.#news = Promise.withResolvers();
      })
      .on('close', () => {
        this.#hasEnded = true;
        this.#news.resolve();
      });
  }

  /** Resolves with the first result for a line, past or future; with `undefined` when the stream ends without one. */
  first<T>(find: (line: string) => T | undefined): Promise<T | undefined> {
    return this.#search(find, 0);
  }

  /** Resolves as {@link first} does, for a line after the last one found. */
  next<T>(find: (line: string) => T | undefined): Promise<T | undefined> {
    return this.#search(find, this.#read);
  }

  async #search<T>(find: (line: string) => T | undefined, from: number): Promise<T | undefined> {
    for (let at = from; ; at++) {
      while (at >= this.all.length && !this.#hasEnded) await this.#news.promise;
      const line = this.all[at];
      const found = line === undefined ? undefined : find(line);
      if (line !== undefined && found === undefined) continue;
      this.#read = at + 1;
      return found;
    }
  }
}

/** Starts it with a JSON log, and waits until it has listed its clusters. */
export async function npmStart(t: Pick<TestContext, 'after'>, ...args: readonly string[]): Promise<NpmStart> {
  const started = new NpmStart(t, ['--log', 'json', ...args]);
  await started.event('relay.synced');
  return started;
}

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { until } from '#test/cluster/rig/until.ts';

type Where = Pick<SpawnOptions, 'cwd' | 'env' | 'uid' | 'gid'>;

export interface ChildOptions extends Where {
  /** Signals reach its own children, too: all of them are in one process group. */
  readonly group?: boolean;
  /** Its standard input remains open for typing; absent: it has none. */
  readonly typing?: boolean;
  /** Called with each line of its standard output. */
  readonly onLine?: (line: string) => void;
}

/** The end of a program, and its standard error. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** A program in a process of its own. It never outlives this one. */
export class Child {
  readonly process: ChildProcess;
  readonly out: Lines;
  readonly err: Lines;
  /** Resolves when the program has ended and all its processes have closed its output. */
  readonly exit: Promise<Exit>;
  readonly #group: boolean;
  #ended: Exit | undefined;

  constructor(
    program: string,
    args: readonly string[],
    { group = false, typing = false, onLine, ...where }: ChildOptions = {},
  ) {
    this.#group = group;
    const child = spawn(program, args, {
      ...where,
      detached: group,
      stdio: [typing ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    });
    this.process = child;
    this.out = new Lines(child.stdout as Readable, onLine);
    this.err = new Lines(child.stderr as Readable);
    const kill = () => this.signal('SIGKILL');
    process.once('exit', kill);
    this.exit = once(child, 'close').then(([code, signal]) => {
      process.off('exit', kill);
      this.#ended = { code, signal, stderr: this.err.text };
      return this.#ended;
    });
  }

  /** `undefined` while the program runs. */
  get ended(): Exit | undefined {
    return this.#ended;
  }

  /** Sends a signal; returns false if no process is left to receive it. */
  signal(signal: NodeJS.Signals | 0): boolean {
    if (!this.#group) return this.process.kill(signal);
    try {
      return this.process.pid !== undefined && process.kill(-this.process.pid, signal);
    } catch {
      return false;
    }
  }

  /** Suspends the program: SIGSTOP. */
  pause(): void {
    this.signal('SIGSTOP');
  }

  /** Resumes the program: SIGCONT. */
  resume(): void {
    this.signal('SIGCONT');
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exit;
  }

  /** Stops the program as a supervisor does; rejects when it does not end by itself. */
  async stop(withinMs?: number): Promise<Exit> {
    this.signal('SIGTERM');
    try {
      return await until('the program ends after SIGTERM', () => this.#ended, withinMs);
    } catch (error) {
      await this.kill();
      throw error;
    }
  }
}

/** The lines of a stream. */
export class Lines {
  readonly all: string[] = [];
  #read = 0;
  #news = Promise.withResolvers<void>();
  #hasEnded = false;

  constructor(stream: Readable, onLine?: (line: string) => void) {
    createInterface({ input: stream })
      .on('line', (line) => {
        this.all.push(line);
        onLine?.(line);
        this.#news.resolve();
        this.#news = Promise.withResolvers();
      })
      .on('close', () => {
        this.#hasEnded = true;
        this.#news.resolve();
      });
  }

  get text(): string {
    return this.all.map((line) => `${line}\n`).join('');
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

/** What a program printed, and its end. */
export interface Outcome {
  /** NaN: a signal ended it. */
  readonly code: number;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions extends Where, Pick<SpawnOptions, 'timeout' | 'signal'> {
  /** Its standard input; absent: empty. */
  readonly input?: string;
}

/** Runs a program to its end, without a terminal. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { input = '', ...options }: RunOptions = {},
): Promise<Outcome> {
  const child = spawn(program, args, { ...options, stdio: 'pipe' });
  child.stdin.end(input);
  const [out, err, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: code ?? Number.NaN, signal, out, err };
}

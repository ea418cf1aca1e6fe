import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { Child, type Lines } from './child.ts';

const SERVICE = join(PROJECT_DIR, 'functions/service/main.ts');

type Fields = Readonly<Record<string, unknown>>;

/** `npm start`, without npm between, in a process of its own, which is killed at the end of the test. */
export class NpmStart extends Child {
  /** The state directory. */
  readonly state: string;

  /** Starts it with these arguments; on the simulated cluster unless they name another. `state`: absent: a new one. */
  constructor(t: Pick<TestContext, 'after'>, args: readonly string[] = [], state?: string) {
    const dir = state === undefined ? mkdtempSync(join(tmpdir(), 'tw-')) : undefined;
    const stateDir = state ?? join(dir ?? '', 'state');
    super(process.execPath, [SERVICE, '--state-dir', stateDir, ...args], { typing: true });
    this.state = stateDir;
    t.after(async () => {
      await this.kill();
      if (dir !== undefined) rmSync(dir, { recursive: true });
    });
  }

  /** Types a line at the prompt. */
  readonly type = (line: string): void => void this.process.stdin?.write(`${line}\n`);

  /** Resolves with the first result for an unread line of a stream; rejects when it ends without one. */
  async line<T>(find: (line: string) => T | undefined, lines: Lines = this.out): Promise<T> {
    return this.#found(await lines.next(find));
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

/** Starts it with a JSON log, and waits until it has listed its clusters. */
export async function npmStart(t: Pick<TestContext, 'after'>, ...args: readonly string[]): Promise<NpmStart> {
  const started = new NpmStart(t, ['--log', 'json', ...args]);
  await started.event('relay.synced');
  return started;
}

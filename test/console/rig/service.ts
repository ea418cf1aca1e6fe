import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PROJECT_DIR } from '../../../cdk/bundle.ts';

/** A cold start on a busy machine takes a few seconds. */
const STARTED_WITHIN_MS = 60_000;
/** How it says where its console is. */
const LINK = /http:\/\/\S+\?key=\S+/;

/** `npm start`, without npm between, on a state directory of its own. */
export class Service {
  /** By which one browser gets into its console. */
  readonly link: string;
  readonly #child: ChildProcess;
  readonly #dir: string;

  private constructor(child: ChildProcess, dir: string, link: string) {
    this.#child = child;
    this.#dir = dir;
    this.link = link;
  }

  /** Starts it and waits for the link. Rejects with what it said, should it say none. */
  static async start(...args: readonly string[]): Promise<Service> {
    const dir = mkdtempSync(join(tmpdir(), 'taintward-console-'));
    const main = join(PROJECT_DIR, 'functions/local/main.ts');
    const child = spawn(process.execPath, [main, '--state', join(dir, 'state'), ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      signal: AbortSignal.timeout(STARTED_WITHIN_MS * 10),
      killSignal: 'SIGKILL',
    });
    child.on('error', () => undefined);
    const said: string[] = [];
    child.stderr.setEncoding('utf8').on('data', (text: string) => said.push(text));
    const lines = createInterface({ input: child.stdout });
    const link = await new Promise<string>((resolve, reject) => {
      lines.on('line', (line) => {
        said.push(line);
        const [found] = LINK.exec(line) ?? [];
        if (found !== undefined) resolve(found);
      });
      lines.once('close', () => reject(new Error(`npm start told of no console:\n${said.join('\n')}`)));
    });
    return new Service(child, dir, link);
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

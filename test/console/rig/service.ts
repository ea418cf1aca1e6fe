import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { consoleLinkSchema } from '#shared/operations/fleet/service-view.ts';
import { askSocket, SOCKET_FILE } from '#shared/operations/fleet/state-socket.ts';

/** A cold start on a busy machine takes a few seconds. */
const STARTED_WITHIN_MS = 60_000;

const stateIn = (dir: string): string => join(dir, 'state');

/** `npm start`, without npm between, on a state directory of its own. */
export class Service {
  /** The link that gives one browser access to the console. */
  readonly link: string;
  /** The state directory. */
  readonly state: string;
  readonly #child: ChildProcess;
  readonly #dir: string;

  private constructor(child: ChildProcess, dir: string, link: string) {
    this.#child = child;
    this.#dir = dir;
    this.link = link;
    this.state = stateIn(dir);
  }

  /** Starts it, waits for its console, and requests a link. Rejects with its output if it has no console. */
  static async start(...args: readonly string[]): Promise<Service> {
    const dir = mkdtempSync(join(tmpdir(), 'taintward-console-'));
    const main = join(PROJECT_DIR, 'functions/service/main.ts');
    const child = spawn(process.execPath, [main, '--state-dir', stateIn(dir), '--log', 'json', ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      signal: AbortSignal.timeout(STARTED_WITHIN_MS * 10),
      killSignal: 'SIGKILL',
    });
    child.on('error', () => undefined);
    const printed: string[] = [];
    child.stderr.setEncoding('utf8').on('data', (text: string) => printed.push(text));
    const lines = createInterface({ input: child.stdout });
    await new Promise<void>((resolve, reject) => {
      lines.on('line', (line) => {
        printed.push(line);
        if (JSON.parse(line).event === 'console.started') resolve();
      });
      lines.once('close', () => reject(new Error(`npm start told of no console:\n${printed.join('\n')}`)));
    });
    const { link } = consoleLinkSchema.parse(
      await askSocket(join(stateIn(dir), SOCKET_FILE), '/console/link', 'POST'),
    );
    assert.ok(link !== undefined, 'it serves no console');
    return new Service(child, dir, link);
  }

  /** Sends a signal, as SIGSTOP, which freezes the service. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

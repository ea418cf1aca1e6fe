import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

/** A separate `npm start`, which runs until the end of the test. */
export interface NpmStart {
  /** The state directory. */
  readonly state: string;
  /** Types a line at the prompt of the simulated cluster. */
  type(line: string): void;
  /** Sends a signal to the process. */
  signal(name: NodeJS.Signals): void;
}

/**
 * Starts it with these arguments, or on the simulated cluster without any, and waits until it has listed its clusters.
 */
export async function npmStart(t: TestContext, ...args: readonly string[]): Promise<NpmStart> {
  const dir = mkdtempSync(join(tmpdir(), 'tw-'));
  const state = join(dir, 'state');
  const child = spawn(
    process.execPath,
    [join(PROJECT_DIR, 'functions/service/main.ts'), '--log', 'json', '--state-dir', state, ...args],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  );
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGCONT');
      child.kill();
      await once(child, 'exit');
    }
    rmSync(dir, { recursive: true });
  });
  const lines = createInterface({ input: child.stdout });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`npm start ended with ${code}`)));
    lines.on('line', (line) => {
      if (JSON.parse(line).event === 'relay.synced') resolve();
    });
  });
  return {
    state,
    type: (line) => void child.stdin.write(`${line}\n`),
    signal: (name) => void child.kill(name),
  };
}

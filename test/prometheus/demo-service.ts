import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');

/** Runs `npm start` on its simulated cluster; the process ends with the test. */
export async function startDemoService(context: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'demo-'));
  const args = ['functions/service/main.ts', '--state-dir', dir, '--log', 'json'];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: 'pipe' });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  context.after(async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    rmSync(dir, { recursive: true });
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  /** Resolves with the next line of the log with this event. */
  const logged = async (event: string): Promise<Readonly<Record<string, unknown>>> => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, `the service ended before ${event}: ${said}`);
      const line = JSON.parse(value);
      if (line.event === event) return line;
    }
  };
  const { port } = await logged('relay.started');
  await logged('relay.synced');
  return {
    logged,
    /** Types a line at its prompt. */
    type: (line: string) => void child.stdin.write(`${line}\n`),
    /** Returns the text of `/metrics`, as Prometheus receives it. */
    scrape: async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
  };
}

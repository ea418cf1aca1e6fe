import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that failed. */
export class CommandError extends Error {
  readonly code: unknown;
  readonly stdout: string;

  constructor(message: string, { code, stdout }: { readonly code: unknown; readonly stdout: string }) {
    super(message);
    this.code = code;
    this.stdout = stdout;
  }
}

/** Runs a program, by default in the repository. Rejects, with all of its output, when it fails or takes too long. */
export async function run(
  program: string,
  args: readonly string[],
  {
    env,
    withinMs,
    cwd = ROOT,
  }: { readonly env: NodeJS.ProcessEnv; readonly withinMs: number; readonly cwd?: string },
): Promise<CommandResult> {
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: withinMs,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code, signal] = await once(child, 'close');
  if (code === 0) return { stdout, stderr };
  throw new CommandError(
    `${[program, ...args].join(' ')} ended with ${signal ?? `code ${code}`}:\n${stdout}${stderr}`,
    { code, stdout },
  );
}

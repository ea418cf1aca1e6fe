import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { NotHereError } from './scenario.ts';

/** Builds the program in a folder with Go; returns its path. Throws `NotHereError` where it cannot be built. */
export function goProgram(folder: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-go-'));
  process.once('exit', () => rmSync(dir, { recursive: true }));
  const program = join(dir, basename(folder));
  try {
    execFileSync('go', ['build', '-o', program, '.'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    return program;
  } catch (error) {
    const why = (error as Error).message.split('\n').slice(0, 2).join(' ');
    throw new NotHereError(`${basename(folder)} could not be built with Go 1.26: ${why}`);
  }
}

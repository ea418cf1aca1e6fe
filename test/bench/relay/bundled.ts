import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { bundleInParts } from '#deploy/build/bundle.ts';

const files = new Map<string, string>();

/**
 * Returns the file of a program that is bundled once, as the deployed relay is, so that it has the same load time and
 * memory.
 */
export function bundled(entry: string): string {
  const known = files.get(entry);
  if (known !== undefined) return known;
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
  process.once('exit', () => rmSync(dir, { recursive: true }));
  const name = basename(entry, '.ts');
  bundleInParts(entry, name, dir);
  const file = join(dir, `${name}.mjs`);
  files.set(entry, file);
  return file;
}

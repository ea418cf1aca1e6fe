import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { bundle } from '../../../cdk/bundle.ts';

const files = new Map<string, string>();

/** A program as one file, bundled once and as the deployed relay is, so that it loads and weighs the same. */
export function bundled(entry: string): string {
  const known = files.get(entry);
  if (known !== undefined) return known;
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
  process.once('exit', () => rmSync(dir, { recursive: true }));
  const file = `${basename(entry, '.ts')}.mjs`;
  bundle(entry, file, dir);
  files.set(entry, join(dir, file));
  return join(dir, file);
}

import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleFunction, FUNCTION_NAMES } from '#deploy/build/bundle.ts';
import { bundleImage } from './bundle-image.ts';

/*
 * The program of `npm run bundles`. It builds all deployed bundles, into the given directory or into a temporary one, and prints
 * the SHA-256 of each file, as `sha256sum` does.
 */
const [, , given] = process.argv;
const dir = given ?? mkdtempSync(join(tmpdir(), 'taintward-bundles-'));
try {
  for (const name of FUNCTION_NAMES) bundleFunction(name, join(dir, name));
  bundleImage(join(dir, 'image'));
  for (const path of readdirSync(dir, { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (!statSync(join(dir, path)).isFile()) continue;
    const hash = createHash('sha256')
      .update(readFileSync(join(dir, path)))
      .digest('hex');
    process.stdout.write(`${hash}  ${path}\n`);
  }
} finally {
  if (given === undefined) rmSync(dir, { recursive: true });
}

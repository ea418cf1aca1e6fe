import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const CHECKSUMS_FILE = 'checksums.txt';

export const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** Writes the SHA-256 of each file in `directory` into another file there, in the format of `sha256sum --check`. */
export function writeChecksums(directory: string): void {
  const lines = readdirSync(directory)
    .filter((name) => name !== CHECKSUMS_FILE)
    .toSorted()
    .map((name) => `${sha256(join(directory, name))}  ${name}\n`);
  writeFileSync(join(directory, CHECKSUMS_FILE), lines.join(''));
}

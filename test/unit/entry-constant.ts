import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** Returns the text of a file of the repository. */
export const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Returns a number that stands once in a file: entries of programs cannot be loaded, and export nothing. */
export function numberIn(path: string, pattern: RegExp): number {
  const [, digits, ...others] = textOf(path).split(pattern);
  assert.ok(digits !== undefined && others.length === 1, `${path} holds one ${pattern}`);
  return Number(digits.replaceAll('_', ''));
}

/** Returns a constant of the entry of a program. */
export const entryConstant = (path: string, name: string): number =>
  numberIn(path, new RegExp(`^const ${name} = ([\\d_]+);$`, 'm'));

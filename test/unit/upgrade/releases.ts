import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Item } from '#shared/state/dynamodb/dynamodb-item.ts';
import type { KeptFiles } from './kept-files.ts';
import type { KeptObjects } from './kept-objects.ts';
import type { WrittenPolicies } from './policies.ts';

/** One file per published release, and one of the current code. */
export const FOLDER = join(import.meta.dirname, 'written');

/** The messages and the state that a release writes. */
export interface Written {
  readonly deltas: Readonly<Record<string, object>>;
  readonly due: Readonly<Record<string, object>>;
  readonly items: readonly Item[];
  /** Objects of a service that stores its state in its cluster. */
  readonly objects: KeptObjects;
  /** Files of a single-process service. */
  readonly files: KeptFiles;
  readonly policies: WrittenPolicies;
}

export const RELEASES = readdirSync(FOLDER).map((file) => ({
  release: file.replace('.json', ''),
  written: JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Written,
}));

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Item } from '#shared/state/dynamodb/dynamodb-table.ts';
import { changed } from './changes.ts';
import type { KeptFiles } from './kept-files.ts';
import type { KeptObjects } from './kept-objects.ts';
import type { WrittenPolicies } from './policies.ts';

/** One file a release: what the first writes is there whole, and of each other what it writes in place of that. */
export const FOLDER = join(import.meta.dirname, 'written');
export const FIRST = '000e089';

/** What a release sends and stores. */
export interface Written {
  readonly deltas: Readonly<Record<string, object>>;
  readonly due: Readonly<Record<string, object>>;
  readonly items: readonly Item[];
  /** Of a service that keeps all in its cluster. */
  readonly objects: KeptObjects;
  /** Of a service in one process. */
  readonly files: KeptFiles;
  readonly policies: WrittenPolicies;
}

/** The file of a release. */
export const onRecord = (release: string): unknown =>
  JSON.parse(readFileSync(join(FOLDER, `${release}.json`), 'utf8'));

export const RELEASES = readdirSync(FOLDER).map((file) => {
  const release = file.replace('.json', '');
  const changes = release === FIRST ? undefined : onRecord(release);
  return { release, written: changed(onRecord(FIRST), changes) as Written };
});

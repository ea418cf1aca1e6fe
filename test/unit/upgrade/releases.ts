import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Item } from '#shared/state/dynamodb/dynamodb-item.ts';
import { changed } from './changes.ts';
import type { KeptFiles } from './kept-files.ts';
import type { KeptObjects } from './kept-objects.ts';
import type { WrittenPolicies } from './policies.ts';

/** One file per release. The file of the first release is complete. Each other file contains its changes relative to the first. */
export const FOLDER = join(import.meta.dirname, 'written');
export const FIRST = '000e089';

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

/** Returns the content of a release's file. */
export const onRecord = (release: string): unknown =>
  JSON.parse(readFileSync(join(FOLDER, `${release}.json`), 'utf8'));

export const RELEASES = readdirSync(FOLDER).map((file) => {
  const release = file.replace('.json', '');
  const changes = release === FIRST ? undefined : onRecord(release);
  return { release, written: changed(onRecord(FIRST), changes) as Written };
});

/** The first release did not know outages. */
export const knownTo = <Value>(release: string, value: Value): Value =>
  release === FIRST ? (withoutFields(value, ['outage', 'answeredAt']) as Value) : value;

function withoutFields(value: unknown, names: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutFields(each, names));
  if (typeof value !== 'object' || value === null || value instanceof Map) return value;
  const left = Object.entries(value).filter(([name]) => !names.includes(name));
  return Object.fromEntries(left.map(([name, each]) => [name, withoutFields(each, names)]));
}

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Item } from '#shared/store/dynamodb-table.ts';

const FOLDER = join(import.meta.dirname, '../unit/upgrade/written');

interface Written {
  readonly deltas: Readonly<Record<string, object>>;
  readonly due: Readonly<Record<string, object>>;
  readonly items: readonly Item[];
}

/** What releases have sent and stored, as it is on record. */
export const RELEASES: readonly Written[] = readdirSync(FOLDER).map(
  (file) => JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Written,
);

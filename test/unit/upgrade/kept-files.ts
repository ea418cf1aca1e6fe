import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { clusterName } from '#shared/eviction/identity.ts';
import { REACHED_BY_FILE, readReachedBy, writeReachedBy } from '#shared/operations/fleet/reached-by.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { openState, sqliteLeases, sqlitePermits, sqliteRequests } from '#shared/state/sqlite/sqlite-state.ts';
import { RULES_FILE, STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { CLUSTER, NOW, REF } from './messages.ts';
import { type KEPT_MEANING, readKept, writeKept } from './stored.ts';

/** A SQLite database as text: the statements that create its tables, and their rows. */
interface Database {
  readonly pragmas: Readonly<Record<'application_id' | 'user_version', number>>;
  readonly schema: readonly string[];
  readonly rows: Readonly<Record<string, readonly Row[]>>;
}
type Row = Readonly<Record<string, SQLInputValue>>;

/** The files in the state directory of a single-process service. */
export interface KeptFiles {
  readonly [REACHED_BY_FILE]: unknown;
  readonly [STORE_FILE]: Database;
  readonly [RULES_FILE]: Database;
}

const REACHED_BY = new Map([
  [CLUSTER, { context: 'production', kubeconfig: '/home/anna/.kube/config' }],
  [clusterName('kind'), { context: 'kind' }],
]);

const REQUESTS = [{ body: '{"v":1}' }];

const HISTORY = [
  ...['web-3 canceled', 'web-2 already-gone', 'web-2 blocked', 'web-1 held', 'web-0 rescheduled'],
  ...['web-2 scheduled', 'web-3 scheduled', 'web-1 scheduled', 'web-0 scheduled'],
];

/** The meaning of these files, in addition to the state of every deployment. */
export const FILES_MEANING = {
  reachedBy: REACHED_BY,
  requests: REQUESTS,
  /** No rules are missing, so no stop was set for missing rules. */
  stoppedForLoss: undefined,
  /** History of the node's pods, newest first. */
  history: HISTORY,
};

/** Returns the state directory that the current code writes, with all optional fields. */
export async function writtenFiles(): Promise<KeptFiles> {
  const directory = mkdtempSync(join(tmpdir(), 'taintward-written-'));
  try {
    const reachedBy = join(directory, REACHED_BY_FILE);
    writeReachedBy(reachedBy, REACHED_BY);
    const state = openFiles(directory);
    state.rulesStore.stopIfLost(NOW);
    state.rules.exec("UPDATE identity SET id = 'the-rules'");
    state.store.database.exec("UPDATE known_rules SET id = 'the-rules'");
    await writeKept(state);
    await sqliteRequests(state.store.database).send(REQUESTS);
    const written = {
      [REACHED_BY_FILE]: JSON.parse(readFileSync(reachedBy, 'utf8')),
      [STORE_FILE]: dumped(state.store.database),
      [RULES_FILE]: dumped(state.rules),
    };
    state.close();
    return written;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Returns the content that the current code reads from such files. */
export async function readFiles(written: KeptFiles): Promise<typeof KEPT_MEANING & typeof FILES_MEANING> {
  const directory = mkdtempSync(join(tmpdir(), 'taintward-written-'));
  try {
    const reachedBy = join(directory, REACHED_BY_FILE);
    writeFileSync(reachedBy, JSON.stringify(written[REACHED_BY_FILE]));
    restore(join(directory, STORE_FILE), written[STORE_FILE]);
    restore(join(directory, RULES_FILE), written[RULES_FILE]);
    const state = openFiles(directory);
    const stoppedForLoss = state.rulesStore.stopIfLost(NOW);
    const whole = { cluster: CLUSTER, node: REF.node, from: 0, to: NOW * 2 };
    const read = {
      stoppedForLoss: stoppedForLoss as undefined,
      ...(await readKept(state)),
      history: await Array.fromAsync(state.history.entries(whole), ({ pod, event }) => `${pod} ${event}`),
      reachedBy: readReachedBy(reachedBy) as typeof REACHED_BY,
      requests: (await sqliteRequests(state.store.database).take()) as typeof REQUESTS,
    };
    state.close();
    return read;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Opens the state in a directory as the service does when it starts. */
export function openFiles(directory: string) {
  const state = openState(directory);
  const { database } = state.store;
  return {
    ...state,
    history: new SqliteHistory({ database }),
    leases: sqliteLeases(database),
    permits: sqlitePermits(database),
    close: () => {
      state.rulesStore.close();
      state.store.close();
    },
  };
}

const PRAGMAS = ['application_id', 'user_version'] as const;

/** Returns the content of a database as text. */
export function dumped(database: DatabaseSync): Database {
  const all = (sql: string, ...of: SQLInputValue[]) => database.prepare(sql).all(...of);
  const made = all("SELECT name, type, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'");
  const tables = made.filter(({ type }) => type === 'table').map(({ name }) => String(name));
  const rowsOf = (table: string) => {
    // The list excludes generated columns.
    const columns = all('SELECT name FROM pragma_table_info(?)', table).map(({ name }) => name);
    return all(`SELECT ${columns.join(', ')} FROM ${table}`) as unknown as Row[];
  };
  return {
    pragmas: Object.fromEntries(
      PRAGMAS.map((name) => [name, database.prepare(`PRAGMA ${name}`).get()?.[name]]),
    ) as Database['pragmas'],
    schema: made.map(({ sql }) => String(sql).replace(/\s+/g, ' ')),
    rows: Object.fromEntries(tables.map((table) => [table, rowsOf(table)])),
  };
}

/** Recreates the database from its text. */
export function restore(path: string, { pragmas, schema, rows }: Database): void {
  const database = new DatabaseSync(path);
  for (const each of schema) database.exec(each);
  for (const name of PRAGMAS) database.exec(`PRAGMA ${name} = ${pragmas[name]}`);
  for (const [table, entries] of Object.entries(rows)) {
    for (const row of entries) {
      const columns = Object.keys(row);
      const values = columns.map((column) => `:${column}`).join(', ');
      database.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values})`).run(row);
    }
  }
  database.close();
}

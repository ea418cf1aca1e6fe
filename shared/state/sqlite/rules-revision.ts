import { randomUUID } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import { readOwn, replaceOwn } from '#shared/files/owner-only.ts';
import { parseStored } from '#shared/state/stored.ts';
import { inTransaction } from './sqlite-database.ts';
import { KINDS } from './sqlite-objects.ts';

/**
 * Beside the database: its ID, and the number of changes of policies, stops and holds. A change that the database lacks
 * may forbid evictions.
 */
export const RULES_REVISION_FILE = 'rules-revision.json';

/** Absent from databases of earlier releases, to which the table is no other schema. */
const TABLE = `
  CREATE TABLE IF NOT EXISTS identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
  ) STRICT`;

const noteSchema = z.object({ database: z.string(), revision: z.int().nonnegative() });
type Note = z.infer<typeof noteSchema>;

const idRow = z.object({ id: z.string() });
const revisionRow = z.object({ revision: z.int() });

/** All methods but `note` throw `ForeignFileError` and the errors of SQLite and the system. */
export class RulesRevision {
  readonly #database: DatabaseSync;
  readonly #newId: () => string;
  /** Absent for a database in memory, which ends with its process. */
  readonly #file: string | undefined;
  readonly #name: string;

  constructor(database: DatabaseSync, newId: () => string = randomUUID) {
    this.#database = database;
    this.#newId = newId;
    const path = database.location();
    this.#file = path ? join(dirname(path), RULES_REVISION_FILE) : undefined;
    this.#name = path ? basename(path) : '';
  }

  /** Why rules may be missing from the database, as a sentence; `undefined`: no sign. Older releases leave no file. */
  lost(): string | undefined {
    if (this.#file === undefined) return undefined;
    // Read the file before the database, whose revision only grows.
    const noted = this.#noted();
    if (noted === undefined) return undefined;
    const check = 'check them (taintward holds, policy get, audit) and set missing ones again';
    if (noted === 'unreadable')
      return `${RULES_REVISION_FILE} cannot be read, so policies, stops or holds may be missing from ${this.#name}: ${check}`;
    if (noted.revision === 0) return undefined;
    if (this.#id() !== noted.database)
      return `${this.#name} is not the database that ${RULES_REVISION_FILE} names, so policies, stops or holds may be missing: ${check}`;
    const missing = noted.revision - this.#revision();
    if (missing <= 0) return undefined;
    const changes = missing === 1 ? 'the last change' : `the last ${missing} changes`;
    return `${this.#name} lacks ${changes} of policies, stops or holds: ${check}`;
  }

  begin(): void {
    const file = this.#file;
    if (file === undefined) return;
    if (this.#id() === undefined) {
      inTransaction(this.#database, 'IMMEDIATE', () => {
        if (this.#id() !== undefined) return;
        const id = this.#newId();
        // A process that is killed in between leaves a file that requires nothing.
        write(file, { database: id, revision: 0 });
        this.#setId(id);
      });
    }
    this.#writeNote();
  }

  /** Gives the database a new ID, unlike the one that lacks changes. Runs in the caller's transaction. */
  renew(): void {
    this.#setId(this.#newId());
  }

  /** Makes the file name this database after {@link renew}, whatever it contains. */
  replaceNote(): void {
    this.#writeNote(true);
  }

  /**
   * Records a committed change, and moves it from the write-ahead log into the database, so that it outlives the log.
   * After a failure the change is valid, and the next change or start repeats this.
   */
  note(): void {
    if (this.#file === undefined) return;
    try {
      // This checkpoint waits for no reader.
      this.#database.exec('PRAGMA wal_checkpoint(PASSIVE)');
      this.#writeNote();
    } catch {
      // The file is still correct: the database has at least its revision.
    }
  }

  /** Writes under the lock of the database: of two processes, the one with the higher revision writes last. */
  #writeNote(again = false): void {
    const file = this.#file;
    if (file === undefined) return;
    inTransaction(this.#database, 'IMMEDIATE', () => {
      const id = this.#id();
      if (id === undefined) return;
      const now = { database: id, revision: this.#revision() };
      if (again || this.#isBehind(now)) write(file, now);
    });
  }

  /** A file with another database's ID or a higher revision is kept, because it shows a loss. */
  #isBehind(now: Note): boolean {
    const noted = this.#noted();
    if (noted === undefined) return true;
    if (noted === 'unreadable') return false;
    return noted.revision < now.revision && (noted.database === now.database || noted.revision === 0);
  }

  #noted(): Note | 'unreadable' | undefined {
    const text = this.#file === undefined ? undefined : readOwn(this.#file);
    if (text === undefined) return undefined;
    try {
      return noteSchema.parse(JSON.parse(text));
    } catch {
      return 'unreadable';
    }
  }

  #id(): string | undefined {
    const table = this.#database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'identity'").get();
    const row = table && this.#database.prepare('SELECT id FROM identity').get();
    return row && parseStored(idRow, row, 'identity of the database').id;
  }

  #setId(id: string): void {
    this.#database.exec(TABLE);
    this.#database
      .prepare('INSERT INTO identity (one, id) VALUES (1, ?) ON CONFLICT DO UPDATE SET id = excluded.id')
      .run(id);
  }

  /** Grows by one with each change of a cluster's rules, or of the rules for all clusters. */
  #revision(): number {
    const row = this.#database
      .prepare(
        `SELECT coalesce(sum((json ->> '$.status.orders.revision') + (json ->> '$.status.fleet.revision')), 0) AS revision
         FROM objects WHERE kind = '${KINDS.rules}'`,
      )
      .get();
    return parseStored(revisionRow, row, 'revision of the rules').revision;
  }
}

const write = (file: string, note: Note): void => replaceOwn(file, `${JSON.stringify(note)}\n`);

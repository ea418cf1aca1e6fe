import { closeSync, mkdirSync, openSync, readSync, rmSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { createOwnerOnly } from '#shared/files/owner-only.ts';
import { StoreError } from '#shared/state/store.ts';
import { errorMessage } from '#shared/text/error-message.ts';

/** Suffix of SQLite's write-ahead log. Only the log has the latest commits. */
const LOG = '-wal';
/** Suffixes of files that belong to one database, and to no other of the same name. */
const BESIDE = [LOG, '-shm', '-journal'];
/** Suffix of a copy of this process's data, when another database is in its place. */
const SAVED = '.saved';

/** An open database's files were deleted, replaced or cut off. The message reports whether they were saved. */
export class StateLostError extends StoreError {
  override readonly name = 'StateLostError';
}

/** The first bytes of a log that is not empty, in either byte order. */
const LOG_MAGIC = [0x377f0682, 0x377f0683];

interface Found {
  readonly database: Stats | undefined;
  readonly log: Stats | undefined;
}

/**
 * Watches an open database's files. SQLite continues to use deleted ones, whose content is lost with the process, and
 * applies a log that was cut off, holes and all.
 */
export class StateFiles {
  readonly #database: DatabaseSync;
  readonly #path: string;
  #known: Found;

  constructor(database: DatabaseSync, path: string) {
    this.#database = database;
    this.#path = path;
    this.#known = this.#find();
  }

  /**
   * Throws `StateLostError` if the files changed, with their content saved as far as this process had it. The process
   * must then end without closing the database: SQLite would modify other processes' files.
   */
  check(): void {
    const { database, log } = this.#known;
    const now = this.#find();
    this.#known = now;
    const what = `the database ${this.#path}`;
    if (!now.database) throw lost(`${what} was deleted`, this.#restored());
    if (!isSame(database, now.database)) throw lost(`${what} was replaced`, this.#savedBeside());
    if (log && !now.log) throw lost(`the log of ${what} was deleted`, this.#broughtIn());
    if (log && !isSame(log, now.log)) throw lost(`the log of ${what} was replaced`, this.#savedBeside());
    if (log && now.log && (now.log.size < log.size || this.#isHollow(now.log)))
      throw lost(
        `the log of ${what} was cut off`,
        'changes that were only in the log are lost, and the rest is unchanged',
      );
  }

  #find(): Found {
    const at = (path: string) => statSync(path, { throwIfNoEntry: false });
    return { database: at(this.#path), log: at(`${this.#path}${LOG}`) };
  }

  /** Reports whether the log was cut off and then written to: it has a hole before the new bytes. */
  #isHollow({ size }: Stats): boolean {
    if (size === 0) return false;
    // SQLite's locks are on other files, so closing this one releases none of them.
    const file = openSync(`${this.#path}${LOG}`, 'r');
    try {
      const magic = Buffer.alloc(4);
      readSync(file, magic, 0, 4, 0);
      return !LOG_MAGIC.includes(magic.readUInt32BE());
    } finally {
      closeSync(file);
    }
  }

  /** No other process has a database of that name, so a remaining log or index belongs to none. */
  #restored(): string {
    return saved(`its content is restored`, () => {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      for (const part of BESIDE) rmSync(`${this.#path}${part}`, { force: true });
      this.#copyTo(this.#path);
    });
  }

  #savedBeside(): string {
    const path = `${this.#path}${SAVED}`;
    return saved(`what this process had in it is in ${path}`, () => {
      rmSync(path, { force: true });
      this.#copyTo(path);
    });
  }

  #broughtIn(): string {
    return saved('its content was written to the database', () => {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    });
  }

  #copyTo(path: string): void {
    createOwnerOnly(path);
    this.#database.prepare('VACUUM INTO ?').run(path);
  }
}

const isSame = (one: Stats | undefined, other: Stats | undefined): boolean =>
  one?.ino === other?.ino && one?.dev === other?.dev;

function saved(how: string, save: () => void): string {
  try {
    save();
    return how;
  } catch (error) {
    return `its content could not be saved (${errorMessage(error)})`;
  }
}

const lost = (what: string, became: string): StateLostError =>
  new StateLostError(`${what} while it was in use; ${became}: start it again`);

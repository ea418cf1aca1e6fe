import { closeSync, mkdirSync, openSync, readSync, rmSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { createOwnerOnly } from '#shared/files/owner-only.ts';
import { StoreError } from '#shared/state/store.ts';
import { errorMessage } from '#shared/text/error-message.ts';

/** SQLite's write-ahead log: what was committed last is in it alone. */
const LOG = '-wal';
/** What belongs to a database, and to no other of its name. */
const BESIDE = [LOG, '-shm', '-journal'];
/** A copy of what this process had in a database, when another one stands in its place. */
const SAVED = '.saved';

/** Files of an open database are no longer those that were opened; the message says what became of what they held. */
export class StateLostError extends StoreError {
  override readonly name = 'StateLostError';
}

/** With which a log begins that is not empty, in either order of bytes. */
const LOG_MAGIC = [0x377f0682, 0x377f0683];

interface Found {
  readonly database: Stats | undefined;
  readonly log: Stats | undefined;
}

/**
 * Looks after the files of an open database. SQLite itself goes on with files that were deleted, of which nothing is left
 * when the process ends, and brings a log that was cut off into the database, holes and all.
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
   * Throws `StateLostError` when they are not what they were; what was in them is saved by then, as far as this process still
   * had it. After that the process is to end without closing the database: SQLite would do that to the files of others.
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

  /** It was cut off, and written on: before the first byte that was, nothing stands. */
  #isHollow({ size }: Stats): boolean {
    if (size === 0) return false;
    // The locks of SQLite stand on other files, so that closing this one gives none of them up.
    const file = openSync(`${this.#path}${LOG}`, 'r');
    try {
      const magic = Buffer.alloc(4);
      readSync(file, magic, 0, 4, 0);
      return !LOG_MAGIC.includes(magic.readUInt32BE());
    } finally {
      closeSync(file);
    }
  }

  /** Nobody else has one of that name: a log or index that is left belongs to none. */
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

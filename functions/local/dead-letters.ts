import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { DEAD_LETTER_RETENTION_SECONDS } from '#shared/queues/queue-set.ts';
import type { OutgoingMessage, QueueSender } from '#shared/queues/sender.ts';
import { parseStored } from '#shared/store/stored.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { inTransaction, orSqliteStoreError } from './sqlite-database.ts';

/** Letters that are kept; beyond, the oldest go. Each is at most 1 MiB, and nearly all are a few hundred bytes. */
const MAX_LETTERS = 1_000;

/** A message that nobody could handle. */
export interface DeadLetter {
  readonly id: number;
  /** The queue it was on, and that it goes back to. */
  readonly queue: string;
  /** When it was given up. */
  readonly at: EpochMs;
  /** One sentence. */
  readonly reason: string;
  readonly body: string;
  readonly groupId?: string;
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS dead_letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    body TEXT NOT NULL,
    groupId TEXT,
    redrive INTEGER NOT NULL DEFAULT FALSE
  ) STRICT;
  CREATE INDEX IF NOT EXISTS dead_letters_redrive ON dead_letters (id) WHERE redrive;
`;

const letterRow: z.ZodType<DeadLetter> = z
  .object({
    id: z.int(),
    queue: z.string(),
    at: z.int(),
    reason: z.string(),
    body: z.string(),
    groupId: z.string().nullable(),
  })
  .transform(({ groupId, ...letter }) => ({ ...letter, ...(groupId === null ? {} : { groupId }) }));

const COLUMNS = 'id, queue, at, reason, body, groupId';

/**
 * What the queues of this process gave up, kept in the store's database: the only messages that outlive the process.
 * Another process on the same file may list them and ask for a redrive. Every method throws `StoreError`.
 */
export class DeadLetters {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Log;

  /** `database`: the store's own, as `openDatabase` opened it. */
  constructor(deps: { readonly database: DatabaseSync; readonly clock: Clock; readonly log: Log }) {
    this.#database = deps.database;
    this.#path = deps.database.location() ?? ':memory:';
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#run(() => this.#database.exec(SCHEMA));
  }

  /** Keeps a message of `queue`; when there are too many, drops the oldest, and says so. */
  add(queue: string, { body, groupId }: Pick<OutgoingMessage, 'body' | 'groupId'>, reason: string): void {
    const dropped = this.#run(() =>
      inTransaction(this.#database, 'IMMEDIATE', () => {
        this.#database
          .prepare('INSERT INTO dead_letters (queue, at, reason, body, groupId) VALUES (?, ?, ?, ?, ?)')
          .run(queue, this.#clock.now(), reason, body, groupId ?? null);
        return this.#database
          .prepare(`
            DELETE FROM dead_letters
            WHERE id <= (SELECT id FROM dead_letters ORDER BY id DESC LIMIT 1 OFFSET ?)
            RETURNING ${COLUMNS}`)
          .all(MAX_LETTERS);
      }),
    );
    for (const { id, queue: from, reason: why } of dropped.map(parseLetter)) {
      this.#log.warn('dead-letter.dropped', { id, queue: from, reason: why });
    }
  }

  /** Every letter that is kept, the oldest first. */
  list(): readonly DeadLetter[] {
    return this.#run(() =>
      this.#database.prepare(`SELECT ${COLUMNS} FROM dead_letters ORDER BY id`).all().map(parseLetter),
    );
  }

  /** Asks for a letter to be sent again, by the service that runs or the next that starts. `false`: there is none of this id. */
  redrive(id: number): boolean {
    return this.#run(
      () => this.#database.prepare('UPDATE dead_letters SET redrive = TRUE WHERE id = ?').run(id).changes > 0,
    );
  }

  /** The letters that are to be sent again, the oldest first; they are no dead letters any more. */
  takeRedriven(): readonly DeadLetter[] {
    return this.#run(() =>
      this.#database
        .prepare(`DELETE FROM dead_letters WHERE redrive RETURNING ${COLUMNS}`)
        .all()
        .map(parseLetter)
        .sort((a, b) => a.id - b.id),
    );
  }

  /** Removes the letters whose time is over. */
  purge(): void {
    const endedAt = this.#clock.now() - DEAD_LETTER_RETENTION_SECONDS * 1000;
    this.#run(() => this.#database.prepare('DELETE FROM dead_letters WHERE at <= ?').run(endedAt));
  }

  /** The dead-letter queue of `queue`, for handlers that set a message aside; its `reason` attribute says why. */
  sender(queue: string): QueueSender {
    return {
      send: async (messages: readonly OutgoingMessage[]) => {
        for (const message of messages) {
          this.add(queue, message, message.attributes?.['reason'] ?? 'set aside without a reason');
        }
        return [];
      },
    };
  }

  #run<T>(work: () => T): T {
    return orSqliteStoreError(this.#path, work);
  }
}

const parseLetter = (row: unknown): DeadLetter => parseStored(letterRow, row, 'dead letter');

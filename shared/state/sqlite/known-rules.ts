import { basename } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import { parseStored } from '#shared/state/stored.ts';

const knownRow = z.object({ id: z.string(), revision: z.int() });
type Known = z.infer<typeof knownRow>;

/**
 * The records' database keeps the ID of the rules' database and its number of changes: a copy of the rules that lacks
 * some of them may permit evictions that operators forbade. Every method throws the errors of SQLite.
 */
export class KnownRules {
  readonly #rules: DatabaseSync;
  readonly #records: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(databases: { readonly rules: DatabaseSync; readonly records: DatabaseSync }) {
    this.#rules = databases.rules;
    this.#records = databases.records;
    this.#statements = prepareStatements(databases);
  }

  /** Why rules may be missing, as a sentence. `undefined`: the rules are those that the records know, or newer. */
  lost(): string | undefined {
    // Read the known revision first: the revision only grows.
    const row = this.#statements.known.get();
    if (row === undefined) return undefined;
    const known = parseStored(knownRow, row, 'known revision of the rules');
    const { id, revision } = this.#current();
    const [rules, records] = [this.#rules, this.#records].map((each) =>
      basename(each.location() ?? ':memory:'),
    );
    const check = 'check them (taintward holds, policy get, audit) and set missing ones again';
    if (id !== known.id)
      return `${rules} is not the database of rules that ${records} knows, so policies, stops or holds may be missing: ${check}`;
    const missing = known.revision - revision;
    if (missing <= 0) return undefined;
    const changes = missing === 1 ? 'the last change' : `the last ${missing} changes`;
    return `${rules} lacks ${changes} of policies, stops, holds or the guard: ${check}`;
  }

  /**
   * Makes the records know these rules. Records that know none get rules with a new ID: a copy that was changed elsewhere
   * has the former one.
   */
  adopt(): void {
    if (this.#statements.known.get()) this.note();
    else this.renew();
  }

  /** Makes the records know these rules, unless they know later ones, or those of another database. */
  note(): void {
    this.#statements.note.run(this.#current());
  }

  /**
   * Gives the rules' database a new ID, unlike the one that lacks changes, and makes the records know it. Runs in the
   * caller's transaction of the rules: after a crash in between, the records know another ID, so rules still count as
   * lost.
   */
  renew(): void {
    this.#rules.exec('UPDATE identity SET id = lower(hex(randomblob(16)))');
    this.#statements.replace.run(this.#current());
  }

  #current(): Known {
    return parseStored(knownRow, this.#statements.current.get(), 'revision of the rules');
  }
}

/** Prepared once, because rules are compared with each read of them. */
function prepareStatements({
  rules,
  records,
}: {
  readonly rules: DatabaseSync;
  readonly records: DatabaseSync;
}) {
  const write = (condition = '') =>
    records.prepare(
      `INSERT INTO known_rules (one, id, revision) VALUES (1, :id, :revision)
       ON CONFLICT DO UPDATE SET id = excluded.id, revision = excluded.revision ${condition}`,
    );
  return {
    known: records.prepare('SELECT id, revision FROM known_rules'),
    current: rules.prepare(
      'SELECT id, (SELECT coalesce(sum(version), 0) FROM objects) AS revision FROM identity',
    ),
    note: write('WHERE id = excluded.id AND revision < excluded.revision'),
    replace: write(),
  };
}

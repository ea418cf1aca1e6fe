import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import { parseStored, unreadable } from '#shared/state/stored.ts';
import { inTransaction, orSqliteStoreError } from './sqlite-database.ts';

export const KINDS = {
  node: 'NodeEviction',
  lease: 'Lease',
  rules: 'EvictionRules',
  config: 'ConfigMap',
} as const;

export interface FoundObject {
  readonly resourceVersion: string;
  /** `undefined`: unchanged since the known version. */
  readonly json: string | undefined;
}

const foundSchema = z.object({ version: z.string(), json: z.string().nullable() });
const listedSchema = z.object({ name: z.string(), version: z.string(), json: z.string() });

/** An `id` is never reused, so the version of a removed object never returns. */
const VERSION = "id || '.' || version";

/** The objects of one kind, under the rules of an API server. Every method rejects with, or throws, `StoreError`. */
export class SqliteObjects implements Objects {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #kind: string;
  readonly #work: (() => void) | undefined;
  readonly #statements: ReturnType<typeof prepareStatements>;

  /** `database`: as `openDatabase` opened it. `work`: writes additional data with each write of an object. */
  constructor(database: DatabaseSync, kind: string, work?: () => void) {
    this.#database = database;
    this.#path = database.location() ?? ':memory:';
    this.#kind = kind;
    this.#work = work;
    this.#statements = orSqliteStoreError(this.#path, () => prepareStatements(database));
  }

  /** The same objects, each written together with the data of `work`: both or neither. */
  beside(work: () => void): Objects {
    return new SqliteObjects(this.#database, this.#kind, work);
  }

  async get(name: string): Promise<unknown> {
    return this.read(name);
  }

  async *list(labels: Readonly<Record<string, string>> = {}): AsyncIterable<unknown> {
    for (const object of this.all()) {
      const its = object.metadata.labels ?? {};
      if (Object.entries(labels).every(([key, value]) => its[key] === value)) yield object;
    }
  }

  async create(object: KubernetesObject): Promise<unknown> {
    return this.#stored(object);
  }

  async replace(object: KubernetesObject): Promise<unknown> {
    return this.#stored(object);
  }

  async remove(name: string, resourceVersion: string): Promise<void> {
    this.#run(() => this.#statements.remove.run({ kind: this.#kind, name, found: resourceVersion }));
  }

  read(name: string): KubernetesObject | undefined {
    const found = this.find(name);
    if (!found) return undefined;
    try {
      return withVersion(JSON.parse(found.json ?? ''), found.resourceVersion);
    } catch {
      throw unreadable(`${this.#kind} ${name}`, 'value: is not JSON');
    }
  }

  /** Returns all objects, by name. An object whose text is not JSON has only a name, so its readers reject it. */
  all(): readonly KubernetesObject[] {
    const rows = this.#run(() => this.#statements.all.all({ kind: this.#kind }));
    return rows.map((row) => {
      const { name, version, json } = parseStored(listedSchema, row, `row of a ${this.#kind}`);
      try {
        return withVersion(JSON.parse(json), version);
      } catch {
        return { apiVersion: '', kind: this.#kind, metadata: { name, resourceVersion: version } };
      }
    });
  }

  /** Returns an object and its text. The text is omitted if the version is `known`. */
  find(name: string, known = ''): FoundObject | undefined {
    const row = this.#run(() => this.#statements.find.get({ kind: this.#kind, name, known }));
    return row && this.#found(row);
  }

  /**
   * Creates or replaces the object of that version, with a `summary` for queries. `undefined`: another client was
   * faster.
   */
  write(
    object: KubernetesObject,
    { summary, work }: { readonly summary?: object; readonly work?: () => void } = {},
  ): (FoundObject & { readonly json: string }) | undefined {
    const { resourceVersion: found, ...metadata } = object.metadata;
    const json = JSON.stringify({ ...object, metadata });
    const content = {
      kind: this.#kind,
      name: metadata.name,
      json,
      summary: summary === undefined ? null : JSON.stringify(summary),
    };
    const { create, replace } = this.#statements;
    return this.#run(() =>
      inTransaction(this.#database, 'IMMEDIATE', () => {
        const row = found === undefined ? create.get(content) : replace.get({ ...content, found });
        if (!row) return undefined;
        work?.();
        return { ...this.#found(row), json };
      }),
    );
  }

  #stored(object: KubernetesObject): KubernetesObject | undefined {
    const written = this.write(object, this.#work ? { work: this.#work } : {});
    return written && withVersion(object, written.resourceVersion);
  }

  #found(row: unknown): FoundObject {
    const { version, json } = parseStored(foundSchema, row, `row of a ${this.#kind}`);
    return { resourceVersion: version, json: json ?? undefined };
  }

  #run<T>(work: () => T): T {
    return orSqliteStoreError(this.#path, () => {
      // Without this check, statements of a closed database fail with another message.
      if (!this.#database.isOpen) throw new Error('database is not open');
      return work();
    });
  }
}

const withVersion = (object: KubernetesObject, resourceVersion: string): KubernetesObject => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion },
});

function prepareStatements(database: DatabaseSync) {
  const these = 'kind = :kind AND name = :name';
  return {
    find: database.prepare(
      `SELECT ${VERSION} AS version, iif(${VERSION} = :known, NULL, json) AS json FROM objects WHERE ${these}`,
    ),
    all: database.prepare(
      `SELECT name, ${VERSION} AS version, json FROM objects WHERE kind = :kind ORDER BY name`,
    ),
    create: database.prepare(`
      INSERT INTO objects (kind, name, version, summary, json) VALUES (:kind, :name, 1, :summary, :json)
      ON CONFLICT DO NOTHING RETURNING ${VERSION} AS version, NULL AS json`),
    // A write without a change keeps the version.
    replace: database.prepare(`
      UPDATE objects SET version = version + (json IS NOT :json), summary = :summary, json = :json
      WHERE ${these} AND ${VERSION} = :found RETURNING ${VERSION} AS version, NULL AS json`),
    remove: database.prepare(`DELETE FROM objects WHERE ${these} AND ${VERSION} = :found`),
  };
}

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import * as z from 'zod';
import {
  type ClusterName,
  type NodeName,
  nodeName,
  parseNodeKey,
  podUid,
} from '#shared/eviction/identity.ts';
import {
  entriesOf,
  type GonePod,
  type History,
  type HistoryEntry,
  type HistoryItem,
  type HistoryQuery,
  nodesWithEvictions,
} from '#shared/state/history.ts';
import { endedSchema, notedSchema, parseStored, parseStoredText } from '#shared/state/stored.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { inTransaction, orSqliteStoreError } from './sqlite-database.ts';
import { KINDS, SqliteObjects } from './sqlite-objects.ts';
import { readNodeText } from './sqlite-store.ts';

const text = z.string().min(1);
const row = z.object({
  node: text.transform(nodeName),
  at: z.int(),
  kind: z.enum(['noted', 'ended']),
  json: text,
});
const placeRow = z.object({ at: z.int(), kind: z.string(), id: z.int() });
const nameRow = z.object({ name: text });
const goneRow = z.object({ uid: text.transform(podUid), at: z.int() });

/** Rows of one page, which takes some megabytes at most. */
const PAGE_ROWS = 5_000;

/** History in the embedded store's database, to which another process may write. */
export class SqliteHistory implements History {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #objects: SqliteObjects;
  readonly #nodes: StatementSync;
  readonly #page: StatementSync;

  constructor({ database }: { readonly database: DatabaseSync }) {
    this.#database = database;
    this.#path = database.location() ?? ':memory:';
    this.#objects = new SqliteObjects(database, KINDS.node);
    this.#nodes = database.prepare(`
      SELECT name FROM objects
      WHERE kind = '${KINDS.node}' AND summary ->> '$.ref.cluster' = :cluster
        AND summary ->> '$.ref.node' = coalesce(:node, summary ->> '$.ref.node')`);
    this.#page = database.prepare(`
      SELECT node, at, kind, json, id FROM (
        SELECT node, at, 'noted' AS kind, json, id FROM noted
        WHERE cluster = :cluster AND at BETWEEN :from AND :at AND node = coalesce(:node, node)
        UNION ALL
        SELECT node, ended_at AS at, 'ended' AS kind, json, id FROM ended
        WHERE cluster = :cluster AND ended_at BETWEEN :from AND :at AND node = coalesce(:node, node)
      )
      WHERE at < :at OR kind > :kind OR (kind = :kind AND id < :id)
      ORDER BY at DESC, kind, id DESC LIMIT :most`);
  }

  entries(query: HistoryQuery): AsyncIterable<HistoryEntry> {
    return entriesOf(
      { scheduled: this.#scheduled(query), items: this.#items(query), gone: this.#gone(query) },
      query,
    );
  }

  async noteGone(cluster: ClusterName, pods: readonly GonePod[]): Promise<void> {
    this.#run(() => {
      const note = this.#database.prepare(
        'INSERT INTO gone (cluster, uid, at) VALUES (:cluster, :uid, :at) ON CONFLICT DO NOTHING',
      );
      inTransaction(this.#database, 'IMMEDIATE', () => {
        for (const { uid, at } of pods) note.run({ cluster, uid, at });
      });
    });
  }

  async *#gone({ cluster, from }: HistoryQuery): AsyncIterable<GonePod> {
    const rows = this.#run(() =>
      this.#database
        .prepare('SELECT uid, at FROM gone WHERE cluster = :cluster AND at >= :from')
        .all({ cluster, from }),
    );
    for (const each of rows) yield parseStored(goneRow, each, `row of a gone pod of ${cluster}`);
  }

  nodesEvictedFrom(cluster: ClusterName, from: EpochMs): Promise<ReadonlySet<NodeName>> {
    return nodesWithEvictions(this.#items({ cluster, from }));
  }

  /** Yields scheduled evictions node by node, because they are in the nodes' objects. */
  async *#scheduled({ cluster, node }: HistoryQuery) {
    const names = this.#run(() => this.#nodes.all({ cluster, node: node ?? null }));
    for (const row of names) {
      const { name } = parseStored(nameRow, row, `row of a node of ${cluster}`);
      const found = this.#objects.find(name);
      if (!found) continue;
      const ref = parseNodeKey(name);
      for (const record of readNodeText(ref, found.json ?? '', found.resourceVersion).scheduled) {
        yield { ref, record };
      }
    }
  }

  /**
   * Yields rows one by one: ends of the same time need not be together. Reads by pages: until a statement is read to
   * its end, the connection sees an old snapshot, without a stop that was set meanwhile.
   */
  async *#items({ cluster, node, from }: Omit<HistoryQuery, 'to'>) {
    let before = { at: Number.MAX_SAFE_INTEGER, kind: '', id: 0 };
    while (true) {
      const range = { cluster, node: node ?? null, from, ...before, most: PAGE_ROWS };
      const rows = this.#run(() => this.#page.all(range));
      for (const each of rows) yield itemOf(cluster, each);
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE_ROWS) return;
      before = parseStored(placeRow, last, `row of history of cluster ${cluster}`);
    }
  }

  #run<T>(work: () => T): T {
    return orSqliteStoreError(this.#path, work);
  }
}

function itemOf(cluster: HistoryQuery['cluster'], given: unknown): HistoryItem {
  const { node, at, kind, json } = parseStored(row, given, `row of history of cluster ${cluster}`);
  const what = `history of node ${node} of cluster ${cluster}`;
  const place = { ref: { cluster, node }, at };
  return kind === 'noted'
    ? { ...place, noted: [parseStoredText(notedSchema, json, what)], ended: [] }
    : { ...place, noted: [], ended: [parseStoredText(endedSchema, json, what)] };
}

import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import {
  type ClusterName,
  clusterName,
  type EpochMs,
  type NodeRef,
  nodeName,
  type PodUid,
} from '#shared/eviction/identity.ts';
import type { EvictionRecord, NodeState, Partition } from '#shared/eviction/records.ts';
import { evictionSchema, nodeStateSchema, parseStored, revisionSchema } from '#shared/store/item-schemas.ts';
import { tombstoneTtl } from '#shared/store/retention.ts';
import type { Commit, Outcome, Scope, Store, TaintedNode, Upcoming } from '#shared/store/store.ts';
import { inTransaction, openDatabase, orSqliteStoreError } from './sqlite-database.ts';

/** Moments read at a time by `upcoming`, so that a backlog is never held in memory whole. */
const UPCOMING_PAGE = 500;

const text = z.string().min(1);
const nodeRow = z.object({ revision: revisionSchema, state: text.nullable() });
const recordRow = z.object({ record: text });
const taintedRow = z.object({ node: text.transform(nodeName), state: text });
const upcomingRow = z.object({
  fireAt: z.int(),
  cluster: text.transform(clusterName),
  node: text.transform(nodeName),
});

/** The store of the embedded service, on one SQLite database. One transaction per commit, of any length. */
export class SqliteStore implements Store {
  /** Open for as long as the store is; leases live in it too. */
  readonly database: DatabaseSync;
  readonly #path: string;
  readonly #statements: ReturnType<typeof prepareStatements>;

  /**
   * Opens, or creates, the database at `path`: a file, or `:memory:`. Throws `StoreError`, naming the path and
   * the remedy, when that is impossible.
   */
  constructor({ path }: { readonly path: string }) {
    this.#path = path;
    this.database = openDatabase(path);
    this.#statements = prepareStatements(this.database);
  }

  async load(ref: NodeRef, scope: Scope): Promise<Partition> {
    return this.#transaction('DEFERRED', () => {
      const records = this.#recordRows(ref, scope).map((row) => parseRecord(ref, row));
      return { ref, ...this.#node(ref), evictions: new Map(records.map((record) => [record.uid, record])) };
    });
  }

  #node({ cluster, node }: NodeRef): { readonly revision: number; readonly node: NodeState | undefined } {
    const row = this.#statements.node.get({ cluster, node });
    if (!row) return { revision: 0, node: undefined };
    const { revision, state } = parseStored(nodeRow, row, `row of node ${node} of cluster ${cluster}`);
    return { revision, node: state === null ? undefined : parseState({ cluster, node }, state) };
  }

  #recordRows({ cluster, node }: NodeRef, scope: Scope): readonly unknown[] {
    switch (scope.kind) {
      case 'all':
        return this.#statements.allRecords.all({ cluster, node });
      case 'pods':
        return this.#statements.recordsOf.all({ cluster, node, uids: JSON.stringify(scope.uids) });
      case 'due':
        return this.#statements.dueRecords.all({ cluster, node, now: scope.now });
      default:
        return scope satisfies never;
    }
  }

  async commit(
    ref: NodeRef,
    revision: number,
    change: Commit,
    now: EpochMs,
  ): Promise<'committed' | 'conflict'> {
    return this.#transaction('IMMEDIATE', () => {
      if (this.#node(ref).revision !== revision) return 'conflict';
      if (this.#anyTombstone(ref, change.evictions)) return 'conflict';
      const { cluster, node } = ref;
      const ttl = change.live ? null : tombstoneTtl(now);
      this.#statements.writeRevision.run({ cluster, node, revision: revision + 1, ttl });
      if (change.node) this.#statements.writeState.run({ cluster, node, state: JSON.stringify(change.node) });
      for (const record of change.evictions) {
        this.#statements.writeRecord.run({
          cluster,
          node,
          uid: record.uid,
          record: JSON.stringify(record),
          ttl: record.state === 'scheduled' ? null : tombstoneTtl(now),
        });
      }
      return 'committed';
    });
  }

  /** `settle` takes no lock, so the lock alone does not keep a tombstone from being overwritten. */
  #anyTombstone({ cluster, node }: NodeRef, records: readonly EvictionRecord[]): boolean {
    const uids = JSON.stringify(records.map(({ uid }) => uid));
    return this.#statements.tombstoneOf.get({ cluster, node, uids }) !== undefined;
  }

  async settle(ref: NodeRef, outcomes: readonly Outcome[], now: EpochMs): Promise<ReadonlySet<PodUid>> {
    return this.#transaction('IMMEDIATE', () => {
      const { cluster, node } = ref;
      const ttl = tombstoneTtl(now);
      const changed = outcomes.filter(
        ({ uid, state }) => this.#statements.settle.run({ cluster, node, uid, state, ttl }).changes > 0,
      );
      return new Set(changed.map(({ uid }) => uid));
    });
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    const rows = orSqliteStoreError(this.#path, () => this.#statements.taintedNodes.all({ cluster }));
    for (const row of rows) {
      const { node, state } = parseStored(taintedRow, row, `row of a tainted node of cluster ${cluster}`);
      yield { node, state: parseState({ cluster, node }, state) };
    }
  }

  async *upcoming(): AsyncIterable<Upcoming> {
    let after: z.infer<typeof upcomingRow> | undefined;
    do {
      // Paged by key, not by an open cursor: whoever reads this changes the very rows it reads.
      const { fireAt, cluster, node } = after ?? { fireAt: -1, cluster: '', node: '' };
      const rows = orSqliteStoreError(this.#path, () =>
        this.#statements.upcoming.all({ fireAt, cluster, node, limit: UPCOMING_PAGE }),
      );
      after = undefined;
      for (const row of rows) {
        after = parseStored(upcomingRow, row, 'row of a scheduled eviction');
        yield { ref: { cluster: after.cluster, node: after.node }, fireAt: after.fireAt };
      }
    } while (after);
  }

  /** Removes the tombstones, and the nodes with nothing left to watch, whose time is over: what TTL does in DynamoDB. */
  async purge(now: EpochMs): Promise<void> {
    const nowSeconds = Math.floor(now / 1000);
    this.#transaction('IMMEDIATE', () => {
      this.#statements.purgeRecords.run({ nowSeconds });
      this.#statements.purgeNodes.run({ nowSeconds });
    });
  }

  /** Closes the database, and with it the leases in it. */
  close(): void {
    this.database.close();
  }

  #transaction<T>(kind: 'DEFERRED' | 'IMMEDIATE', work: () => T): T {
    return orSqliteStoreError(this.#path, () => inTransaction(this.database, kind, work));
  }
}

function parseState({ cluster, node }: NodeRef, state: string): NodeState {
  return parseStored(nodeStateSchema, JSON.parse(state), `state of node ${node} of cluster ${cluster}`);
}

function parseRecord({ cluster, node }: NodeRef, row: unknown): EvictionRecord {
  const what = `eviction record of node ${node} of cluster ${cluster}`;
  return parseStored(evictionSchema, JSON.parse(parseStored(recordRow, row, what).record), what);
}

/** Every statement of the embedded store, prepared once. */
function prepareStatements(database: DatabaseSync) {
  return {
    node: database.prepare('SELECT revision, state FROM nodes WHERE cluster = :cluster AND node = :node'),
    allRecords: database.prepare('SELECT record FROM evictions WHERE cluster = :cluster AND node = :node'),
    recordsOf: database.prepare(`
      SELECT record FROM evictions
      WHERE cluster = :cluster AND node = :node AND uid IN (SELECT value FROM json_each(:uids))`),
    dueRecords: database.prepare(`
      SELECT record FROM evictions
      WHERE cluster = :cluster AND node = :node AND state = 'scheduled' AND fire_at <= :now`),
    tombstoneOf: database.prepare(`
      SELECT uid FROM evictions
      WHERE cluster = :cluster AND node = :node AND uid IN (SELECT value FROM json_each(:uids))
        AND state IN ('done', 'gone')`),
    writeRevision: database.prepare(`
      INSERT INTO nodes (cluster, node, revision, ttl) VALUES (:cluster, :node, :revision, :ttl)
      ON CONFLICT DO UPDATE SET revision = excluded.revision, ttl = excluded.ttl`),
    writeState: database.prepare('UPDATE nodes SET state = :state WHERE cluster = :cluster AND node = :node'),
    writeRecord: database.prepare(`
      INSERT INTO evictions (cluster, node, uid, record, ttl) VALUES (:cluster, :node, :uid, :record, :ttl)
      ON CONFLICT DO UPDATE SET record = excluded.record, ttl = excluded.ttl`),
    settle: database.prepare(`
      UPDATE evictions SET record = json_set(record, '$.state', :state), ttl = :ttl
      WHERE cluster = :cluster AND node = :node AND uid = :uid AND state = 'scheduled'`),
    taintedNodes: database.prepare(`
      SELECT node, state FROM nodes
      WHERE cluster = :cluster AND json_array_length(state, '$.taints') > 0 ORDER BY node`),
    upcoming: database.prepare(`
      SELECT DISTINCT fire_at AS fireAt, cluster, node FROM evictions
      WHERE state = 'scheduled' AND (fire_at, cluster, node) > (:fireAt, :cluster, :node)
      ORDER BY fire_at, cluster, node LIMIT :limit`),
    purgeRecords: database.prepare('DELETE FROM evictions WHERE ttl <= :nowSeconds'),
    purgeNodes: database.prepare('DELETE FROM nodes WHERE ttl <= :nowSeconds'),
  };
}

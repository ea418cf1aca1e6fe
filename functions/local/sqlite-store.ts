import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import type { Brake } from '#shared/eviction/brake.ts';
import {
  type ClusterName,
  clusterName,
  type EpochMs,
  type NodeRef,
  nodeName,
  type PodUid,
} from '#shared/eviction/identity.ts';
import type { EndedPod, Ending, NodeState, Partition } from '#shared/eviction/records.ts';
import { type Commit, ENDED_WINDOW_MS, partitionOf, type TaintedNode } from '#shared/store/store.ts';
import {
  endedSchema,
  HISTORY_DAYS,
  historyBefore,
  nodeStateSchema,
  nodeTtl,
  parseStored,
  parseStoredText,
  recordSchema,
  revisionSchema,
} from '#shared/store/stored.ts';
import type { Countdowns, ServiceStore, Standing, Upcoming } from './service-state.ts';
import { inTransaction, openDatabase, orSqliteStoreError } from './sqlite-database.ts';

/** Moments read at a time by `upcoming`, so that a backlog is never held in memory whole. */
const UPCOMING_PAGE = 500;

const text = z.string().min(1);
const nodeRow = z.object({ revision: revisionSchema, state: text.nullable() });
const jsonRow = z.object({ json: text });
const taintedRow = z.object({ node: text.transform(nodeName), state: text });
const refRow = z.object({ cluster: text.transform(clusterName), node: text.transform(nodeName) });
const upcomingRow = z.object({ fireAt: z.int(), ...refRow.shape });
const countRow = z.object({ total: z.int() });

const standingRow = z.object({
  cluster: text.transform(clusterName),
  standing: z.enum([
    'pending',
    'gave-up',
    'observe',
    'paused',
    'stopped',
    'hold',
    'excluded',
    'guard',
    'node-alive',
  ] satisfies ('pending' | 'gave-up' | Brake['kind'])[]),
  evictions: z.int(),
});

/** The store of the embedded service, on one SQLite database. One transaction per commit, of any length. */
export class SqliteStore implements ServiceStore {
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

  async load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition> {
    const { cluster, node } = ref;
    const [all, since] = [{ cluster, node }, now - ENDED_WINDOW_MS];
    const { records, recordsOf, ended, endedOf } = this.#statements;
    return this.#transaction('DEFERRED', () => {
      const some = { ...all, uids: JSON.stringify(only ?? []) };
      const scheduled = only ? recordsOf.all(some) : records.all(all);
      const endings = only ? endedOf.all({ ...some, since }) : ended.all({ ...all, since });
      return partitionOf(
        { ref, ...this.#node(ref) },
        scheduled.map((row) => parseJson(recordSchema, row, ref, 'eviction record')),
        endings.map((row) => parseJson(endedSchema, row, ref, 'ended eviction')),
      );
    });
  }

  #node({ cluster, node }: NodeRef): { readonly revision: number; readonly node: NodeState | undefined } {
    const row = this.#statements.node.get({ cluster, node });
    if (!row) return { revision: 0, node: undefined };
    const { revision, state } = parseStored(nodeRow, row, `row of node ${node} of cluster ${cluster}`);
    return { revision, node: state === null ? undefined : parseState({ cluster, node }, state) };
  }

  async commit(
    ref: NodeRef,
    revision: number,
    change: Commit,
    now: EpochMs,
  ): Promise<'committed' | 'conflict'> {
    return this.#transaction('IMMEDIATE', () => {
      if (this.#node(ref).revision !== revision) return 'conflict';
      const { cluster, node } = ref;
      const ttl = change.live ? null : nodeTtl(now);
      this.#statements.writeRevision.run({ cluster, node, revision: revision + 1, ttl });
      if (change.node) this.#statements.writeState.run({ cluster, node, state: JSON.stringify(change.node) });
      for (const record of change.schedule) {
        const json = JSON.stringify(record);
        this.#statements.writeRecord.run({ cluster, node, uid: record.uid, json });
      }
      for (const note of change.noted ?? []) {
        const json = JSON.stringify(note);
        this.#statements.writeNoted.run({ cluster, node, at: now, json });
      }
      this.#end(ref, change.end, now);
      return 'committed';
    });
  }

  async end(ref: NodeRef, pods: readonly Ending[], now: EpochMs): Promise<void> {
    if (pods.length === 0) return;
    const { cluster, node } = ref;
    // Not worth a sync, for which all else would wait: who was evicted just before a power cut is looked at once more, and found gone.
    this.#unsynced(() =>
      this.#transaction('IMMEDIATE', () => {
        this.#statements.raiseRevision.run({ cluster, node });
        this.#end(ref, pods, now);
      }),
    );
  }

  /** What `work` commits outlives this process, however that ends, but a power cut only once something is committed after it. */
  #unsynced(work: () => void): void {
    const sync = (how: 'NORMAL' | 'FULL') =>
      orSqliteStoreError(this.#path, () => this.database.exec(`PRAGMA synchronous = ${how}`));
    sync('NORMAL');
    try {
      work();
    } finally {
      sync('FULL');
    }
  }

  #end({ cluster, node }: NodeRef, pods: readonly Ending[], endedAt: EpochMs): void {
    for (const pod of pods) {
      const json = JSON.stringify({ ...pod, endedAt } satisfies EndedPod);
      const { uid } = pod;
      this.#statements.writeEnded.run({ cluster, node, uid, endedAt, json });
      this.#statements.deleteRecord.run({ cluster, node, uid });
    }
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    const rows = orSqliteStoreError(this.#path, () => this.#statements.taintedNodes.all({ cluster }));
    for (const row of rows) {
      const { node, state } = parseStored(taintedRow, row, `row of a tainted node of cluster ${cluster}`);
      yield { node, state: parseState({ cluster, node }, state) };
    }
  }

  /** Distinct moments at which scheduled records fall due, soonest first: the timers of this process ended with it. */
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

  /** The countdowns that run: what is held or given up is none of them. Of the soonest, at most `limit`. Throws `StoreError`. */
  async countdowns(limit: number): Promise<Countdowns> {
    return this.#transaction('DEFERRED', () => {
      const { total } = parseStored(countRow, this.#statements.countRunning.get(), 'count of countdowns');
      const soonest = this.#statements.running.all({ limit }).map((row) => {
        const ref: NodeRef = parseStored(refRow, row, 'row of a scheduled eviction');
        return { ref, record: parseJson(recordSchema, row, ref, 'eviction record') };
      });
      return { total, soonest };
    });
  }

  /** How many scheduled evictions of each cluster wait, are held (by what kind of brake), or were given up. Throws `StoreError`. */
  standings(): readonly Standing[] {
    const rows = orSqliteStoreError(this.#path, () => this.#statements.standings.all());
    return rows.map((row) => parseStored(standingRow, row, 'count of scheduled evictions'));
  }

  /**
   * Removes history that is older than `historyDays`, and nodes with nothing left to watch when their time is over: what TTL
   * does in DynamoDB.
   */
  async purge(now: EpochMs, historyDays = HISTORY_DAYS): Promise<void> {
    const nowSeconds = Math.floor(now / 1000);
    const before = historyBefore(now, historyDays);
    this.#transaction('IMMEDIATE', () => {
      this.#statements.purgeEnded.run({ before });
      this.#statements.purgeNoted.run({ before });
      this.#statements.purgeGone.run({ before });
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
  return parseStoredText(nodeStateSchema, state, `state of node ${node} of cluster ${cluster}`);
}

/** Reads a row that holds one pod's JSON. */
function parseJson<T>(schema: z.ZodType<T>, row: unknown, { cluster, node }: NodeRef, what: string): T {
  const of = `${what} of node ${node} of cluster ${cluster}`;
  return parseStoredText(schema, parseStored(jsonRow, row, of).json, of);
}

/** Of a scheduled record: its countdown runs. */
const RUNS = "json ->> 'gaveUpAt' IS NULL AND json ->> 'held' IS NULL";

/** Every statement of the embedded store, prepared once. */
function prepareStatements(database: DatabaseSync) {
  return {
    node: database.prepare('SELECT revision, state FROM nodes WHERE cluster = :cluster AND node = :node'),
    records: database.prepare('SELECT json FROM scheduled WHERE cluster = :cluster AND node = :node'),
    recordsOf: database.prepare(`
      SELECT json FROM scheduled
      WHERE cluster = :cluster AND node = :node AND uid IN (SELECT value FROM json_each(:uids))`),
    ended: database.prepare(`
      SELECT json FROM ended
      WHERE cluster = :cluster AND node = :node AND ended_at >= :since ORDER BY ended_at, id`),
    endedOf: database.prepare(`
      SELECT json FROM ended
      WHERE cluster = :cluster AND node = :node AND ended_at >= :since
        AND uid IN (SELECT value FROM json_each(:uids)) ORDER BY ended_at, id`),
    writeRevision: database.prepare(`
      INSERT INTO nodes (cluster, node, revision, ttl) VALUES (:cluster, :node, :revision, :ttl)
      ON CONFLICT DO UPDATE SET revision = excluded.revision, ttl = excluded.ttl`),
    writeState: database.prepare('UPDATE nodes SET state = :state WHERE cluster = :cluster AND node = :node'),
    raiseRevision: database.prepare(`
      INSERT INTO nodes (cluster, node, revision) VALUES (:cluster, :node, 1)
      ON CONFLICT DO UPDATE SET revision = revision + 1`),
    writeRecord: database.prepare(`
      INSERT INTO scheduled (cluster, node, uid, json) VALUES (:cluster, :node, :uid, :json)
      ON CONFLICT DO UPDATE SET json = excluded.json`),
    deleteRecord: database.prepare(
      'DELETE FROM scheduled WHERE cluster = :cluster AND node = :node AND uid = :uid',
    ),
    writeEnded: database.prepare(`
      INSERT INTO ended (cluster, node, uid, ended_at, json)
      VALUES (:cluster, :node, :uid, :endedAt, :json)`),
    writeNoted: database.prepare(
      'INSERT INTO noted (cluster, node, at, json) VALUES (:cluster, :node, :at, :json)',
    ),
    taintedNodes: database.prepare(`
      SELECT node, state FROM nodes
      WHERE cluster = :cluster AND json_array_length(state, '$.taints') > 0 ORDER BY node`),
    upcoming: database.prepare(`
      SELECT DISTINCT fire_at AS fireAt, cluster, node FROM scheduled
      WHERE (fire_at, cluster, node) > (:fireAt, :cluster, :node)
      ORDER BY fire_at, cluster, node LIMIT :limit`),
    countRunning: database.prepare(`SELECT count(*) AS total FROM scheduled WHERE ${RUNS}`),
    running: database.prepare(`
      SELECT cluster, node, json FROM scheduled WHERE ${RUNS}
      ORDER BY fire_at, cluster, node, uid LIMIT :limit`),
    standings: database.prepare(
      'SELECT cluster, standing, count(*) AS evictions FROM scheduled GROUP BY cluster, standing',
    ),
    purgeEnded: database.prepare('DELETE FROM ended WHERE ended_at <= :before'),
    purgeNoted: database.prepare('DELETE FROM noted WHERE at <= :before'),
    purgeGone: database.prepare('DELETE FROM gone WHERE at <= :before'),
    purgeNodes: database.prepare('DELETE FROM nodes WHERE ttl <= :nowSeconds'),
  };
}

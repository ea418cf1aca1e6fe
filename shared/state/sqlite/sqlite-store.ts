import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import {
  type ClusterName,
  clusterName,
  type NodeRef,
  nodeKey,
  nodeName,
  type PodUid,
} from '#shared/eviction/identity.ts';
import type { EndedPod } from '#shared/eviction/records.ts';
import {
  type KeptNode,
  nothingKept,
  plainNodeEviction,
  readNodeEviction,
} from '#shared/state/objects/node-eviction.ts';
import {
  type HistoryWrite,
  type NodeFigures,
  ObjectStore,
  Remembered,
} from '#shared/state/objects/object-store.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import {
  endedSchema,
  HISTORY_DAYS,
  historyBefore,
  nodeStateSchema,
  parseStored,
  parseStoredText,
} from '#shared/state/stored.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { inTransaction, openDatabase, orSqliteStoreError } from './sqlite-database.ts';
import { KINDS, SqliteObjects } from './sqlite-objects.ts';

/** Maximum of remembered nodes' characters as JSON: some 40 nodes with 50 pods each. */
const REMEMBERED_CHARS = 1_000_000;
const FIGURES_PAGE = 500;

const text = z.string().min(1);
const jsonRow = z.object({ json: text });
const figuresRow = z.object({ name: text, summary: text });
const figuresSchema = z.object({
  ref: z.object({ cluster: text.transform(clusterName), node: text.transform(nodeName) }),
  node: nodeStateSchema.exactOptional(),
  due: z.array(z.int()),
  next: z.int().exactOptional(),
  states: z.record(z.string(), z.int()),
});

/** One SQLite database: an object for each node, and logs. A commit of any length is one transaction. */
export class SqliteStore extends ObjectStore {
  readonly database: DatabaseSync;
  readonly #path: string;
  readonly #objects: SqliteObjects;
  readonly #statements: ReturnType<typeof prepareStatements>;
  /** The content of nodes. A node is read again once another process wrote it. */
  readonly #remembered = new Remembered<KeptNode>(REMEMBERED_CHARS);

  /** Opens, or creates, the database: a file, or `:memory:`. Throws `StoreError`, naming the path and the fix. */
  constructor({ path }: { readonly path: string }) {
    super();
    this.#path = path;
    this.database = openDatabase(path);
    this.#objects = new SqliteObjects(this.database, KINDS.node);
    this.#statements = prepareStatements(this.database);
  }

  protected async read(ref: NodeRef): Promise<KeptNode> {
    const name = nodeKey(ref);
    const known = this.#remembered.get(name);
    const found = this.#objects.find(name, known?.resourceVersion);
    if (!found) return nothingKept(ref, name);
    const { json, resourceVersion } = found;
    const kept = json === undefined ? known : undefined;
    if (kept) return kept;
    return this.#remember(readNodeText(ref, json ?? '', resourceVersion), json ?? '');
  }

  protected known(ref: NodeRef): Promise<KeptNode> {
    return this.read(ref);
  }

  protected async ended(
    { ref }: KeptNode,
    now: EpochMs,
    only?: ReadonlySet<PodUid>,
  ): Promise<readonly EndedPod[]> {
    const { ended, endedOf } = this.#statements;
    const key = { cluster: ref.cluster, node: ref.node, since: now - ENDED_WINDOW_MS };
    const rows = this.#run(() =>
      only ? endedOf.all({ ...key, uids: JSON.stringify([...only]) }) : ended.all(key),
    );
    const what = `ended eviction of node ${ref.node} of cluster ${ref.cluster}`;
    return rows.map((row) => parseStoredText(endedSchema, parseStored(jsonRow, row, what).json, what));
  }

  protected async write(next: KeptNode, since: HistoryWrite, figures: NodeFigures): Promise<boolean> {
    const write = () =>
      this.#objects.write(plainNodeEviction(next), {
        summary: { ...figures, ttl: next.ttl },
        work: () => this.#log(next.ref, since),
      });
    // Not worth a sync, which would delay everything else. After a power failure, a pod that was evicted right before
    // is checked again and found gone.
    const written = since.isFoundAgain ? this.#unsynced(write) : write();
    if (!written) return false;
    const { resourceVersion, json } = written;
    this.#remember({ ...next, resourceVersion }, json);
    return true;
  }

  #log({ cluster, node }: NodeRef, { ended, noted, now }: HistoryWrite): void {
    const { writeEnded, writeNoted } = this.#statements;
    for (const note of noted.flatMap((moment) => moment.noted)) {
      writeNoted.run({ cluster, node, at: now, json: JSON.stringify(note) });
    }
    for (const pod of ended) {
      const { uid, endedAt } = pod;
      writeEnded.run({ cluster, node, uid, endedAt, json: JSON.stringify(pod) });
    }
  }

  /** Without a sync, commits outlive this process, but a power failure only after a later commit syncs them. */
  #unsynced<T>(work: () => T): T {
    const sync = (how: 'NORMAL' | 'FULL') =>
      this.#run(() => this.database.exec(`PRAGMA synchronous = ${how}`));
    sync('NORMAL');
    try {
      return work();
    } finally {
      sync('FULL');
    }
  }

  /** Yields pages by key, not with an open cursor, because the caller changes the rows that it reads. */
  protected async *figures(tainted?: ClusterName): AsyncIterable<NodeFigures> {
    let after = '';
    for (;;) {
      const page = { after, cluster: tainted ?? null, limit: FIGURES_PAGE };
      const rows = this.#run(() => this.#statements.figures.all(page));
      for (const row of rows) {
        const { name, summary } = parseStored(figuresRow, row, 'row of a node');
        const { node, ...figures } = parseStoredText(figuresSchema, summary, `summary of node ${name}`);
        yield { ...figures, node };
        after = name;
      }
      if (rows.length < FIGURES_PAGE) return;
    }
  }

  /** Removes history older than `historyDays`, and nodes without live evictions after their time, as TTL does. */
  async purge(now: EpochMs, historyDays = HISTORY_DAYS): Promise<void> {
    const nowSeconds = Math.floor(now / 1000);
    const before = historyBefore(now, historyDays);
    this.#run(() =>
      inTransaction(this.database, 'IMMEDIATE', () => {
        this.#statements.purgeEnded.run({ before });
        this.#statements.purgeNoted.run({ before });
        this.#statements.purgeGone.run({ before });
        this.#statements.purgeNodes.run({ nowSeconds });
      }),
    );
  }

  close(): void {
    this.database.close();
  }

  #remember(kept: KeptNode, json: string): KeptNode {
    this.#remembered.set(kept.name, kept, () => json.length);
    return kept;
  }

  #run<T>(work: () => T): T {
    return orSqliteStoreError(this.#path, work);
  }
}

/** Parses the stored state of a node. Throws `StoreError`, naming the node, unless every record is readable. */
export function readNodeText({ cluster, node }: NodeRef, json: string, resourceVersion: string): KeptNode {
  const what = `state of node ${node} of cluster ${cluster}`;
  const object = parseStoredText(z.looseObject({ metadata: z.looseObject({}) }), json, what);
  return readNodeEviction({ ...object, metadata: { ...object.metadata, resourceVersion } });
}

function prepareStatements(database: DatabaseSync) {
  const nodes = `kind = '${KINDS.node}'`;
  return {
    ended: database.prepare(`
      SELECT json FROM ended
      WHERE cluster = :cluster AND node = :node AND ended_at >= :since ORDER BY ended_at, id`),
    endedOf: database.prepare(`
      SELECT json FROM ended
      WHERE cluster = :cluster AND node = :node AND ended_at >= :since
        AND uid IN (SELECT value FROM json_each(:uids)) ORDER BY ended_at, id`),
    writeEnded: database.prepare(`
      INSERT INTO ended (cluster, node, uid, ended_at, json)
      VALUES (:cluster, :node, :uid, :endedAt, :json)`),
    writeNoted: database.prepare(
      'INSERT INTO noted (cluster, node, at, json) VALUES (:cluster, :node, :at, :json)',
    ),
    figures: database.prepare(`
      SELECT name, summary FROM objects
      WHERE ${nodes} AND name > :after AND (:cluster IS NULL OR
        summary ->> '$.ref.cluster' = :cluster AND json_array_length(summary, '$.node.taints') > 0)
      ORDER BY name LIMIT :limit`),
    purgeEnded: database.prepare('DELETE FROM ended WHERE ended_at <= :before'),
    purgeNoted: database.prepare('DELETE FROM noted WHERE at <= :before'),
    purgeGone: database.prepare('DELETE FROM gone WHERE at <= :before'),
    purgeNodes: database.prepare(`
      DELETE FROM objects
      WHERE ${nodes} AND summary ->> 'ttl' <= :nowSeconds AND json_array_length(summary, '$.due') = 0`),
  };
}

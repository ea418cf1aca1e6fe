import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { type Scenario, takingTurns } from '#test/bench/scenario.ts';
import { aCluster, aNode, anEnding, aRef, NOW, someRecords } from '#test/contracts/partition-builders.ts';

const RUNS = 5;
const NODES = 200;
const SHORT_NODES = 2;
const PODS_PER_NODE = 50;

/** What a store did in a second. */
interface Rates {
  readonly scheduled: number;
  readonly read: number;
  readonly ended: number;
}

const WHAT = {
  scheduled: 'evictions scheduled',
  read: 'evictions read',
  ended: 'evictions ended',
} as const;

/** The store of one process, beside what it stands on. */
export const stores: Scenario = {
  about: `nodes of ${PODS_PER_NODE} pods: scheduled, read and ended, one node after the other`,
  async run(tell, { runs = RUNS, short }) {
    const nodes = short ? SHORT_NODES : NODES;
    const told = (name: string, peer: string, by: Readonly<Record<'ours' | 'peer', readonly Rates[]>>) => {
      for (const key of ['scheduled', 'read', 'ended'] as const) {
        tell({
          ...{ what: `${name}: ${WHAT[key]}`, unit: 'pods/s' },
          ours: by.ours.map((rates) => Math.round(rates[key])),
          peer: { name: peer, values: by.peer.map((rates) => Math.round(rates[key])) },
        });
      }
    };
    for (const [name, inFile] of [
      ['SQLite in a file', true],
      ['SQLite in memory', false],
    ] as const) {
      told(
        name,
        'bare node:sqlite',
        await takingTurns(short ? 1 : runs, {
          ours: () => withPath(inFile, (path) => sqlite(path, nodes)),
          peer: () => withPath(inFile, (path) => bareSqlite(path, nodes)),
        }),
      );
    }
  },
};

async function withPath<T>(inFile: boolean, use: (path: string) => T | Promise<T>): Promise<T> {
  if (!inFile) return use(':memory:');
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
  try {
    return await use(join(dir, 'taintward.db'));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

async function sqlite(path: string, nodes: number): Promise<Rates> {
  const store = new SqliteStore({ path });
  try {
    return await ratesOf(store, nodes);
  } finally {
    store.close();
  }
}

async function ratesOf(store: SqliteStore, nodes: number): Promise<Rates> {
  const cluster = aCluster();
  const work = Array.from({ length: nodes }, (_, index) => ({
    ref: aRef(cluster, `node-${index}`),
    records: someRecords(PODS_PER_NODE),
  }));
  const scheduled = await inASecond(work, async ({ ref, records }) => {
    const { revision } = await store.load(ref, NOW);
    await store.commit(ref, revision, { node: aNode(), schedule: records, end: [], live: true }, NOW);
  });
  const read = await inASecond(work, async ({ ref }) => {
    await store.load(ref, NOW);
  });
  const ended = await inASecond(work, async ({ ref, records }) => {
    await store.end(
      ref,
      records.map((record) => anEnding(record)),
      NOW,
    );
  });
  return { scheduled, read, ended };
}

/** The rows that the store writes, as plain statements: no lock, no schema, no history. */
function bareSqlite(path: string, nodes: number): Rates {
  const database = new DatabaseSync(path);
  try {
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      CREATE TABLE scheduled (node TEXT, uid TEXT, json TEXT, PRIMARY KEY (node, uid)) STRICT, WITHOUT ROWID;
    `);
    const put = database.prepare('INSERT INTO scheduled VALUES (?, ?, ?)');
    const all = database.prepare('SELECT json FROM scheduled WHERE node = ?');
    const remove = database.prepare('DELETE FROM scheduled WHERE node = ? AND uid = ?');
    const work = Array.from({ length: nodes }, (_, index) => ({
      node: `node-${index}`,
      records: someRecords(PODS_PER_NODE),
    }));
    const each =
      (perform: (node: string, record: EvictionRecord) => void) => (item: (typeof work)[number]) => {
        database.exec('BEGIN IMMEDIATE');
        for (const record of item.records) perform(item.node, record);
        database.exec('COMMIT');
      };
    const scheduled = rateOf(
      work,
      each((node, record) => put.run(node, record.uid, JSON.stringify(record))),
    );
    const read = rateOf(work, ({ node }) => all.all(node).map(({ json }) => JSON.parse(String(json))));
    // As the store has it: that a pod went is not synced.
    database.exec('PRAGMA synchronous = NORMAL');
    const ended = rateOf(
      work,
      each((node, record) => remove.run(node, record.uid)),
    );
    return { scheduled, read, ended };
  } finally {
    database.close();
  }
}

async function inASecond<T>(work: readonly T[], perform: (item: T) => Promise<void>): Promise<number> {
  const beganAt = performance.now();
  for (const item of work) await perform(item);
  return (work.length * PODS_PER_NODE * 1000) / (performance.now() - beganAt);
}

function rateOf<T>(work: readonly T[], perform: (item: T) => unknown): number {
  const beganAt = performance.now();
  for (const item of work) perform(item);
  return (work.length * PODS_PER_NODE * 1000) / (performance.now() - beganAt);
}

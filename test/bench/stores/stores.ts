import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { type Scenario, takingTurns } from '#test/bench/scenario.ts';
import { aCluster, aNode, anEnding, aRef, NOW, someRecords } from '#test/contracts/partition-builders.ts';

const RUNS = 5;
const NODES = 200;
const SHORT_NODES = 2;
const PODS_PER_NODE = 50;

/** The operations of a store per second. */
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

/** A start with this many pending evictions reads all of their deadlines. */
const SCHEDULED = 150_000;

/** Measures the store of one process, beside plain SQLite. */
export const stores: Scenario = {
  about: `nodes of ${PODS_PER_NODE} pods: scheduled, read and ended, one node after the other; and a start with many`,
  async run(report, { runs = RUNS, short }) {
    const nodes = short ? SHORT_NODES : NODES;
    const rates = await takingTurns(short ? 1 : runs, {
      ours: () => withPath((path) => sqlite(path, nodes)),
      peer: () => withPath((path) => bareSqlite(path, nodes)),
    });
    for (const key of ['scheduled', 'read', 'ended'] as const) {
      report({
        what: WHAT[key],
        unit: 'pods/s',
        ours: rates.ours.map((each) => Math.round(each[key])),
        peer: { name: 'bare node:sqlite', values: rates.peer.map((each) => Math.round(each[key])) },
      });
    }
    const stored = short ? SHORT_NODES * PODS_PER_NODE : SCHEDULED;
    const seconds = await withPath((path) => starts(path, stored, short ? 1 : runs));
    report({
      what: `CPU of a start with ${stored.toLocaleString('en-US')} evictions`,
      unit: 's',
      ours: seconds,
    });
  },
};

async function withPath<T>(use: (path: string) => T | Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
  try {
    return await use(join(dir, 'taintward.db'));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Returns the CPU seconds of each of `runs` starts with `standing` pending evictions at different deadlines. */
async function starts(path: string, stored: number, runs: number): Promise<readonly number[]> {
  const before = new SqliteStore({ path });
  // The benchmark needs no durability against a power failure.
  before.database.exec('PRAGMA synchronous = OFF');
  const cluster = aCluster();
  for (let node = 0; node < stored / PODS_PER_NODE; node++) {
    const schedule = someRecords(PODS_PER_NODE).map((record, pod) => ({
      ...record,
      dueAt: NOW + node * PODS_PER_NODE + pod,
    }));
    await before.commit(
      aRef(cluster, `node-${node}`),
      0,
      { node: aNode(), schedule, end: [], live: true },
      NOW,
    );
  }
  before.close();
  const seconds: number[] = [];
  for (let run = 0; run < runs; run++) {
    const begun = process.cpuUsage();
    const store = new SqliteStore({ path });
    const moments = await Array.fromAsync(store.upcoming());
    const { user, system } = process.cpuUsage(begun);
    store.close();
    if (moments.length !== stored) throw new Error(`${moments.length} moments were found`);
    seconds.push((user + system) / 1e6);
  }
  return seconds;
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

/** Writes the store's rows with plain statements: no lock, no schema, no history. */
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
    const perRecord =
      (perform: (node: string, record: EvictionRecord) => void) => (item: (typeof work)[number]) => {
        database.exec('BEGIN IMMEDIATE');
        for (const record of item.records) perform(item.node, record);
        database.exec('COMMIT');
      };
    const scheduled = rateOf(
      work,
      perRecord((node, record) => put.run(node, record.uid, JSON.stringify(record))),
    );
    const read = rateOf(work, ({ node }) => all.all(node).map(({ json }) => JSON.parse(String(json))));
    // The store does not sync the end of a record either.
    database.exec('PRAGMA synchronous = NORMAL');
    const ended = rateOf(
      work,
      perRecord((node, record) => remove.run(node, record.uid)),
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

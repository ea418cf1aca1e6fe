import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { historyContract } from '#test/contracts/history-contract.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';

historyContract('SqliteHistory', async () => {
  const store = new SqliteStore({ path: ':memory:' });
  const history = new SqliteHistory({ database: store.database });
  return { store, history, notes: history, close: async () => store.close() };
});

historyContract('SqliteHistory of a file that another connection writes', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'history-'));
  const path = join(directory, 'store.sqlite');
  const store = new SqliteStore({ path });
  const database = openDatabase(path);
  const close = async () => {
    database.close();
    store.close();
    rmSync(directory, { recursive: true });
  };
  const notes = new SqliteHistory({ database: store.database });
  return { store, history: new SqliteHistory({ database }), notes, close };
});

test('removes history after its retention', async () => {
  const store = new SqliteStore({ path: ':memory:' });
  const history = new SqliteHistory({ database: store.database });
  const ref = aRef();
  const record = aRecord({ startedAt: NOW });
  const { uid, namespace, name, dueAt, causes } = record;
  const noted = [
    { uid, namespace, name, dueAt, causes, event: 'would-evict', by: { kind: 'observe' } } as const,
  ];
  await store.commit(ref, 0, { node: aNode(), schedule: [record], noted, end: [], live: true }, NOW);
  await store.end(ref, [anEnding()], NOW);
  const left = async (now: number, days = HISTORY_DAYS) => {
    await store.purge(now, days);
    const found = history.entries({ cluster: ref.cluster, from: 0, to: now });
    return (await Array.fromAsync(found)).map(({ event }) => event).sort();
  };
  const over = NOW + HISTORY_DAYS * 24 * 3_600_000;
  assert.deepEqual(await left(over - 1_000), ['evicted', 'scheduled', 'scheduled', 'would-evict']);
  assert.deepEqual(await left(over, HISTORY_DAYS + 1), ['evicted', 'scheduled', 'scheduled', 'would-evict']);
  assert.deepEqual(await left(over), ['scheduled']);
  store.close();
});

test('sees later writes on the same and other connections after a partial read', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'history-'));
  const path = join(directory, 'store.sqlite');
  const store = new SqliteStore({ path });
  const database = openDatabase(path);
  t.after(() => {
    database.close();
    store.close();
    rmSync(directory, { recursive: true });
  });
  const ref = aRef();
  await store.end(ref, [anEnding(), anEnding(aRecord({ uid: podUid('another') }))], NOW);
  const history = new SqliteHistory({ database });
  for await (const _entry of history.entries({ cluster: ref.cluster, from: 0, to: NOW + 1 })) break;
  await store.end(ref, [anEnding(aRecord({ uid: podUid('later') }))], NOW);
  assert.deepEqual(database.prepare('SELECT count(*) AS rows FROM ended').get()?.['rows'], 3);
});

test('reads a history of several pages completely, even with equal times', async () => {
  const store = new SqliteStore({ path: ':memory:' });
  const history = new SqliteHistory({ database: store.database });
  const ref = aRef();
  for (const at of [NOW, NOW + 1_000]) {
    const endings = Array.from({ length: 3_100 }, (_, index) =>
      anEnding(aRecord({ uid: podUid(`u${at}-${index}`) })),
    );
    await store.end(ref, endings, at);
  }
  const uids = new Set<string>();
  let entries = 0;
  for await (const { uid, event } of history.entries({ cluster: ref.cluster, from: 0, to: NOW + 2_000 })) {
    if (event === 'scheduled') continue;
    uids.add(uid);
    entries += 1;
  }
  assert.deepEqual([entries, uids.size], [6_200, 6_200]);
  store.close();
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logCountdowns } from '#functions/service/start-report.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { aNode, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

/** Returns the log of a store with these records, each on its own node. */
async function loggedOf(...records: readonly EvictionRecord[]): Promise<readonly string[]> {
  const store = new SqliteStore({ path: ':memory:' });
  for (const [index, record] of records.entries()) {
    const ref = aRef(undefined, `node-${index}`);
    await store.commit(ref, 0, { node: aNode(), schedule: [record], end: [], live: true }, NOW);
  }
  const log = recordingLog();
  await logCountdowns(store, log);
  store.close();
  return log.lines.map(({ event, fields: { node, pod, more } }) => `${event} ${more ?? `${node} ${pod}`}`);
}

test('logs nothing without pending evictions', async () => {
  assert.deepEqual(await loggedOf(), []);
});

test('logs pending evictions, earliest deadline first', async () => {
  const [late, soon] = [aRecord({ name: 'late', dueAt: NOW + 2 }), aRecord({ name: 'soon', dueAt: NOW + 1 })];
  assert.deepEqual(await loggedOf(late, soon), [
    'eviction.loaded node-1 soon',
    'eviction.loaded node-0 late',
  ]);
});

test('logs the first twenty evictions and the number of the others', async () => {
  const records = Array.from({ length: 23 }, (_, index) =>
    aRecord({ name: `web-${index}`, dueAt: NOW + index }),
  );
  const logged = await loggedOf(...records);
  assert.equal(logged.length, 21);
  assert.deepEqual(logged.slice(-2), ['eviction.loaded node-19 web-19', 'evictions.loaded 3']);
});

test('omits failed and held evictions', async () => {
  const gaveUp = aRecord({ gaveUpAt: NOW });
  const held = aRecord({ held: { by: { kind: 'observe' }, since: NOW } });
  assert.deepEqual(await loggedOf(gaveUp, held), []);
});

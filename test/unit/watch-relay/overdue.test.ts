import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { longestOverdueMs } from '#functions/watch-relay/overdue.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import {
  after,
  at,
  nodeDelta,
  planned,
  pod,
  recordIn,
  ref,
  taint,
  tolerating,
} from '#test/unit/eviction/builders.ts';

/** A store with one pod that is due after a minute on `n1` (taint `a`), and one after ten seconds on `n2` (taint `b`). */
async function stored(fields: object = {}): Promise<SqliteStore> {
  const store = new SqliteStore({ path: ':memory:' });
  const other = pod('u2', { tolerations: [tolerating('b', 10)] });
  for (const [node, delta] of [
    ['n1', nodeDelta(1)],
    ['n2', nodeDelta(1, { taints: [taint('b')], pods: [other] })],
  ] as const) {
    const partition = after(delta);
    const { node: state } = partition;
    assert.ok(state && planned(partition, delta));
    const schedule = [...partition.scheduled.values()].map((record) => ({ ...record, ...fields }));
    const change = { node: state, schedule, end: [], live: true };
    await store.commit({ cluster: ref.cluster, node: nodeName(node) }, 0, change, at(1));
  }
  return store;
}

test('what is overdue is measured from the deadline that passed first, on nodes with these taints', async () => {
  const store = await stored();
  const overdue = (keys: readonly string[], second: number) =>
    longestOverdueMs(store, ref.cluster, keys, at(second));
  assert.equal(await overdue(['a'], 60), 0);
  assert.equal(await overdue(['a'], 75), 15_000);
  assert.equal(await overdue(['a', 'b'], 75), 65_000);
  assert.equal(await overdue(['c'], 75), 0);
});

test('what was given up is not overdue', async () => {
  assert.ok(recordIn(after(nodeDelta(1))));
  const store = await stored({ gaveUpAt: at(70) });
  assert.equal(await longestOverdueMs(store, ref.cluster, ['a', 'b'], at(75)), 0);
});

test('what failed is overdue from its deadline on, however late its node is tried again', async () => {
  const store = await stored({ failure: { since: at(60), error: 'no' } });
  const n1 = { cluster: ref.cluster, node: nodeName('n1') };
  const { node, revision } = await store.load(n1, at(61));
  assert.ok(node);
  const retry = { attempts: 9, since: at(60), nextTryAt: at(900), error: 'no', everything: true };
  const change = { node: { ...node, retry }, schedule: [], end: [], live: true };
  assert.equal(await store.commit(n1, revision, change, at(61)), 'committed');
  assert.equal(await longestOverdueMs(store, ref.cluster, ['a'], at(75)), 15_000);
});

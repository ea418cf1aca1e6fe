import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reportingStore } from '#shared/engine/evict/reporting-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { ScriptedStore } from '#test/world/scripted-store.ts';

test('reports each write of a cluster, and each that failed, and no reads', async () => {
  const [ref, reported, inner] = [aRef(), [] as unknown[], new ScriptedStore()];
  const store = reportingStore(inner, (...report) => reported.push(report));
  const record = aRecord();
  const change = { node: aNode(), schedule: [record], end: [], live: true };
  assert.equal(await store.commit(ref, 0, change, NOW), 'committed');
  assert.equal(await store.commit(ref, 0, change, NOW), 'conflict');
  await store.end(ref, [anEnding(record)], NOW);
  const error = new StoreError('the disk is full');
  inner.end = () => Promise.reject(error);
  await assert.rejects(store.end(ref, [anEnding(record)], NOW), error);
  const { cluster } = ref;
  assert.deepEqual(reported, [[cluster], [cluster], [cluster], [cluster, error]]);
  assert.deepEqual([...(await store.load(ref, NOW)).ended.keys()], [record.uid]);
  assert.deepEqual([...(await store.load(ref, NOW, [])).ended.keys()], []);
  assert.deepEqual(
    (await Array.fromAsync(store.taintedNodes(cluster))).map(({ node }) => node),
    [ref.node],
  );
  assert.equal(reported.length, 4);
});

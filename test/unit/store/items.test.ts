import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { fromItem } from '#shared/store/attribute-values.ts';
import { DUE_SHARDS, dueKey, evictionItem, parseDueItem, parseEvictionItem } from '#shared/store/items.ts';
import { scheduledTtl, tombstoneTtl } from '#shared/store/retention.ts';
import { StoreError } from '#shared/store/store.ts';
import { aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';

const moment = fc.integer({ min: 0, max: 8.64e15 });
const name = fc.string({ minLength: 1 }).filter((text) => !text.includes('#'));
const ref = fc.record(
  { cluster: name.map(clusterName), node: name.map(nodeName) },
  { noNullPrototype: true },
);

describe('items of scheduled records', () => {
  test('the index key gives back the node and the moment', () => {
    fc.assert(
      fc.property(ref, moment, (node, fireAt) => {
        const found = parseDueItem(evictionItem(node, aRecord({ fireAt }), NOW));
        assert.deepEqual({ ref: found.ref, fireAt: found.fireAt }, { ref: node, fireAt });
      }),
    );
  });

  test('index keys sort as their moments do', () => {
    const node = aRef();
    const keyOf = (fireAt: number) => parseDueItem(evictionItem(node, aRecord({ fireAt }), NOW)).sortKey;
    fc.assert(fc.property(moment, moment, (a, b) => assert.equal(keyOf(a) < keyOf(b), a < b)));
  });

  test('all records of a node are in one shard, and nodes are spread over all shards', () => {
    const shardOf = (node: string) =>
      fromItem(evictionItem(aRef(clusterName('c'), node), aRecord(), NOW))['duePk'];
    const nodes = Array.from({ length: 500 }, (_, index) => `node-${index}`);
    for (const node of nodes) assert.equal(shardOf(node), shardOf(node));
    const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => dueKey(shard));
    assert.deepEqual(new Set(nodes.map(shardOf)), new Set(shards));
  });

  test('an item gives back its record', () => {
    const record = aRecord();
    assert.deepEqual(parseEvictionItem(evictionItem(aRef(), record, NOW)), record);
  });

  test('an item of an unknown state is refused, naming it', () => {
    const item = { ...evictionItem(aRef(clusterName('c'), 'n'), aRecord(), NOW), state: { S: 'held' } };
    assert.throws(
      () => parseEvictionItem(item),
      (error) => {
        assert.ok(error instanceof StoreError);
        assert.match(error.message, /^The stored item EVICTION#\S+ of c#n cannot be read \(state: /);
        return true;
      },
    );
  });
});

describe('times to live', () => {
  test('of a record that is written when it is overdue already runs from now', () => {
    assert.equal(scheduledTtl(NOW - 7_200_000, NOW), scheduledTtl(NOW, NOW));
  });

  test('are whole seconds, never before the time they stand for, and a date to whoever reads them', () => {
    fc.assert(
      fc.property(moment, (at) => {
        for (const [ttl, seconds] of [
          [scheduledTtl(at, 0), 3600],
          [tombstoneTtl(at), 7 * 24 * 3600],
        ] as const) {
          assert.ok(Number.isInteger(ttl));
          assert.ok(!Number.isNaN(new Date(ttl * 1000).getTime()));
          assert.ok(ttl * 1000 >= Math.min(at + seconds * 1000, 8.64e15));
          assert.ok(ttl * 1000 < at + seconds * 1000 + 1000);
        }
      }),
    );
  });
});

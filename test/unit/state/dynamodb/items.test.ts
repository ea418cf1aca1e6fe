import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { clusterName, nodeName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { fromAttributes, type Item, toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import {
  changedItem,
  changedSince,
  endedItem,
  endedSince,
  goneAttributes,
  goneSince,
  historySince,
  momentOfHistory,
  parseChangedItem,
  parseEndedItem,
  parseGoneItem,
} from '#shared/state/dynamodb/history-items.ts';
import {
  nodeAttributes,
  parseScheduledItem,
  refOfItem,
  scheduledItem,
  scheduledKey,
  taintedKeys,
} from '#shared/state/dynamodb/items.ts';
import { historyTtl, nodeTtl, scheduledTtl } from '#shared/state/stored.ts';
import {
  aNode,
  anEnding,
  aReason,
  aRecord,
  aRef,
  NOW,
  someRecords,
} from '#test/contracts/partition-builders.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { itemBytes } from './item-bytes.ts';

const moment = fc.integer({ min: 0, max: 8.64e15 });
const name = fc.string({ minLength: 1 }).filter((text) => !text.includes('#'));

/** Returns an item as the table returns it. */
const stored = (item: Item): Item => fromAttributes(toAttributes(item));

/** Names as on EKS. */
const ORDINARY = aRef(
  clusterName('arn:aws:eks:eu-west-1:123456789012:cluster/production-1'),
  'ip-10-0-112-234.eu-west-1.compute.internal',
);
const AT_NOW = { ref: ORDINARY, at: NOW, pass: 'pass', days: 7 };
const ordinaryRecord = (index: number) =>
  aRecord({
    name: `payments-api-5d9c7b7f6b-${String(index).padStart(5, 'x')}`,
    namespace: `team-${index % 10}-production`,
    owner: { kind: 'ReplicaSet', name: 'payments-api-5d9c7b7f6b' },
    version: { epoch: 1_795_000_000, sequence: 123_456 },
  });

describe('a scheduled record', () => {
  test('reads back unchanged', () => {
    const record = ordinaryRecord(1);
    const item = scheduledItem(ORDINARY, record, NOW);
    assert.deepEqual(parseScheduledItem(stored(item)), record);
    assert.deepEqual(refOfItem(item), ORDINARY);
  });

  test('uses one write unit with ordinary names', () => {
    const bytes = itemBytes(toAttributes(scheduledItem(ORDINARY, ordinaryRecord(1), NOW)));
    assert.ok(bytes <= 700, `${bytes} bytes`);
  });

  test("is rejected if it can't be read, with its item and field", () => {
    const item = { ...scheduledItem(aRef(clusterName('c'), 'n'), aRecord(), NOW), dueAt: 'tomorrow' };
    assert.throws(() => parseScheduledItem(item), {
      name: 'StoreError',
      message: /^The stored item SCHEDULED#\S+ of c#n cannot be read \(dueAt: /,
    });
  });
});

describe('ended evictions', () => {
  test('read back unchanged, with shared and individual fields of the pods', () => {
    const pods = [
      anEnding(ordinaryRecord(1), { delayMs: 0 }),
      anEnding(ordinaryRecord(2), { outcome: 'canceled', cancelReason: 'pod-gone' }),
      anEnding(aRecord({ causes: [aReason('b'), aReason('c', 'd')] }), { outcome: 'failed', error: 'no' }),
      anEnding(aRecord({ causes: [] })),
    ];
    const item = endedItem(AT_NOW, pods);
    assert.deepEqual(
      parseEndedItem(stored(item)),
      pods.map((pod) => ({ ...pod, endedAt: NOW })),
    );
    assert.deepEqual(refOfItem(item), ORDINARY);
  });

  test('use about 180 bytes per pod, and less than 20 KB for a full node of 110 pods', () => {
    const pods = Array.from({ length: 110 }, (_, index) => anEnding(ordinaryRecord(index), { delayMs: 123 }));
    const bytes = itemBytes(toAttributes(endedItem(AT_NOW, pods)));
    assert.ok(bytes / pods.length < 180, `${bytes / pods.length} bytes a pod`);
  });

  test("are rejected if they can't be read, with their item and field", () => {
    const ref = aRef(clusterName('c'), 'n');
    const item = stored(endedItem({ ...AT_NOW, ref }, [anEnding()]));
    for (const [spoilt, field] of [
      [{ ...item, versions: [] }, 'version'],
      [{ ...item, pods: [{ ...(item['pods'] as object[])[0], outcome: 'vanished' }] }, 'outcome'],
      [{ ...item, pods: 'none' }, 'pods'],
    ] as const) {
      assert.throws(() => parseEndedItem(spoilt), {
        name: 'StoreError',
        message: new RegExp(`^The stored item ENDED#\\S+ of c#n cannot be read \\(${field}: `),
      });
    }
  });

  test('are sorted by time, before scheduled records', () => {
    const key = (at: number) => String(endedItem({ ...AT_NOW, at }, [])['sk']);
    fc.assert(
      fc.property(moment, moment, (a, b) => {
        assert.equal(key(a) < key(b), a < b);
        assert.equal(key(a) >= endedSince(b), a >= b);
        assert.ok(key(a) < scheduledKey(ORDINARY, podUid('0')).sk);
      }),
    );
  });
});

describe('changes of scheduled evictions', () => {
  const noted = (index: number): Noted => {
    const { uid, namespace, name, dueAt, causes } = ordinaryRecord(index);
    return { uid, namespace, name, dueAt, causes, event: 'would-evict', by: { kind: 'observe' } };
  };

  test('read back unchanged, with shared and individual fields of the pods', () => {
    const { uid, namespace, name, dueAt, causes } = aRecord({ causes: [] });
    const other = { uid, namespace, name, dueAt, causes };
    const gate = { kind: 'guard', scope: 'zone', trippedAt: NOW, revision: 1, guardRevision: 1 } as const;
    const notes: readonly Noted[] = [
      noted(1),
      { ...noted(2), event: 'held', by: gate },
      { ...other, event: 'released', by: gate },
      { ...other, event: 'failed', error: 'no' },
      { ...other, event: 'rescheduled', from: { dueAt: NOW, causes: [aReason('b')] } },
    ];
    const item = changedItem(AT_NOW, notes);
    assert.deepEqual(parseChangedItem(stored(item)), notes);
    assert.deepEqual([refOfItem(item), momentOfHistory(item)], [ORDINARY, NOW]);
  });

  test('use less than 150 bytes per pod', () => {
    const notes = Array.from({ length: 50 }, (_, index) => noted(index));
    const bytes = itemBytes(toAttributes(changedItem(AT_NOW, notes)));
    assert.ok(bytes / notes.length < 150, `${bytes / notes.length} bytes a pod`);
  });

  test('are sorted before the items that a load reads, and are in the index like ended evictions', () => {
    const [changed, ended] = [changedItem(AT_NOW, [noted(1)]), endedItem(AT_NOW, [anEnding()])];
    assert.ok(String(changed['sk']) < endedSince(0));
    for (const field of ['clusterKey', 'clusterSort', 'ttl']) assert.equal(changed[field], ended[field]);
  });

  test("are rejected if they can't be read, with their item and field", () => {
    const item = stored(changedItem({ ...AT_NOW, ref: aRef(clusterName('c'), 'n') }, [noted(1)]));
    for (const [spoilt, field] of [
      [{ ...item, gates: [] }, 'by'],
      [{ ...item, pods: [{ event: 'vanished' }] }, 'event'],
    ] as const) {
      assert.throws(() => parseChangedItem(spoilt), {
        name: 'StoreError',
        message: new RegExp(`^The stored item CHANGED#\\S+ of c#n cannot be read \\(${field}: `),
      });
    }
  });
});

describe('removal times of pods', () => {
  /** The UID of a static pod's mirror. */
  const HASH = fc.uuid().map((uuid) => uuid.replaceAll('-', ''));
  const goneItem = (pods: readonly { readonly uid: PodUid; readonly at: number }[]): Item => {
    const last = Math.max(...pods.map(({ at }) => at));
    return { pk: 'LEASE#prod', sk: `${goneSince(last)}#pass`, ...goneAttributes(last, pods, 7) };
  };

  test('read back unchanged, whatever the format of the UIDs', () => {
    const uid = fc.oneof(fc.uuid(), name, HASH).map(podUid);
    const pods = fc.uniqueArray(
      fc.record({ uid, at: fc.integer({ min: NOW, max: NOW + 2_000 }) }, { noNullPrototype: true }),
      {
        minLength: 1,
        selector: (pod) => pod.uid,
      },
    );
    fc.assert(
      fc.property(pods, (given) => {
        const inOrder = (some: typeof given) => some.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));
        assert.deepEqual(inOrder([...parseGoneItem(stored(goneItem(given)))]), inOrder(given));
      }),
    );
  });

  test('need two writes for 50 pods', () => {
    const pods = someRecords(50).map(({ uid }, index) => ({ uid, at: NOW + 40 * index }));
    assert.ok(itemBytes(toAttributes(goneItem(pods))) <= 2_048);
  });

  test('are written only for pods', async () => {
    const fake = new FakeDynamoDb({ now: () => NOW });
    const client = fakeClient(async (command) => fake.perform(command));
    const history = new DynamoDbHistory(new DynamoDbTable({ client, tableName: 'taintward' }));
    await history.noteGone(clusterName('prod'), []);
    assert.deepEqual([...fake.items()], []);
  });
});

describe('index keys', () => {
  const keysOf = (node: string) => {
    const ref = aRef(clusterName('c'), node);
    return [nodeAttributes(ref, aNode()), endedItem({ ...AT_NOW, ref }, [])].map((item) =>
      String(item['clusterKey']),
    );
  };

  test('put a node and its ended evictions in the same shard, and nodes in all shards', () => {
    const keys = Array.from({ length: 500 }, (_, index) => keysOf(`node-${index}`));
    for (const [tainted = '', ended = ''] of keys) {
      assert.equal(tainted.replace('TAINTED', ''), ended.replace('HISTORY', ''));
    }
    assert.deepEqual(new Set(keys.map(([tainted]) => tainted)), new Set(taintedKeys(clusterName('c'))));
  });

  test('sort ended evictions by time', () => {
    const item = endedItem(
      { ...AT_NOW, ref: aRef(clusterName('c'), 'n') },
      someRecords(1).map((record) => anEnding(record)),
    );
    assert.equal(item['clusterSort'], `${String(NOW).padStart(16, '0')}#n#pass`);
  });

  test('omit scheduled evictions and untainted nodes', () => {
    const ref = aRef();
    assert.equal('clusterKey' in scheduledItem(ref, aRecord(), NOW), false);
    assert.equal(nodeAttributes(ref, aNode({ taints: [] }))['clusterKey'], undefined);
  });
});

test('the partition key contains cluster and node', () => {
  fc.assert(
    fc.property(name, name, (cluster, node) => {
      const ref = { cluster: clusterName(cluster), node: nodeName(node) };
      assert.deepEqual(refOfItem({ ...scheduledKey(ref, podUid('u')) }), ref);
    }),
  );
});

test('a range of history begins at its time, and of an earlier time than any at 1970', () => {
  for (const [moment, digits] of [
    [NOW, `000${NOW}`],
    [-1, '0'.repeat(16)],
  ] as const)
    assert.deepEqual(
      [historySince(moment), changedSince(moment), endedSince(moment), goneSince(moment)],
      [digits, `CHANGED#${digits}`, `ENDED#${digits}`, `GONE#${digits}`],
    );
});

describe('times to live', () => {
  test('start now for a record that is overdue when written', () => {
    assert.equal(
      scheduledTtl(aRecord({ dueAt: NOW - 7_200_000 }), NOW),
      scheduledTtl(aRecord({ dueAt: NOW }), NOW),
    );
  });

  test('are whole seconds, never too early, and valid dates', () => {
    fc.assert(
      fc.property(moment, (at) => {
        for (const [ttl, seconds] of [
          [scheduledTtl(aRecord({ dueAt: at }), 0), 24 * 3600],
          [nodeTtl(at), 7 * 24 * 3600],
          [historyTtl(at, 30), 30 * 24 * 3600],
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

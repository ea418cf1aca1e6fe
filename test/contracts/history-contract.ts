import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type ClusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { History, HistoryEntry, HistoryQuery } from '#shared/state/history.ts';
import type { Store } from '#shared/state/store.ts';
import { eventually } from './eventually.ts';
import { aCluster, aNode, anEnding, aReason, aRecord, aRef, NOW, someRecords } from './partition-builders.ts';

/** A store and the history of its writes. */
export interface HistoryUnderContract {
  readonly store: Store;
  readonly history: Pick<History, 'entries' | 'nodesEvictedFrom'>;
  /** The writer of removed pods, which can be another process. */
  readonly notes: Pick<History, 'noteGone'>;
  close(): Promise<void>;
}

const MINUTE = 60_000;
const at = (minutes: number): number => NOW + minutes * MINUTE;

/** Registers the tests that every implementation of `History` has to pass. */
export function historyContract(name: string, make: () => Promise<HistoryUnderContract>): void {
  describe(`${name} keeps the history's contract`, () => {
    let underContract: HistoryUnderContract;
    let store: Store;
    before(async () => {
      underContract = await make();
      store = underContract.store;
    });
    after(() => underContract?.close());

    const read = (cluster: ClusterName, query: Partial<HistoryQuery> = {}): Promise<HistoryEntry[]> =>
      Array.fromAsync(
        underContract.history.entries({ cluster, from: NOW, to: NOW + 24 * 60 * MINUTE, ...query }),
      );
    const eventsOf = (entries: readonly HistoryEntry[]) =>
      entries.map(({ event, at: moment, pod }) => `${(moment - NOW) / MINUTE} ${event} ${pod}`);
    /** Waits until the history contains the expected entries, because an index can lag behind. */
    const reads = (cluster: ClusterName, expected: readonly string[], query: Partial<HistoryQuery> = {}) =>
      eventually(async () => assert.deepEqual(eventsOf(await read(cluster, query)), expected));

    async function write(
      ref: ReturnType<typeof aRef>,
      minutes: number,
      schedule: readonly EvictionRecord[],
      noted: readonly Noted[] = [],
      end = [] as ReturnType<typeof anEnding>[],
    ): Promise<void> {
      const { revision } = await store.load(ref, NOW, []);
      const change = { node: aNode(), schedule, noted, end, live: true };
      assert.equal(await store.commit(ref, revision, change, at(minutes)), 'committed');
    }

    const note = (record: EvictionRecord, event: 'held' | 'released' | 'would-evict'): Noted => {
      const { uid, namespace, name: pod, dueAt, causes } = record;
      const entry =
        event === 'would-evict' ? ({ kind: 'observe' } as const) : ({ kind: 'hold', id: 'h1' } as const);
      return { uid, namespace, name: pod, dueAt, causes, event, by: entry };
    };

    test('returns the removal time of deleted pods with their ends, regardless of their order', async () => {
      const ref = aRef();
      const [evicted, theirs, canceled, still, last] = someRecords(5);
      assert.ok(evicted && theirs && canceled && still && last);
      const deleted = { at: at(1), by: 'other' } as const;
      await store.end(ref, [anEnding(evicted), anEnding(still)], at(1));
      await store.end(ref, [anEnding(theirs, { outcome: 'already-gone', deleted })], at(2));
      await store.end(ref, [anEnding(canceled, { outcome: 'canceled' })], at(3));
      await store.end(ref, [anEnding(last)], at(5));
      const { notes } = underContract;
      const gone = (record: EvictionRecord, minutes: number) => ({ uid: record.uid, at: at(minutes) });
      await notes.noteGone(ref.cluster, [gone(theirs, 5), gone(evicted, 4), gone(last, 5)]);
      // A list repeats pods that a watch has reported.
      await notes.noteGone(ref.cluster, [gone(evicted, 6), gone(canceled, 6)]);
      await notes.noteGone(aCluster(), [gone(still, 7)]);
      const eventsOf = async (query: Partial<HistoryQuery>) =>
        (await read(ref.cluster, query))
          .filter(({ event }) => event !== 'scheduled')
          .map(({ uid, removedAt }) => [uid, removedAt])
          .toSorted();
      const expected = [
        [evicted.uid, at(4)],
        [theirs.uid, at(5)],
        [canceled.uid, undefined],
        [still.uid, undefined],
      ].toSorted();
      await eventually(async () => assert.deepEqual(await eventsOf({ to: at(3) }), expected));
      assert.deepEqual(await eventsOf({ to: at(3), node: ref.node }), expected);
      await eventually(async () => assert.deepEqual(await eventsOf({ from: at(5) }), [[last.uid, at(5)]]));
    });

    test('records any number of removed pods in one call', async () => {
      const cluster = aCluster();
      const pods = Array.from({ length: 6_000 }, (_, index) => ({ uid: podUid(`u${index}`), at: at(index) }));
      await underContract.notes.noteGone(cluster, pods);
      await underContract.notes.noteGone(cluster, []);
      assert.deepEqual(await read(cluster), []);
    });

    test('returns nothing for an unknown cluster', async () => {
      assert.deepEqual(await read(aCluster()), []);
    });

    test('returns scheduled, noted, and ended entries with all their fields, newest first', async () => {
      const ref = aRef();
      const record = aRecord({ startedAt: at(0) });
      await write(ref, 0, [record]);
      await write(ref, 1, [record], [note(record, 'held')]);
      await write(ref, 2, [record], [note(record, 'released')]);
      await store.end(ref, [anEnding(record, { delayMs: 123 })], at(3));
      await reads(ref.cluster, ['3 evicted web-0', '2 released web-0', '1 held web-0', '0 scheduled web-0']);
      const { uid, namespace, name: pod, dueAt, causes } = record;
      const common = { ...ref, uid, namespace, pod, dueAt, causes };
      const gate = { kind: 'hold', id: 'h1' };
      assert.deepEqual(await read(ref.cluster), [
        { ...common, at: at(3), event: 'evicted', delayMs: 123 },
        { ...common, at: at(2), event: 'released', by: gate },
        { ...common, at: at(1), event: 'held', by: gate },
        { ...common, at: at(0), event: 'scheduled' },
      ]);
      assert.deepEqual(await read(ref.cluster, { node: ref.node }), await read(ref.cluster));
    });

    test('returns pending evictions from their records, together with their noted entries', async () => {
      const ref = aRef();
      const record = aRecord({ startedAt: at(5) });
      await write(ref, 5, [record]);
      await reads(ref.cluster, ['5 scheduled web-0']);
      await write(ref, 6, [record], [note(record, 'would-evict')]);
      await reads(ref.cluster, ['6 would-evict web-0', '5 scheduled web-0']);
      await reads(ref.cluster, ['6 would-evict web-0', '5 scheduled web-0'], { node: ref.node });
    });

    test('returns a rescheduled eviction both as first scheduled and as rescheduled', async () => {
      const ref = aRef();
      const first = aRecord({ startedAt: at(0), dueAt: at(60), causes: [aReason('a')] });
      const second = { ...first, dueAt: at(50), causes: [aReason('b')] };
      const third = { ...first, dueAt: at(40), causes: [aReason('c', 'd')] };
      const moved = (from: EvictionRecord, to: EvictionRecord): Noted => {
        const { uid, namespace, name: pod, dueAt, causes } = to;
        const before = { dueAt: from.dueAt, causes: from.causes };
        return { uid, namespace, name: pod, dueAt, causes, event: 'rescheduled', from: before };
      };
      await write(ref, 0, [first]);
      await write(ref, 1, [second], [moved(first, second)]);
      await write(ref, 2, [third], [moved(second, third)]);
      for (const ended of [false, true]) {
        if (ended) await store.end(ref, [anEnding(third)], at(40));
        await eventually(async () => {
          const found = await read(ref.cluster, { to: at(3) });
          assert.deepEqual(
            found.map(({ event, dueAt, previousDueAt, causes }) => [
              event,
              dueAt && (dueAt - NOW) / MINUTE,
              previousDueAt && (previousDueAt - NOW) / MINUTE,
              causes[0]?.taint.key,
            ]),
            [
              ['rescheduled', 40, 50, 'c'],
              ['rescheduled', 50, 60, 'b'],
              ['scheduled', 60, undefined, 'a'],
            ],
          );
        });
      }
    });

    test('distinguishes nodes from which a taint manager recently evicted pods from others', async () => {
      const cluster = aCluster();
      const on = (node: string) => ({ cluster, node: nodeName(node) });
      const deleted = (deleter: 'taint-manager' | 'other') =>
        anEnding(aRecord(), {
          outcome: 'canceled',
          cancelReason: 'pod-gone',
          deleted: { at: at(10), by: deleter },
        });
      await store.end(on('ours'), [anEnding(), anEnding(aRecord())], at(10));
      await store.end(on('ours-before'), [anEnding()], at(9));
      await store.end(on('built-in'), [deleted('taint-manager')], at(10));
      await store.end(on('by-hand'), [deleted('other')], at(10));
      await eventually(async () =>
        assert.deepEqual([...(await underContract.history.nodesEvictedFrom(cluster, at(10)))].sort(), [
          'built-in',
          'ours',
        ]),
      );
    });

    test('returns both countdowns of a pod that was scheduled twice', async () => {
      const ref = aRef();
      const record = aRecord({ startedAt: at(0) });
      await write(ref, 0, [record]);
      await write(ref, 1, [], [], [anEnding(record, { outcome: 'canceled', cancelReason: 'taint-removed' })]);
      await write(ref, 2, [{ ...record, startedAt: at(2) }]);
      await reads(ref.cluster, ['2 scheduled web-0', '1 canceled web-0', '0 scheduled web-0']);
    });

    test('returns failed evictions, and the deletions of pods by others', async () => {
      const ref = aRef();
      const [stuck, gone] = [aRecord({ name: 'a' }), aRecord({ name: 'b' })];
      const { uid, namespace, name: pod, dueAt, causes } = stuck;
      const noted: Noted = { uid, namespace, name: pod, dueAt, causes, event: 'failed', error: '500' };
      await write(ref, 1, [stuck], [noted]);
      const deleted = { at: at(1.5), by: 'taint-manager' } as const;
      const gate = { kind: 'hold', id: 'h1' } as const;
      await write(ref, 2, [], [], [anEnding(gone, { outcome: 'already-gone', deleted, by: gate })]);
      await reads(ref.cluster, ['2 already-gone b', '1 failed a'], { from: at(1) });
      const found = await read(ref.cluster, { from: at(1) });
      assert.deepEqual(
        found.map((each) => [each.deleted, each.by, each.error]),
        [
          [deleted, gate, undefined],
          [undefined, undefined, '500'],
        ],
      );
    });

    test('filters by node, namespace, pod, and time', async () => {
      const cluster = aCluster();
      const [one, two] = [aRef(cluster, 'one'), aRef(cluster, 'two')];
      const [a, b, c] = [
        aRecord({ name: 'a', startedAt: at(0) }),
        aRecord({ name: 'b', startedAt: at(1), namespace: 'payments' }),
        aRecord({ name: 'c', startedAt: at(2) }),
      ] as const;
      await write(one, 0, [a]);
      await write(one, 1, [b]);
      await write(two, 2, [c]);
      await store.end(one, [anEnding(a), anEnding(b)], at(3));
      const all = ['3 evicted a', '3 evicted b', '2 scheduled c', '1 scheduled b', '0 scheduled a'];
      await eventually(async () => assert.deepEqual(new Set(eventsOf(await read(cluster))), new Set(all)));
      await reads(cluster, ['2 scheduled c'], { node: two.node });
      await reads(cluster, [], { node: nodeName('three') });
      await reads(cluster, ['3 evicted b', '1 scheduled b'], { namespace: 'payments' });
      await reads(cluster, ['3 evicted a', '0 scheduled a'], { pod: 'a' });
      await reads(cluster, ['2 scheduled c', '1 scheduled b'], { from: at(1), to: at(2) });
      await reads(cluster, [], { from: at(4) });
      assert.deepEqual(await read(aCluster()), []);
    });

    for (const count of [99, 300]) {
      test(`returns all entries that are noted for ${count} pods in one commit, and stores the pods`, async () => {
        const ref = aRef();
        const records = someRecords(count, { startedAt: NOW - MINUTE });
        const noted = records.map((record) => note(record, 'held'));
        await write(ref, 1, records, noted);
        assert.equal((await store.load(ref, NOW)).scheduled.size, count);
        await eventually(async () => {
          const found = await read(ref.cluster);
          assert.deepEqual(new Set(found.map(({ uid }) => uid)), new Set(records.map(({ uid }) => uid)));
          assert.equal(found.length, count);
        });
      });
    }

    test('orders entries across many nodes and times', async () => {
      const cluster = aCluster();
      for (let minute = 0; minute < 30; minute++) {
        await store.end(
          aRef(cluster, `n${minute % 7}`),
          [anEnding(aRecord({ startedAt: at(0) }))],
          at(minute),
        );
      }
      await eventually(async () => {
        const moments = (await read(cluster)).map((each) => each.at);
        assert.equal(moments.length, 60);
        assert.deepEqual(
          moments,
          moments.toSorted((a, b) => b - a),
        );
      });
    });
  });
}

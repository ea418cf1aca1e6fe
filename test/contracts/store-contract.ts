import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type ClusterName, type NodeRef, nodeKey, podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord, Partition } from '#shared/eviction/records.ts';
import type { Commit, Store, Upcoming } from '#shared/store/store.ts';
import { eventually } from './eventually.ts';
import { aCluster, aNode, aRecord, aRef, aTaint, NOW, someRecords } from './partition-builders.ts';

/** A store under contract; every test uses clusters of its own, so one store serves them all. */
export interface StoreUnderContract {
  readonly store: Store;
  close(): Promise<void>;
}

/** The last moment a JavaScript date can hold: what endless deadlines are saturated to. */
const LAST_MOMENT = 8.64e15;

/** Registers the tests that every implementation of `Store` has to pass. */
export function storeContract(name: string, make: () => Promise<StoreUnderContract>): void {
  describe(`${name} keeps the store's contract`, () => {
    let underContract: StoreUnderContract | undefined;
    let store: Store;
    before(async () => {
      underContract = await make();
      store = underContract.store;
    });
    after(() => underContract?.close());

    /** Commits on what is stored now; no other writer is about. */
    async function write(ref: NodeRef, change: Partial<Commit>, now = NOW): Promise<void> {
      const { revision } = await store.load(ref, { kind: 'pods', uids: [] });
      const result = await store.commit(ref, revision, { evictions: [], live: true, ...change }, now);
      assert.equal(result, 'committed');
    }
    const loadAll = (ref: NodeRef): Promise<Partition> => store.load(ref, { kind: 'all' });
    const stateOf = async (ref: NodeRef, { uid }: EvictionRecord) =>
      (await loadAll(ref)).evictions.get(uid)?.state;

    describe('load', () => {
      test('an unknown node is an empty partition at revision 0, in every scope', async () => {
        const ref = aRef();
        const empty = { ref, revision: 0, node: undefined, evictions: new Map() };
        assert.deepEqual(await store.load(ref, { kind: 'all' }), empty);
        assert.deepEqual(await store.load(ref, { kind: 'pods', uids: [podUid('a')] }), empty);
        assert.deepEqual(await store.load(ref, { kind: 'due', now: NOW }), empty);
      });

      test('scope all reads back every field of the node and of records in every state', async () => {
        const ref = aRef();
        const node = aNode({
          taints: [aTaint(), aTaint({ key: 'team', value: 'blue' }), aTaint({ key: 'empty', value: '' })],
          version: { epoch: 7, sequence: 123_456_789 },
          deletedAt: NOW,
        });
        const records = [
          aRecord({
            because: ['team=blue:NoExecute', 'empty:NoExecute'],
            version: { epoch: 7, sequence: 5 },
          }),
          aRecord({ state: 'cancelled', because: [] }),
          aRecord({ state: 'done' }),
          aRecord({ state: 'gone' }),
        ];
        await write(ref, { node, evictions: records });
        const expected = { ref, revision: 1, node, evictions: byUid(records) };
        assert.deepEqual(sorted(await loadAll(ref)), sorted(expected));
      });

      test('scope pods reads the records asked for only, each once', async () => {
        const ref = aRef();
        const [first, second, third] = [aRecord(), aRecord({ state: 'done' }), aRecord()];
        const node = aNode();
        await write(ref, { node, evictions: [first, second, third] });
        const uids = [first.uid, second.uid, podUid('unknown'), first.uid];
        const expected = { ref, revision: 1, node, evictions: byUid([first, second]) };
        assert.deepEqual(sorted(await store.load(ref, { kind: 'pods', uids })), sorted(expected));
      });

      test('scope pods takes any number of pods', async () => {
        const ref = aRef();
        const records = someRecords(230);
        await write(ref, { evictions: records });
        const uids = records.map(({ uid }) => uid);
        const { evictions } = await store.load(ref, { kind: 'pods', uids: [...uids, podUid('unknown')] });
        assert.deepEqual([...evictions.keys()].sort(), uids.toSorted());
      });

      test('scope due reads the scheduled records whose moment has come, to the millisecond', async () => {
        const ref = aRef();
        const past = aRecord({ fireAt: NOW - 1 });
        const present = aRecord({ fireAt: NOW });
        const others = [
          aRecord({ fireAt: NOW + 1 }),
          aRecord({ fireAt: NOW - 1, state: 'cancelled' }),
          aRecord({ fireAt: NOW - 1, state: 'done' }),
          aRecord({ fireAt: NOW - 1, state: 'gone' }),
        ];
        const node = aNode();
        await write(ref, { node, evictions: [past, present, ...others] });
        const expected = { ref, revision: 1, node, evictions: byUid([past, present]) };
        assert.deepEqual(sorted(await store.load(ref, { kind: 'due', now: NOW })), sorted(expected));
      });

      test('names with dots, slashes, colons and at signs stay apart', async () => {
        const clusters = [
          aCluster('arn:aws:eks:eu-west-1:123456789012:cluster/prod'),
          aCluster('admin@prod/eu:1'),
        ];
        const refs = clusters.flatMap((cluster) =>
          ['n', 'n.n', 'ip-10-0-0-1.eu-west-1.compute.internal', 'a:b/c@d'].map((node) =>
            aRef(cluster, node),
          ),
        );
        const record = aRecord();
        for (const ref of refs) {
          await write(ref, { node: aNode(), evictions: [{ ...record, name: `on-${ref.node}` }] });
        }
        for (const ref of refs) {
          const { node, evictions } = await loadAll(ref);
          assert.deepEqual(node, aNode());
          assert.deepEqual([...evictions.values()], [{ ...record, name: `on-${ref.node}` }]);
        }
        for (const cluster of clusters) {
          const expected = refs.filter((ref) => ref.cluster === cluster).map(({ node }) => node);
          await eventually(async () =>
            assert.deepEqual(await taintedIn(store, cluster), expected.toSorted()),
          );
          await eventually(async () => {
            const found = (await upcomingIn(store, cluster)).map(({ ref }) => ref.node);
            assert.deepEqual(found.toSorted(), expected.toSorted());
          });
        }
      });
    });

    describe('commit', () => {
      test('each commit adds one to the revision', async () => {
        const ref = aRef();
        for (const revision of [0, 1, 2]) {
          assert.equal((await loadAll(ref)).revision, revision);
          await store.commit(ref, revision, { evictions: [aRecord()], live: true }, NOW);
        }
        assert.equal((await loadAll(ref)).revision, 3);
      });

      test('on another revision than the stored one it writes nothing', async () => {
        const ref = aRef();
        await write(ref, { node: aNode() });
        await write(ref, { evictions: [aRecord()] });
        const before = await loadAll(ref);
        const change = { node: aNode({ taints: [] }), evictions: [aRecord()], live: false };
        for (const revision of [0, 1, 3]) {
          assert.equal(await store.commit(ref, revision, change, NOW), 'conflict');
        }
        assert.deepEqual(await loadAll(ref), before);
      });

      test('on an unknown node any revision but 0 is a conflict', async () => {
        const ref = aRef();
        const change = { node: aNode(), evictions: [aRecord()], live: true };
        assert.equal(await store.commit(ref, 1, change, NOW), 'conflict');
        assert.equal((await loadAll(ref)).revision, 0);
      });

      for (const writers of [2, 8]) {
        test(`of ${writers} writers at once exactly one wins, and only its change is stored`, async () => {
          const ref = aRef();
          await write(ref, { node: aNode() });
          const changes = Array.from({ length: writers }, (_, index) => ({
            node: aNode({ version: { epoch: 2, sequence: index } }),
            evictions: someRecords(3, { version: { epoch: 2, sequence: index } }),
            live: true,
          }));
          const results = await Promise.all(changes.map((change) => store.commit(ref, 1, change, NOW)));
          const won = changes.filter((_, index) => results[index] === 'committed');
          assert.equal(won.length, 1, `${results}`);
          assert.equal(results.filter((result) => result === 'conflict').length, writers - 1);
          const { revision, node, evictions } = await loadAll(ref);
          assert.equal(revision, 2);
          assert.deepEqual(node, won[0]?.node);
          assert.deepEqual([...evictions.keys()].sort(), won[0]?.evictions.map(({ uid }) => uid).sort());
        });
      }

      test('of many writers that read and try again none is lost', async () => {
        const ref = aRef();
        const records = someRecords(12);
        const insist = async (record: EvictionRecord): Promise<void> => {
          let result = 'conflict';
          while (result === 'conflict') {
            const { revision } = await store.load(ref, { kind: 'pods', uids: [record.uid] });
            result = await store.commit(ref, revision, { evictions: [record], live: true }, NOW);
          }
        };
        await Promise.all(records.map(insist));
        const { revision, evictions } = await loadAll(ref);
        assert.equal(revision, records.length);
        assert.equal(evictions.size, records.length);
      });

      test('without a node the stored one stays as it is', async () => {
        const ref = aRef();
        const node = aNode({ deletedAt: NOW });
        await write(ref, { node });
        await write(ref, { evictions: [aRecord()] });
        await write(ref, { live: false });
        assert.deepEqual((await loadAll(ref)).node, node);
      });

      test('without a node an unknown node stays unknown', async () => {
        const ref = aRef();
        await write(ref, { evictions: [aRecord()] });
        const { revision, node } = await loadAll(ref);
        assert.equal(revision, 1);
        assert.equal(node, undefined);
      });

      test('a new node replaces the stored one whole', async () => {
        const ref = aRef();
        await write(ref, { node: aNode({ deletedAt: NOW, taints: [aTaint({ value: 'x' })] }) });
        const node = aNode({ version: { epoch: 1, sequence: 2 } });
        await write(ref, { node });
        assert.deepEqual((await loadAll(ref)).node, node);
      });

      for (const count of [99, 100, 250]) {
        test(`takes ${count} records`, async () => {
          const ref = aRef();
          const records = someRecords(count);
          const node = aNode();
          await write(ref, { node, evictions: records });
          const partition = await loadAll(ref);
          assert.deepEqual(partition.node, node);
          assert.deepEqual(recordsOf(partition), recordsOf({ evictions: byUid(records) }));
        });
      }

      test('of 250 records on another revision writes none', async () => {
        const ref = aRef();
        await write(ref, { node: aNode() });
        const change = { node: aNode({ taints: [] }), evictions: someRecords(250), live: true };
        assert.equal(await store.commit(ref, 0, change, NOW), 'conflict');
        const { node, evictions } = await loadAll(ref);
        assert.deepEqual(node, aNode());
        assert.equal(evictions.size, 0);
      });

      test('one that was cut off is completed by the same change on the revision read anew', async () => {
        const ref = aRef();
        const records = someRecords(250);
        // What a crash behind the first chunk leaves: its records, and the node as it was.
        await write(ref, { evictions: records.slice(0, 99) });
        assert.equal((await loadAll(ref)).node, undefined);
        const node = aNode();
        await write(ref, { node, evictions: records });
        const partition = await loadAll(ref);
        assert.deepEqual(partition.node, node);
        assert.equal(partition.evictions.size, 250);
      });

      test('the same change again changes nothing but the revision', async () => {
        const ref = aRef();
        const change = { node: aNode(), evictions: [aRecord(), aRecord({ state: 'cancelled' })] };
        await write(ref, change);
        const first = await loadAll(ref);
        await write(ref, change);
        assert.deepEqual(sorted(await loadAll(ref)), sorted({ ...first, revision: 2 }));
      });

      test('a cancelled record can be scheduled again', async () => {
        const ref = aRef();
        const record = aRecord();
        await write(ref, { evictions: [record] });
        await write(ref, { evictions: [{ ...record, state: 'cancelled' }] });
        await write(ref, { evictions: [{ ...record, fireAt: NOW + 5 }] });
        assert.deepEqual((await loadAll(ref)).evictions.get(record.uid), { ...record, fireAt: NOW + 5 });
      });

      for (const state of ['done', 'gone'] as const) {
        test(`never overwrites a record that was settled as ${state} since it was read`, async () => {
          const ref = aRef();
          const [record, other] = [aRecord(), aRecord()];
          await write(ref, { node: aNode(), evictions: [record] });
          await store.settle(ref, [{ uid: record.uid, state }], NOW);
          const change = { evictions: [other, { ...record, fireAt: NOW + 1 }], live: true };
          assert.equal(await store.commit(ref, 1, change, NOW), 'conflict');
          const { revision, evictions } = await loadAll(ref);
          assert.equal(revision, 1);
          assert.deepEqual([...evictions.values()], [{ ...record, state }]);
        });
      }

      test('a tombstone stays when others of its node are written', async () => {
        const ref = aRef();
        const record = aRecord();
        await write(ref, { node: aNode(), evictions: [record] });
        await store.settle(ref, [{ uid: record.uid, state: 'done' }], NOW);
        await write(ref, { node: aNode({ taints: [] }), evictions: [aRecord()], live: false });
        await write(ref, { node: aNode(), evictions: [aRecord()] });
        assert.equal(await stateOf(ref, record), 'done');
      });
    });

    describe('settle', () => {
      test('turns scheduled records into tombstones and names them', async () => {
        const ref = aRef();
        const [evicted, vanished, left] = [aRecord(), aRecord(), aRecord()];
        const node = aNode();
        await write(ref, { node, evictions: [evicted, vanished, left] });
        const settled = await store.settle(
          ref,
          [
            { uid: evicted.uid, state: 'done' },
            { uid: vanished.uid, state: 'gone' },
          ],
          NOW,
        );
        assert.deepEqual(settled, new Set([evicted.uid, vanished.uid]));
        const expected = [
          { ...evicted, state: 'done' as const },
          { ...vanished, state: 'gone' as const },
          left,
        ];
        const partition = { ref, revision: 1, node, evictions: byUid(expected) };
        assert.deepEqual(sorted(await loadAll(ref)), sorted(partition));
      });

      test('leaves alone and does not name what is not scheduled', async () => {
        const ref = aRef();
        const records = [
          aRecord({ state: 'cancelled' }),
          aRecord({ state: 'gone' }),
          aRecord({ state: 'done' }),
        ];
        await write(ref, { evictions: records });
        const outcomes = [...records.map(({ uid }) => uid), podUid('unknown')].map(
          (uid) => ({ uid, state: 'done' }) as const,
        );
        assert.deepEqual(await store.settle(ref, outcomes, NOW), new Set());
        assert.deepEqual(recordsOf(await loadAll(ref)), recordsOf({ evictions: byUid(records) }));
      });

      test('names a record to one of several callers only', async () => {
        const ref = aRef();
        const records = someRecords(20);
        await write(ref, { evictions: records });
        const outcomes = records.map(({ uid }) => ({ uid, state: 'done' }) as const);
        const [first, second] = await Promise.all([
          store.settle(ref, outcomes, NOW),
          store.settle(ref, outcomes, NOW),
        ]);
        assert.equal(first.size + second.size, records.length);
        assert.equal(first.union(second).size, records.length);
      });

      test('takes no part in the lock: a commit of other records goes through', async () => {
        const ref = aRef();
        const record = aRecord();
        await write(ref, { evictions: [record] });
        await store.settle(ref, [{ uid: record.uid, state: 'done' }], NOW);
        assert.equal(await store.commit(ref, 1, { evictions: [aRecord()], live: true }, NOW), 'committed');
      });

      test('loses nothing to commits that go on beside it', async () => {
        const ref = aRef();
        const records = someRecords(40);
        await write(ref, { evictions: records });
        const settling = store.settle(
          ref,
          records.map(({ uid }) => ({ uid, state: 'done' })),
          NOW,
        );
        const moveAll = async (): Promise<void> => {
          for (let round = 0; round < 5; round++) {
            const { revision, evictions } = await loadAll(ref);
            const moved = [...evictions.values()].filter(({ state }) => state === 'scheduled');
            await store.commit(ref, revision, { evictions: moved, live: true }, NOW);
          }
        };
        const [settled] = await Promise.all([settling, moveAll()]);
        assert.equal(settled.size, records.length);
        const { evictions } = await loadAll(ref);
        assert.deepEqual([...new Set([...evictions.values()].map(({ state }) => state))], ['done']);
      });
    });

    describe('taintedNodes', () => {
      test('lists the tainted nodes of one cluster only, with what is known of them', async () => {
        const [cluster, other] = [aCluster(), aCluster()];
        const node = aNode({ taints: [aTaint({ key: 'here' })] });
        await write(aRef(cluster, 'node-1'), { node });
        await write(aRef(other, 'node-1'), { node: aNode({ taints: [aTaint({ key: 'there' })] }) });
        await write(aRef(other, 'node-2'), { node: aNode() });
        await write(aRef(cluster, 'node-3'), { node: aNode({ taints: [] }), live: false });
        await write(aRef(cluster, 'node-4'), { evictions: [aRecord()] });
        await eventually(async () => {
          const found = await Array.fromAsync(store.taintedNodes(cluster));
          assert.deepEqual(found, [{ node: 'node-1', state: node }]);
        });
      });

      test('a node comes and goes with its taints', async () => {
        const ref = aRef();
        await write(ref, { node: aNode() });
        await eventually(async () => assert.deepEqual(await taintedIn(store, ref.cluster), [ref.node]));
        await write(ref, { evictions: [aRecord()] });
        await eventually(async () => assert.deepEqual(await taintedIn(store, ref.cluster), [ref.node]));
        await write(ref, { node: aNode({ taints: [] }) });
        await eventually(async () => assert.deepEqual(await taintedIn(store, ref.cluster), []));
        await write(ref, { node: aNode() });
        await eventually(async () => assert.deepEqual(await taintedIn(store, ref.cluster), [ref.node]));
      });

      test('lists any number of nodes', async () => {
        const cluster = aCluster();
        const refs = Array.from({ length: 120 }, (_, index) => aRef(cluster, `node-${index}`));
        await Promise.all(refs.map((ref) => write(ref, { node: aNode() })));
        const expected = refs.map(({ node }) => node).sort();
        await eventually(async () => assert.deepEqual(await taintedIn(store, cluster), expected));
      });
    });

    describe('upcoming', () => {
      test('lists distinct moments of scheduled records, soonest first', async () => {
        const cluster = aCluster();
        const [one, two] = [aRef(cluster, 'one'), aRef(cluster, 'two')];
        await write(one, {
          evictions: [
            ...someRecords(3, { fireAt: NOW + 10 }),
            aRecord({ fireAt: NOW + 30 }),
            aRecord({ fireAt: NOW - 5 }),
            aRecord({ fireAt: LAST_MOMENT }),
            aRecord({ fireAt: NOW + 1, state: 'cancelled' }),
            aRecord({ fireAt: NOW + 2, state: 'done' }),
          ],
        });
        await write(two, { evictions: someRecords(2, { fireAt: NOW + 20 }) });
        await eventually(async () =>
          assert.deepEqual(await upcomingIn(store, cluster), [
            { ref: one, fireAt: NOW - 5 },
            { ref: one, fireAt: NOW + 10 },
            { ref: two, fireAt: NOW + 20 },
            { ref: one, fireAt: NOW + 30 },
            { ref: one, fireAt: LAST_MOMENT },
          ]),
        );
      });

      test('is sorted over many nodes, and more than a page long', async () => {
        const cluster = aCluster();
        const fireAts = Array.from({ length: 30 * 20 }, (_, index) => NOW + ((index * 7919) % 600) * 1000);
        const refs = Array.from({ length: 30 }, (_, index) => aRef(cluster, `node-${index}`));
        for (const [index, ref] of refs.entries()) {
          const due = fireAts.slice(index * 20, (index + 1) * 20);
          await write(ref, { evictions: due.map((fireAt) => aRecord({ fireAt })) });
        }
        await eventually(async () => {
          const found = (await upcomingIn(store, cluster)).map(({ fireAt }) => fireAt);
          assert.deepEqual(
            found,
            fireAts.toSorted((a, b) => a - b),
          );
        });
      });

      test('a record that moved is listed at its new moment only, a settled one no more', async () => {
        const ref = aRef();
        const [moving, ending] = [aRecord({ fireAt: NOW + 1 }), aRecord({ fireAt: NOW + 2 })];
        await write(ref, { evictions: [moving, ending] });
        await write(ref, { evictions: [{ ...moving, fireAt: NOW + 3 }] });
        await store.settle(ref, [{ uid: ending.uid, state: 'done' }], NOW);
        await eventually(async () =>
          assert.deepEqual(await upcomingIn(store, ref.cluster), [{ ref, fireAt: NOW + 3 }]),
        );
      });

      test('can be left early and begun again', async () => {
        const ref = aRef();
        await write(ref, { evictions: [aRecord({ fireAt: 0 }), aRecord({ fireAt: 1 })] });
        await eventually(async () => assert.equal((await upcomingIn(store, ref.cluster)).length, 2));
        for (let round = 0; round < 2; round++) {
          for await (const { fireAt } of store.upcoming()) {
            assert.equal(fireAt, 0);
            break;
          }
        }
      });
    });

    test('a deadline at the end of time is stored to the millisecond', async () => {
      const ref = aRef();
      const record = aRecord({ fireAt: LAST_MOMENT });
      await write(ref, { evictions: [record] });
      assert.deepEqual((await loadAll(ref)).evictions.get(record.uid), record);
      const due = await store.load(ref, { kind: 'due', now: LAST_MOMENT });
      assert.deepEqual([...due.evictions.values()], [record]);
    });
  });
}

const byUid = (records: readonly EvictionRecord[]): Partition['evictions'] =>
  new Map(records.map((record) => [record.uid, record]));

/** A partition's records come in any order. */
const recordsOf = ({ evictions }: Pick<Partition, 'evictions'>): readonly EvictionRecord[] =>
  [...evictions.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1));

const sorted = (partition: Partition): Partition => ({
  ...partition,
  evictions: byUid(recordsOf(partition)),
});

async function taintedIn(store: Store, cluster: ClusterName): Promise<readonly string[]> {
  return (await Array.fromAsync(store.taintedNodes(cluster))).map(({ node }) => node).sort();
}

/** What is upcoming in one cluster; the list of all clusters must be sorted and distinct. */
async function upcomingIn(store: Store, cluster: ClusterName): Promise<readonly Upcoming[]> {
  const all = await Array.fromAsync(store.upcoming());
  const fireAts = all.map(({ fireAt }) => fireAt);
  assert.deepEqual(
    fireAts,
    fireAts.toSorted((a, b) => a - b),
  );
  assert.equal(new Set(all.map(({ ref, fireAt }) => `${nodeKey(ref)} ${fireAt}`)).size, all.length);
  return all.filter(({ ref }) => ref.cluster === cluster);
}

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { type ClusterName, type NodeRef, podUid } from '#shared/eviction/identity.ts';
import type {
  EndedPod,
  EvictionRecord,
  FinalRecord,
  NodeState,
  Outcome,
  Partition,
} from '#shared/eviction/records.ts';
import { type Commit, ENDED_WINDOW_MS, type Store } from '#shared/state/store.ts';
import { eventually } from './eventually.ts';
import {
  aCluster,
  aNode,
  anEnding,
  aReason,
  aRecord,
  aRef,
  aTaint,
  NOW,
  outcomesOf,
  someRecords,
} from './partition-builders.ts';

/** A store under contract; every test uses clusters of its own, so one store serves all tests. */
export interface StoreUnderContract {
  readonly store: Store;
  close(): Promise<void>;
}

/** The last time that a JavaScript date can hold: endless deadlines are saturated to it. */
const LAST_MOMENT = 8.64e15;

const TOMBSTONES: readonly Outcome[] = ['evicted', 'already-gone'];
const REVOCABLE: readonly Outcome[] = ['canceled', 'failed', 'unregistered', 'would-evict'];

const ofTaints = { revision: 1, guardRevision: 2, until: NOW + 1 };
/** A gate of each kind, with all fields. */
export const GATES: {
  readonly [Kind in EvictionGate['kind']]: Required<Extract<EvictionGate, { kind: Kind }>>;
} = {
  observe: { kind: 'observe' },
  stopped: { kind: 'stopped', scope: 'fleet', id: 's1', until: NOW + 1 },
  hold: { kind: 'hold', id: 'h1', until: NOW + 1 },
  excluded: { kind: 'excluded', ...ofTaints },
  guard: { kind: 'guard', scope: 'zone', zone: 'a', trippedAt: NOW, ...ofTaints },
  'node-alive': { kind: 'node-alive', renewedAt: NOW, ...ofTaints },
  'workload-limit': {
    kind: 'workload-limit',
    workload: 'Deployment/web',
    count: 1,
    windowMs: 600_000,
    ...ofTaints,
  },
  recreated: { kind: 'recreated' },
};
const known = { revision: 0, guardRevision: 0 };
/** Gates without optional fields. */
const BARE_GATES: readonly EvictionGate[] = [
  { kind: 'stopped', scope: 'cluster' },
  { kind: 'hold', id: 'h1' },
  { kind: 'excluded', ...known },
  ...(['cluster', 'customTaints'] as const).map(
    (scope) => ({ kind: 'guard', scope, trippedAt: NOW, ...known }) as const,
  ),
  { kind: 'workload-limit', workload: 'Deployment/web', windowMs: 1, ...known },
];

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

    const load = (ref: NodeRef, now = NOW): Promise<Partition> => store.load(ref, now);
    /** Commits on the stored revision; there is no other writer. */
    async function write(ref: NodeRef, change: Partial<Commit>, now = NOW): Promise<void> {
      const { revision } = await store.load(ref, now, []);
      const whole = { schedule: [], end: [], live: true, ...change };
      assert.equal(await store.commit(ref, revision, whole, now), 'committed');
    }

    describe('load', () => {
      test('returns an empty partition at revision 0 for an unknown node', async () => {
        const ref = aRef();
        const empty = { ref, revision: 0, node: undefined, scheduled: new Map(), ended: new Map() };
        assert.deepEqual(await load(ref), empty);
        assert.deepEqual(await store.load(ref, NOW, [podUid('a')]), empty);
      });

      test('reads back every field of the node, of records, and of ends of every kind', async () => {
        const ref = aRef();
        const retry = { attempts: 2, nextTryAt: NOW + 1, since: NOW - 1, error: 'no', everything: true };
        const node: Required<NodeState> = {
          taints: [
            aTaint({ timeAdded: NOW - 1_000, virtual: true }),
            aTaint({ key: 'team', value: 'blue' }),
            aTaint({ key: 'empty', value: '' }),
          ],
          version: { epoch: 7, sequence: 123_456_789 },
          observedAt: NOW,
          podsVersion: { epoch: 7, sequence: 1 },
          deletedAt: NOW,
          taintsStamp: 'kubectl',
          guardRevision: 3,
          retry,
          outage: { ...retry, triedAt: NOW },
          blocked: { attempts: 1, nextTryAt: NOW + 1 },
        };
        const gate = { kind: 'hold', id: 'h1', until: NOW + 2 } as const;
        const full: Required<EvictionRecord> = {
          ...aRecord(),
          owner: { kind: 'StatefulSet', name: 'web' },
          causes: [aReason('team', 'blue'), { ...aReason('empty'), known: 'preexisting', policy: 'seconds' }],
          failure: { since: NOW, error: 'no' },
          gaveUpAt: NOW,
          held: { by: gate, since: NOW, until: NOW + 2 },
          blocked: { since: NOW, nextTryAt: NOW + 1, by: 'admission', reason: 'a webhook' },
          notBefore: NOW + 3,
          turnAt: NOW + 4,
          drains: true,
          recreated: true,
          version: { epoch: 7, sequence: 5 },
        };
        const deleted = { at: NOW - 1, by: 'other' } as const;
        const end: Required<FinalRecord> = {
          ...anEnding(aRecord(), { outcome: 'canceled' }),
          startedAt: NOW,
          delayMs: 1,
          cancelReason: 'pod-gone',
          error: 'no',
          deleted,
          by: gate,
        };
        const records = [
          full,
          aRecord({ causes: [], owner: { kind: 'ReplicaSet', name: 'web-5d9c7b7f6b' } }),
        ];
        const ends = [
          ...[...TOMBSTONES, ...REVOCABLE].map((outcome) => anEnding(aRecord(), { outcome })),
          anEnding(aRecord({ namespace: 'payments', causes: [aReason('a'), aReason('b', 'c')] }), {
            delayMs: 1234,
            version: { epoch: 1_795_000_000, sequence: 9 },
          }),
          anEnding(aRecord({ causes: [] }), { outcome: 'canceled', cancelReason: 'tolerated-forever' }),
          anEnding(aRecord(), { outcome: 'failed', error: 'the server answered 500' }),
          end,
        ];
        await write(ref, { node, schedule: records, end: ends });
        const expected = {
          ref,
          revision: 1,
          node,
          scheduled: byUid(records),
          ended: byUid(endedAt(NOW, ends)),
        };
        assert.deepEqual(await load(ref), expected);
      });

      test('reads back a node, a cause, and an end without optional fields', async () => {
        const ref = aRef();
        const { podsVersion: _version, guardRevision: _revision, ...node } = aNode();
        const { toleration: _toleration, ...cause } = aReason();
        const record = aRecord({ causes: [cause] });
        const { startedAt: _startedAt, ...end } = anEnding();
        await write(ref, { node, schedule: [record], end: [end] });
        const ended = byUid(endedAt(NOW, [end]));
        assert.deepEqual(await load(ref), { ref, revision: 1, node, scheduled: byUid([record]), ended });
      });

      test('reads back a gate of every kind, with and without optional fields', async () => {
        const ref = aRef();
        const gates = [...Object.values(GATES), ...BARE_GATES];
        const held = gates.map((by) => aRecord({ held: { by, since: NOW } }));
        await write(ref, { schedule: held });
        assert.deepEqual((await load(ref)).scheduled, byUid(held));
      });

      test('reads only the requested pods, each once', async () => {
        const ref = aRef();
        const [first, second] = [aRecord(), aRecord()];
        const [third, fourth] = [anEnding(), anEnding()];
        const node = aNode();
        await write(ref, { node, schedule: [first, second], end: [third, fourth] });
        const uids = [first.uid, third.uid, podUid('unknown'), first.uid];
        const expected = {
          ref,
          revision: 1,
          node,
          scheduled: byUid([first]),
          ended: byUid(endedAt(NOW, [third])),
        };
        assert.deepEqual(await store.load(ref, NOW, uids), expected);
      });

      test('accepts any number of pods', async () => {
        const ref = aRef();
        const records = someRecords(230);
        await write(ref, { schedule: records });
        const uids = records.map(({ uid }) => uid);
        const { scheduled } = await store.load(ref, NOW, [...uids, podUid('unknown')]);
        assert.deepEqual([...scheduled.keys()].sort(), uids.toSorted());
      });

      test('reads ends while their window is open, to the millisecond', async () => {
        const ref = aRef();
        const [past, present, future] = [anEnding(), anEnding(), anEnding()];
        await store.end(ref, [past], NOW - ENDED_WINDOW_MS - 1);
        await store.end(ref, [present], NOW - ENDED_WINDOW_MS);
        await store.end(ref, [future], NOW + 1_000);
        const uids = [past, present, future].map(({ uid }) => uid);
        for (const only of [undefined, uids]) {
          const { ended } = await store.load(ref, NOW, only);
          assert.deepEqual([...ended.keys()].sort(), [present.uid, future.uid].sort());
        }
      });

      test('reads the newest of several ends of a pod', async () => {
        const ref = aRef();
        const record = aRecord();
        const ends = REVOCABLE.map((outcome) => anEnding(record, { outcome }));
        for (const [index, end] of ends.entries()) await store.end(ref, [end], NOW + index);
        assert.equal((await load(ref)).ended.get(record.uid)?.outcome, REVOCABLE.at(-1));
      });

      for (const outcome of TOMBSTONES) {
        test(`keeps a pod ${outcome}, regardless of later writes and of clocks that are behind`, async () => {
          const ref = aRef();
          const record = aRecord();
          await write(ref, { schedule: [record] });
          await store.end(ref, [anEnding(record, { outcome: 'canceled' })], NOW - 1_000);
          await store.end(ref, [anEnding(record, { outcome })], NOW);
          await store.end(ref, [anEnding(record, { outcome: 'canceled' })], NOW + 1_000);
          await write(ref, { schedule: [record] });
          assert.deepEqual(outcomesOf(await load(ref)), { [record.uid]: outcome });
          assert.deepEqual(outcomesOf(await store.load(ref, NOW, [record.uid])), { [record.uid]: outcome });
        });
      }

      test('separates names with dots, slashes, colons, and at signs', async () => {
        const clusters = [
          aCluster('arn:aws:eks:eu-west-1:123456789012:cluster/prod'),
          aCluster('admin@prod/eu:1'),
        ];
        const refs = clusters.flatMap((cluster) =>
          ['n', 'n.n', 'ip-10-0-0-1.eu-west-1.compute.internal', 'a:b/c@d'].map((node) =>
            aRef(cluster, node),
          ),
        );
        const [record, end] = [aRecord(), anEnding()];
        for (const ref of refs) {
          const name = `on-${ref.node}`;
          await write(ref, { node: aNode(), schedule: [{ ...record, name }], end: [{ ...end, name }] });
        }
        for (const ref of refs) {
          const { node, scheduled, ended } = await load(ref);
          assert.deepEqual(node, aNode());
          assert.deepEqual([...scheduled.values()], [{ ...record, name: `on-${ref.node}` }]);
          assert.deepEqual([...ended.values()], endedAt(NOW, [{ ...end, name: `on-${ref.node}` }]));
        }
        for (const cluster of clusters) {
          const expected = refs.filter((ref) => ref.cluster === cluster).map(({ node }) => node);
          await eventually(async () =>
            assert.deepEqual(await taintedIn(store, cluster), expected.toSorted()),
          );
        }
      });
    });

    describe('commit', () => {
      test('increments the revision', async () => {
        const ref = aRef();
        for (const revision of [0, 1, 2]) {
          assert.equal((await load(ref)).revision, revision);
          await store.commit(ref, revision, { schedule: [aRecord()], end: [], live: true }, NOW);
        }
        assert.equal((await load(ref)).revision, 3);
      });

      test('writes nothing on another revision than the stored one', async () => {
        const ref = aRef();
        const record = aRecord();
        await write(ref, { node: aNode() });
        await write(ref, { schedule: [record] });
        const before = await load(ref);
        const change = {
          node: aNode({ taints: [] }),
          schedule: [aRecord()],
          end: [anEnding(record)],
          live: false,
        };
        for (const revision of [0, 1, 3]) {
          assert.equal(await store.commit(ref, revision, change, NOW), 'conflict');
        }
        assert.deepEqual(await load(ref), before);
      });

      test('returns a conflict for an unknown node on any revision except 0', async () => {
        const ref = aRef();
        const change = { node: aNode(), schedule: [aRecord()], end: [], live: true };
        assert.equal(await store.commit(ref, 1, change, NOW), 'conflict');
        assert.equal((await load(ref)).revision, 0);
      });

      for (const writers of [2, 8]) {
        test(`succeeds for exactly one of ${writers} concurrent writers, and stores only its change`, async () => {
          const ref = aRef();
          await write(ref, { node: aNode() });
          const changes = Array.from({ length: writers }, (_, index) => ({
            node: aNode({ version: { epoch: 2, sequence: index } }),
            schedule: someRecords(3, { version: { epoch: 2, sequence: index } }),
            end: [anEnding()],
            live: true,
          }));
          const results = await Promise.all(changes.map((change) => store.commit(ref, 1, change, NOW)));
          const won = changes.filter((_, index) => results[index] === 'committed');
          assert.equal(won.length, 1, `${results}`);
          assert.equal(results.filter((result) => result === 'conflict').length, writers - 1);
          const { revision, node, scheduled, ended } = await load(ref);
          assert.equal(revision, 2);
          assert.deepEqual(node, won[0]?.node);
          assert.deepEqual([...scheduled.keys()].sort(), won[0]?.schedule.map(({ uid }) => uid).sort());
          assert.deepEqual(
            [...ended.keys()],
            won[0]?.end.map(({ uid }) => uid),
          );
        });
      }

      test('loses no change of many writers that read and retry', async () => {
        const ref = aRef();
        const records = someRecords(12);
        const insist = async (record: EvictionRecord): Promise<void> => {
          let result = 'conflict';
          while (result === 'conflict') {
            const { revision } = await store.load(ref, NOW, [record.uid]);
            result = await store.commit(ref, revision, { schedule: [record], end: [], live: true }, NOW);
          }
        };
        await Promise.all(records.map(insist));
        const { revision, scheduled } = await load(ref);
        assert.equal(revision, records.length);
        assert.equal(scheduled.size, records.length);
      });

      test('keeps the stored node when it has none', async () => {
        const ref = aRef();
        const node = aNode({ deletedAt: NOW });
        await write(ref, { node });
        await write(ref, { schedule: [aRecord()] });
        await write(ref, { live: false });
        assert.deepEqual((await load(ref)).node, node);
      });

      test('keeps an unknown node unknown when it has none', async () => {
        const ref = aRef();
        await write(ref, { schedule: [aRecord()] });
        const { revision, node } = await load(ref);
        assert.equal(revision, 1);
        assert.equal(node, undefined);
      });

      test('replaces the stored node completely', async () => {
        const ref = aRef();
        await write(ref, { node: aNode({ deletedAt: NOW, taints: [aTaint({ value: 'x' })] }) });
        const node = aNode({ version: { epoch: 1, sequence: 2 } });
        await write(ref, { node });
        assert.deepEqual((await load(ref)).node, node);
      });

      for (const count of [98, 99, 100, 300]) {
        test(`accepts ${count} records, and ends them all`, async () => {
          const ref = aRef();
          const records = someRecords(count);
          const node = aNode();
          await write(ref, { node, schedule: records });
          const partition = await load(ref);
          assert.deepEqual(partition.node, node);
          assert.deepEqual(partition.scheduled, byUid(records));
          const untainted = aNode({ taints: [] });
          const end = records.map((record) => anEnding(record, { outcome: 'canceled' }));
          await write(ref, { node: untainted, end, live: false });
          const after = await load(ref);
          assert.deepEqual(after.node, untainted);
          assert.equal(after.scheduled.size, 0);
          assert.deepEqual(after.ended, byUid(endedAt(NOW, end)));
        });
      }

      test('accepts hundreds of records and ends together', async () => {
        const ref = aRef();
        const old = someRecords(150);
        await write(ref, { schedule: old });
        const records = someRecords(150);
        await write(ref, { schedule: records, end: old.map((record) => anEnding(record)) });
        const { scheduled, ended } = await load(ref);
        assert.deepEqual([...scheduled.keys()].sort(), records.map(({ uid }) => uid).sort());
        assert.equal(ended.size, 150);
      });

      test('writes none of 250 records on another revision', async () => {
        const ref = aRef();
        await write(ref, { node: aNode() });
        const change = { node: aNode({ taints: [] }), schedule: someRecords(250), end: [], live: true };
        assert.equal(await store.commit(ref, 0, change, NOW), 'conflict');
        const { node, scheduled } = await load(ref);
        assert.deepEqual(node, aNode());
        assert.equal(scheduled.size, 0);
      });

      test('completes an interrupted commit of the same change on the newly read revision', async () => {
        const ref = aRef();
        const records = someRecords(250);
        // A crash after the first chunk leaves the chunk's records, and the node unchanged.
        await write(ref, { schedule: records.slice(0, 99) });
        assert.equal((await load(ref)).node, undefined);
        const node = aNode();
        await write(ref, { node, schedule: records });
        const partition = await load(ref);
        assert.deepEqual(partition.node, node);
        assert.equal(partition.scheduled.size, 250);
      });

      test('changes only the revision when the same change is committed again', async () => {
        const ref = aRef();
        const change = { node: aNode(), schedule: [aRecord()], end: [anEnding()] };
        await write(ref, change);
        const first = await load(ref);
        await write(ref, change);
        assert.deepEqual(await load(ref), { ...first, revision: 2 });
      });

      test('removes a record that ends from the schedule, and keeps its end', async () => {
        const ref = aRef();
        const [ends, stays] = [aRecord(), aRecord()];
        await write(ref, { node: aNode(), schedule: [ends, stays] });
        const end = anEnding(ends, { outcome: 'canceled', cancelReason: 'taint-removed' });
        await write(ref, { end: [end] }, NOW + 5);
        const { scheduled, ended } = await load(ref);
        assert.deepEqual([...scheduled.values()], [stays]);
        assert.deepEqual([...ended.values()], endedAt(NOW + 5, [end]));
      });

      for (const outcome of REVOCABLE) {
        test(`schedules a pod again whose record ended as ${outcome}`, async () => {
          const ref = aRef();
          const record = aRecord();
          await write(ref, { schedule: [record] });
          await write(ref, { end: [anEnding(record, { outcome })] });
          await write(ref, { schedule: [{ ...record, dueAt: NOW + 5 }] });
          const { scheduled, ended } = await load(ref);
          assert.deepEqual(scheduled.get(record.uid), { ...record, dueAt: NOW + 5 });
          assert.equal(ended.get(record.uid)?.outcome, outcome);
        });
      }

      test('conflicts with an end since the read', async () => {
        const ref = aRef();
        const [record, other] = [aRecord(), aRecord()];
        await write(ref, { node: aNode(), schedule: [record] });
        await store.end(ref, [anEnding(record)], NOW);
        const change = { schedule: [other, { ...record, dueAt: NOW + 1 }], end: [], live: true };
        assert.equal(await store.commit(ref, 1, change, NOW), 'conflict');
        assert.deepEqual(outcomesOf(await load(ref)), { [record.uid]: 'evicted' });
      });
    });

    describe('end', () => {
      test('ends records on any revision, increments it, and leaves the others', async () => {
        const ref = aRef();
        const [evicted, vanished, left] = [aRecord(), aRecord(), aRecord()];
        const node = aNode();
        await write(ref, { node, schedule: [evicted, vanished, left] });
        const ends = [anEnding(evicted, { delayMs: 12 }), anEnding(vanished, { outcome: 'already-gone' })];
        await store.end(ref, ends, NOW + 1);
        const expected = {
          ref,
          revision: 2,
          node,
          scheduled: byUid([left]),
          ended: byUid(endedAt(NOW + 1, ends)),
        };
        assert.deepEqual(await load(ref), expected);
      });

      test('does nothing without pods', async () => {
        const ref = aRef();
        await store.end(ref, [], NOW);
        assert.equal((await load(ref)).revision, 0);
      });

      test('keeps the end of a pod that is not scheduled, on an unknown node', async () => {
        const ref = aRef();
        const end = anEnding();
        await store.end(ref, [end], NOW);
        const { node, ended } = await load(ref);
        assert.equal(node, undefined);
        assert.deepEqual([...ended.values()], endedAt(NOW, [end]));
      });

      test('accepts 300 pods', async () => {
        const ref = aRef();
        const records = someRecords(300);
        await write(ref, { node: aNode(), schedule: records });
        const ends = records.map((record) => anEnding(record));
        await store.end(ref, ends, NOW);
        const { scheduled, ended } = await load(ref);
        assert.equal(scheduled.size, 0);
        assert.deepEqual(ended, byUid(endedAt(NOW, ends)));
      });

      test('accepts more ends than fit into one item', async () => {
        const ref = aRef();
        const ends = someRecords(120).map((record, index) =>
          anEnding(record, { outcome: 'failed', error: `${index} ${'x'.repeat(9_000)}` }),
        );
        await store.end(ref, ends.slice(0, 60), NOW);
        await write(ref, { end: ends.slice(60) });
        assert.deepEqual((await load(ref)).ended, byUid(endedAt(NOW, ends)));
      });

      test('accepts concurrent calls', async () => {
        const ref = aRef();
        const records = someRecords(20);
        await write(ref, { schedule: records });
        const ends = records.map((record) => anEnding(record));
        await Promise.all([store.end(ref, ends, NOW), store.end(ref, ends, NOW), store.end(ref, ends, NOW)]);
        const { scheduled, ended } = await load(ref);
        assert.equal(scheduled.size, 0);
        assert.equal(ended.size, 20);
      });

      test('loses nothing to concurrent commits', async () => {
        const ref = aRef();
        const records = someRecords(40);
        await write(ref, { schedule: records });
        const endAll = async (): Promise<void> => {
          for (const record of records) await store.end(ref, [anEnding(record)], NOW);
        };
        const moveAll = async (): Promise<void> => {
          for (let round = 0; round < 20; round++) {
            const { revision, scheduled } = await load(ref);
            const moved = [...scheduled.values()].map((record) => ({ ...record, dueAt: NOW + round }));
            await store.commit(ref, revision, { schedule: moved, end: [], live: true }, NOW);
          }
        };
        await Promise.all([endAll(), moveAll()]);
        const { scheduled, ended } = await load(ref);
        assert.equal(scheduled.size, 0);
        assert.equal(ended.size, records.length);
      });
    });

    describe('taintedNodes', () => {
      test('lists the tainted nodes of one cluster only, with their stored state', async () => {
        const [cluster, other] = [aCluster(), aCluster()];
        const node = aNode({ taints: [aTaint({ key: 'here' })] });
        await write(aRef(cluster, 'node-1'), { node });
        await write(aRef(other, 'node-1'), { node: aNode({ taints: [aTaint({ key: 'there' })] }) });
        await write(aRef(other, 'node-2'), { node: aNode() });
        await write(aRef(cluster, 'node-3'), { node: aNode({ taints: [] }), live: false });
        await write(aRef(cluster, 'node-4'), { schedule: [aRecord()], end: [anEnding()] });
        await eventually(async () => {
          const found = await Array.fromAsync(store.taintedNodes(cluster));
          assert.deepEqual(found, [{ node: 'node-1', state: node }]);
        });
      });

      test('lists a node only while it has taints', async () => {
        const ref = aRef();
        await write(ref, { node: aNode() });
        await eventually(async () => assert.deepEqual(await taintedIn(store, ref.cluster), [ref.node]));
        await write(ref, { schedule: [aRecord()] });
        await store.end(ref, [anEnding()], NOW);
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

    test('stores a deadline at the end of time to the millisecond', async () => {
      const ref = aRef();
      const record = aRecord({ dueAt: LAST_MOMENT });
      await write(ref, { schedule: [record] });
      assert.deepEqual((await load(ref)).scheduled.get(record.uid), record);
    });
  });
}

const endedAt = (moment: number, ends: readonly FinalRecord[]): readonly EndedPod[] =>
  ends.map((end) => ({ ...end, endedAt: moment }));

const byUid = <T extends Pick<EvictionRecord, 'uid'>>(pods: readonly T[]): ReadonlyMap<T['uid'], T> =>
  new Map(pods.map((pod) => [pod.uid, pod]));

async function taintedIn(store: Store, cluster: ClusterName): Promise<readonly string[]> {
  return (await Array.fromAsync(store.taintedNodes(cluster))).map(({ node }) => node).sort();
}

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clusterName, type PodUid } from '#shared/eviction/identity.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { kubernetesHistory } from '#shared/state/objects/kubernetes-history.ts';
import { KubernetesStore } from '#shared/state/objects/kubernetes-store.ts';
import { pastName } from '#shared/state/objects/node-eviction.ts';
import { pack } from '#shared/state/objects/packed.ts';
import { MAX_SLOTS, SLOT_CHARS } from '#shared/state/objects/past-slots.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import { aNode, anEnding, aRef, NOW, someRecords } from '#test/contracts/partition-builders.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = clusterName('in-cluster');
const ref = aRef(own, 'node-7');
/** Maximum size of any object as written to etcd in one request. */
const MAX_BYTES = 128 * 1024;

/** Objects that count the written bytes and record the size of the largest object. */
class CountedObjects extends FakeObjects {
  bytes = 0;
  largest = 0;
  /** Runs once, before the next write. */
  before: ((object: KubernetesObject) => void) | undefined;

  override async create(object: KubernetesObject): Promise<unknown> {
    return super.create(this.#count(object));
  }

  override async replace(object: KubernetesObject): Promise<unknown> {
    return super.replace(this.#count(object));
  }

  #count(object: KubernetesObject): KubernetesObject {
    this.before?.(object);
    const { length } = JSON.stringify(object);
    this.bytes += length;
    this.largest = Math.max(this.largest, length);
    return object;
  }
}

/** A node whose pods are evicted after ten seconds and immediately recreated. */
class Loop {
  now = NOW;
  readonly ended = new Map<PodUid, number>();
  readonly #store: KubernetesStore;
  readonly #pods: number;
  #live = someRecords(0);

  constructor(store: KubernetesStore, pods = 110) {
    this.#store = store;
    this.#pods = pods;
  }

  /** Evicts and recreates all pods this many times. */
  async turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) {
      this.now += 10_000;
      await this.#store.end(
        ref,
        this.#live.map((record) => anEnding(record, { name: record.uid.slice(0, 8) })),
        this.now,
      );
      for (const { uid } of this.#live) this.ended.set(uid, this.now);
      this.#live = someRecords(this.#pods, { dueAt: this.now + 10_000, startedAt: this.now });
      const { revision } = await this.#store.load(ref, this.now, []);
      const change = { node: aNode(), schedule: this.#live, end: [], live: true };
      assert.equal(await this.#store.commit(ref, revision, change, this.now), 'committed');
    }
  }

  /** Returns the pods that must not be scheduled again. */
  inWindow(): readonly PodUid[] {
    return [...this.ended].flatMap(([uid, at]) => (at >= this.now - ENDED_WINDOW_MS ? [uid] : []));
  }
}

function aLeader(objects = new CountedObjects()) {
  return { objects, store: new KubernetesStore({ objects, own, leads: () => true }) };
}

const anObject = (records: object) =>
  ({
    apiVersion: 'taintward.dev/v1',
    kind: 'NodeEviction',
    metadata: { name: ref.node },
    status: { ...ref, revision: 9, records: pack(records) },
  }) as KubernetesObject;

const uids = (pods: Iterable<PodUid>): readonly PodUid[] => [...pods].sort();

describe('a node whose pods are immediately recreated', () => {
  test('uses as many bytes per eviction after thousands of evictions as after the first', async () => {
    const { objects, store } = aLeader();
    const loop = new Loop(store);
    const perEviction: number[] = [];
    await loop.turns(10);
    for (let part = 0; part < 4; part++) {
      const [bytes, ended] = [objects.bytes, loop.ended.size];
      await loop.turns(20);
      perEviction.push((objects.bytes - bytes) / (loop.ended.size - ended));
    }
    const [first = 0] = perEviction;
    assert.ok(Math.max(...perEviction) < 1.25 * first, `bytes per eviction: ${perEviction.map(Math.round)}`);
    assert.ok(Math.max(...perEviction) < 1_000, `bytes per eviction: ${perEviction.map(Math.round)}`);
    assert.ok(objects.largest < MAX_BYTES, `the largest object has ${objects.largest} bytes`);
    // Ends older than the window are overwritten by new ends in the same object.
    const kept = await Array.fromAsync(objects.list());
    assert.ok(kept.length <= 9, `${kept.length} objects`);
    // The leader and its successor read the whole window.
    const expected = uids(loop.inWindow());
    assert.ok(expected.length > 9_000);
    for (const oneStore of [store, aLeader(objects).store]) {
      const { ended } = await oneStore.load(ref, loop.now);
      assert.deepEqual(uids(ended.keys()), expected);
    }
  });

  test('schedules no pod again within the window and lists each end once', async () => {
    const { objects, store } = aLeader();
    const loop = new Loop(store);
    await loop.turns(12);
    const [first] = loop.inWindow();
    assert.ok(first);
    const { revision } = await store.load(ref, loop.now, []);
    const schedule = someRecords(1, { uid: first });
    await store.commit(ref, revision, { schedule, end: [], live: true }, loop.now);
    for (const only of [undefined, [first]]) {
      const { scheduled, ended } = await store.load(ref, loop.now, only);
      assert.deepEqual([scheduled.has(first), ended.get(first)?.outcome], [false, 'evicted']);
    }
    const history = kubernetesHistory(store, new FakeObjects());
    const query = { cluster: own, from: 0, to: Number.POSITIVE_INFINITY };
    for (const narrowed of [query, { ...query, node: ref.node }]) {
      const entries = await Array.fromAsync(history.entries(narrowed));
      const done = entries.filter(({ event }) => event === 'evicted').map(({ uid }) => uid);
      assert.deepEqual(uids(done), uids(loop.ended.keys()));
    }
    assert.ok((await Array.fromAsync(objects.list())).length > 1);
  });

  test('loses and duplicates nothing when its leader is killed between two writes', async () => {
    for (let writes = 1; writes <= 3; writes++) {
      const objects = new CountedObjects();
      const loop = new Loop(aLeader(objects).store);
      await loop.turns(2);
      // The first write to another object than the node's begins a group of related writes.
      let left: number | undefined;
      objects.before = ({ metadata: { name } }) => {
        if (left === undefined && name !== ref.node) left = writes;
        if (left === undefined) return;
        left -= 1;
        if (left === 0) throw new Error('killed');
      };
      await assert.rejects(loop.turns(12), { message: 'killed' });
      objects.before = undefined;
      const { store } = aLeader(objects);
      const { ended } = await store.load(ref, loop.now);
      assert.deepEqual(uids(ended.keys()), uids(loop.ended.keys()));
      const more = someRecords(1).map((record) => anEnding(record));
      await store.end(ref, more, loop.now);
      const history = kubernetesHistory(store, new FakeObjects());
      const query = { cluster: own, from: 0, to: Number.POSITIVE_INFINITY };
      const entries = await Array.fromAsync(history.entries(query));
      const done = entries.filter(({ event }) => event === 'evicted').map(({ uid }) => uid);
      assert.deepEqual(uids(done), uids([...loop.ended.keys(), ...more.map(({ uid }) => uid)]));
    }
  });

  test('rejects more ends, but nothing else, when its objects are full, and accepts them when the old ones expired', async () => {
    const { objects, store } = aLeader();
    const past = { current: MAX_SLOTS - 1, newest: Array.from({ length: MAX_SLOTS }, () => NOW) };
    await objects.create(anObject({ node: aNode(), scheduled: [], ended: [], past }));
    const loop = new Loop(store);
    await assert.rejects(loop.turns(60), {
      name: 'StoreError',
      message:
        /^The evictions that ended on node node-7 of cluster in-cluster in the last half hour exceed the limit of 32 objects/,
    });
    // The last object is full and holds the maximum number of pods.
    assert.ok(loop.ended.size > 1_500, `${loop.ended.size} pods`);
    assert.ok(objects.largest < MAX_BYTES, `the largest object has ${objects.largest} bytes`);
    const { revision, ended, scheduled } = await store.load(ref, loop.now);
    assert.deepEqual(uids(ended.keys()), uids(loop.ended.keys()));
    const withoutEnds = { schedule: [], end: [], live: true };
    assert.equal(await store.commit(ref, revision, withoutEnds, loop.now), 'committed');
    // The pods are still scheduled, so their evictions are retried.
    assert.equal(scheduled.size, 110);
    loop.now = NOW + 60 * 60_000;
    await store.end(ref, [anEnding()], loop.now);
    const known = (await store.load(ref, loop.now)).ended.size;
    assert.equal(known, 1);
    await loop.turns(30);
    assert.equal((await store.load(ref, loop.now)).ended.size, loop.inWindow().length + known);
  });
});

test('reads a full window of an older release from one object and then writes small objects', async () => {
  const { objects, store } = aLeader();
  const ends = someRecords(17_000).map((record, index) => ({
    ...anEnding(record),
    endedAt: NOW - (17_000 - index) * 90,
  }));
  await objects.create(anObject({ node: aNode(), scheduled: someRecords(110), ended: ends }));
  objects.largest = 0;
  const window = ends.filter(({ endedAt }) => endedAt >= NOW - ENDED_WINDOW_MS).map(({ uid }) => uid);
  const known = async (each: KubernetesStore) => uids((await each.load(ref, NOW)).ended.keys());
  assert.deepEqual(await known(store), uids(window));
  const more = someRecords(1).map((record) => anEnding(record));
  await store.end(ref, more, NOW);
  assert.deepEqual(await known(store), uids([...window, ...more.map(({ uid }) => uid)]));
  assert.deepEqual(await known(aLeader(objects).store), await known(store));
  assert.ok(objects.largest < MAX_BYTES, `the largest object has ${objects.largest} bytes`);
});

test('purges ends that are older than the window, and expired history', async () => {
  const { objects, store } = aLeader();
  const loop = new Loop(store);
  await loop.turns(12);
  const names = async () =>
    (await Array.fromAsync(objects.list())).map((object) => (object as KubernetesObject).metadata.name);
  const [slot, history] = [pastName(ref, 0), pastName(ref, 'history')];
  await store.purge(loop.now);
  assert.deepEqual((await names()).sort(), [ref.node, slot, history].sort());
  await store.purge(loop.now + 60 * 60_000);
  assert.deepEqual((await names()).sort(), [ref.node, history].sort());
  await store.purge(loop.now + 8 * 24 * 60 * 60_000);
  assert.deepEqual(await names(), [ref.node]);
  assert.ok((await store.load(ref, loop.now)).node);
});

test('limits objects far below the size limit of etcd', () => {
  assert.ok(SLOT_CHARS < MAX_BYTES && MAX_BYTES < 1.5 * 1024 * 1024);
});

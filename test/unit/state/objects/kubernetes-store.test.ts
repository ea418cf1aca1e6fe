import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import { KubernetesStore } from '#shared/state/objects/kubernetes-store.ts';
import { distinct, HISTORY_CHARS, historyOf } from '#shared/state/objects/node-eviction.ts';
import { StoreError } from '#shared/state/store.ts';
import { HISTORY_DAYS, NODE_SECONDS } from '#shared/state/stored.ts';
import {
  aCluster,
  aNode,
  anEnding,
  aRecord,
  aRef,
  aTaint,
  NOW,
  someRecords,
} from '#test/contracts/partition-builders.ts';
import { storeContract } from '#test/contracts/store-contract.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = clusterName('in-cluster');
const ref = aRef(own, 'node-7');
const none = { schedule: [], end: [], live: true };
const DAY_MS = 24 * 3_600_000;

storeContract('KubernetesStore', async () => ({
  store: new KubernetesStore({ objects: new FakeObjects(), own }),
  close: async () => undefined,
}));

describe('KubernetesStore', () => {
  let objects: FakeObjects;
  let store: KubernetesStore;
  beforeEach(() => {
    objects = new FakeObjects();
    store = new KubernetesStore({ objects, own });
  });

  const status = async () => fieldsOf(fieldsOf(await objects.get('node-7'))['status']);

  test('names an object after its node and summarizes its evictions in plain text', async () => {
    const held = { by: { kind: 'hold', id: 'h1' }, since: NOW } as const;
    const schedule = [
      aRecord({ dueAt: NOW + 2_000 }),
      aRecord({ dueAt: NOW + 1_000 }),
      aRecord({ dueAt: NOW, held }),
      aRecord({ dueAt: NOW, gaveUpAt: NOW }),
    ];
    const node = aNode({ taints: [aTaint(), aTaint({ key: 'team', value: 'blue' })] });
    await store.commit(ref, 0, { ...none, node, schedule }, NOW);
    const { records: _records, ...words } = await status();
    assert.deepEqual(words, {
      cluster: 'in-cluster',
      node: 'node-7',
      revision: 1,
      scheduled: 2,
      held: 1,
      gaveUp: 1,
      taints: 'node.kubernetes.io/unreachable:NoExecute,team=blue:NoExecute',
      nextDue: new Date(NOW + 1_000).toISOString(),
    });
  });

  test('works on one node in sequence, on others meanwhile, and continues after a failure', async () => {
    const reads: { readonly name: string; readonly answer: PromiseWithResolvers<undefined> }[] = [];
    objects.get = (name) => {
      const answer = Promise.withResolvers<undefined>();
      reads.push({ name, answer });
      return answer.promise;
    };
    const first = store.load(ref, NOW);
    const second = store.load(ref, NOW);
    const other = store.load(aRef(own, 'node-8'), NOW);
    await setImmediate();
    assert.deepEqual(
      reads.map(({ name }) => name),
      ['node-7', 'node-8'],
    );
    reads[0]?.answer.reject(new ApiError('It does not answer.', 0));
    reads[1]?.answer.resolve(undefined);
    await assert.rejects(first, StoreError);
    await other;
    const third = store.load(ref, NOW);
    await setImmediate();
    assert.equal(reads.length, 3, 'the third waits for the second');
    reads[2]?.answer.resolve(undefined);
    assert.equal((await second).revision, 0);
    await setImmediate();
    reads[3]?.answer.resolve(undefined);
    assert.equal((await third).revision, 0);
  });

  for (const [pods, bytes] of [
    [50, 3_000],
    [110, 6_000],
    [500, 24_000],
  ] as const) {
    test(`stores ${pods} scheduled pods in less than ${bytes} bytes`, async () => {
      await store.commit(ref, 0, { ...none, node: aNode(), schedule: someRecords(pods) }, NOW);
      assert.ok(JSON.stringify(await objects.get('node-7')).length < bytes);
    });
  }

  test('writes a commit without changes, so that one of two writers gets a conflict', async () => {
    await store.commit(ref, 0, { ...none, node: aNode() }, NOW);
    const other = new KubernetesStore({ objects, own });
    for (const each of [store, other]) await each.load(ref, NOW);
    assert.equal(await store.commit(ref, 1, { ...none, node: aNode() }, NOW), 'committed');
    assert.equal(await other.commit(ref, 1, { ...none, node: aNode() }, NOW), 'conflict');
    assert.equal((await other.load(ref, NOW)).revision, 2);
  });

  test('writes twice for a load, a commit, and an end', async () => {
    const records = someRecords(30);
    const { revision } = await store.load(ref, NOW);
    await store.commit(ref, revision, { ...none, node: aNode(), schedule: records }, NOW);
    await store.end(
      ref,
      records.map((record) => anEnding(record)),
      NOW,
    );
    assert.equal(objects.writes, 2);
  });

  test('reads an object once as the leader and then uses its own writes', async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    const [first, second] = someRecords(2);
    assert.ok(first && second);
    let gets = 0;
    const { get } = objects;
    objects.get = (name) => {
      gets += 1;
      return get.call(objects, name);
    };
    await leader.commit(ref, 0, { ...none, node: aNode(), schedule: [first, second] }, NOW);
    const loaded = await leader.load(ref, NOW);
    await leader.end(ref, [anEnding(first)], NOW);
    await leader.commit(ref, loaded.revision + 1, { ...none, node: aNode() }, NOW);
    const { scheduled, ended, revision } = await leader.load(ref, NOW);
    assert.deepEqual([[...scheduled.keys()], [...ended.keys()], revision], [[second.uid], [first.uid], 3]);
    assert.equal(gets, 1);
  });

  test('unpacks an object once as the leader, however often its node is requested', async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    await leader.commit(ref, 0, { ...none, node: aNode(), schedule: someRecords(50) }, NOW);
    const [first] = await leader.allOf(ref);
    assert.ok(first);
    assert.equal((await leader.allOf(ref))[0]?.scheduled, first.scheduled);
    await leader.end(ref, [anEnding(first.scheduled[0])], NOW);
    assert.equal((await leader.allOf(ref))[0]?.scheduled.length, 49);
  });

  test("detects another writer's change as the leader at its next write and then rereads the object", async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    await leader.commit(ref, 0, { ...none, node: aNode(), schedule: [aRecord()] }, NOW);
    const object = (await objects.get('node-7')) as { metadata: { resourceVersion: string } };
    await objects.remove('node-7', object.metadata.resourceVersion);
    assert.equal(await leader.commit(ref, 1, { ...none, node: aNode() }, NOW), 'conflict');
    assert.equal((await leader.load(ref, NOW)).revision, 0);
  });

  test("records an end as the leader despite another writer's change", async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    const [first, second] = someRecords(2);
    assert.ok(first && second);
    await leader.commit(ref, 0, { ...none, node: aNode(), schedule: [first, second] }, NOW);
    await new KubernetesStore({ objects, own }).end(ref, [anEnding(first)], NOW);
    await leader.end(ref, [anEnding(second)], NOW);
    const { scheduled, ended } = await leader.load(ref, NOW);
    assert.deepEqual([scheduled.size, [...ended.keys()]], [0, [first.uid, second.uid]]);
  });

  test('rereads an object as the leader after a write whose answer was lost', async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    const record = aRecord();
    await leader.commit(ref, 0, { ...none, node: aNode(), schedule: [record] }, NOW);
    const { replace } = objects;
    objects.replace = async (object) => {
      await replace.call(objects, object);
      throw new ApiError('the connection broke', 0);
    };
    await assert.rejects(leader.end(ref, [anEnding(record)], NOW), { name: 'StoreError' });
    assert.equal((await leader.load(ref, NOW)).scheduled.size, 0);
  });

  test('serializes concurrent commits, ends, and loads of a node, without conflicts or older revisions', async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    const records = someRecords(20);
    await leader.commit(ref, 0, { ...none, node: aNode(), schedule: records }, NOW);
    const { writes } = objects;
    const seen: number[] = [];
    await Promise.all(
      records.flatMap((record) => [
        leader.end(ref, [anEnding(record)], NOW),
        leader.load(ref, NOW).then(({ revision }) => seen.push(revision)),
      ]),
    );
    assert.equal(objects.writes - writes, records.length);
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
    );
    assert.equal((await leader.load(ref, NOW)).scheduled.size, 0);
  });

  test('limits history by forgetting the oldest entries, but never recent ends', async () => {
    for (let minute = 0; minute < 60; minute++) {
      const ends = someRecords(80).map((record) => anEnding(record, { outcome: 'canceled' }));
      await store.end(ref, ends, NOW + minute * 60_000);
    }
    const objects = await store.allOf(ref);
    const moments = distinct(objects.flatMap(historyOf)).map(({ at }) => (at - NOW) / 60_000);
    for (const { history = '' } of objects) assert.ok(history.length <= HISTORY_CHARS);
    assert.equal(moments.at(-1), 59);
    assert.ok((moments[0] ?? 0) > 0);
    assert.ok(moments.length > 20, `${moments.length} moments are left`);
    assert.equal((await store.load(ref, NOW + 59 * 60_000)).ended.size, 22 * 80);
  });

  test('omits expired history from the next write', async () => {
    await store.end(ref, [anEnding()], NOW);
    await store.end(ref, [anEnding()], NOW + DAY_MS);
    await store.end(ref, [anEnding()], NOW + HISTORY_DAYS * DAY_MS);
    const [kept] = await store.allOf(ref);
    const days = kept && historyOf(kept).map(({ at }) => (at - NOW) / DAY_MS);
    assert.deepEqual(days, [1, HISTORY_DAYS]);
  });

  test('purges nodes that were idle for long and have no history', async () => {
    const [idle, ending, live] = [aRef(own, 'idle'), aRef(own, 'told'), aRef(own, 'live')];
    const over = NOW + NODE_SECONDS * 1000;
    const untainted = { ...none, node: aNode({ taints: [] }), live: false };
    for (const each of [idle, ending]) await store.commit(each, 0, untainted, NOW);
    await store.commit(live, 0, { ...none, node: aNode() }, NOW);
    await store.end(ending, [anEnding()], NOW + 1);
    const left = async (now: number) => {
      await store.purge(now);
      return (await Array.fromAsync(store.kept())).map(({ ref: { node } }) => node).sort();
    };
    assert.deepEqual(await left(over - 1), ['idle', 'live', 'told']);
    assert.deepEqual(await left(over), ['live', 'told']);
    assert.deepEqual(await left(over + 1), ['live']);
  });

  test('does not purge a node with scheduled evictions, however long it was idle', async () => {
    await store.commit(
      ref,
      0,
      { node: aNode({ taints: [] }), schedule: [aRecord()], end: [], live: false },
      NOW,
    );
    await store.purge(NOW + NODE_SECONDS * 1000);
    assert.equal((await store.load(ref, NOW)).scheduled.size, 1);
  });

  test('forgets a purged node as the leader', async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    await leader.commit(ref, 0, { ...none, node: aNode({ taints: [] }), live: false }, NOW);
    await leader.purge(NOW + NODE_SECONDS * 1000);
    assert.equal((await leader.load(ref, NOW)).revision, 0);
  });

  test('stops a purge when it loses the lease', async () => {
    const refs = [aRef(own, 'one'), aRef(own, 'two')];
    for (const node of refs)
      await store.commit(node, 0, { ...none, node: aNode({ taints: [] }), live: false }, NOW);
    let leads = true;
    const former = new KubernetesStore({ objects, own, leads: () => leads });
    const { remove } = objects;
    objects.remove = async (...given) => {
      await remove.apply(objects, given);
      leads = false;
    };
    await assert.rejects(former.purge(NOW + NODE_SECONDS * 1000), {
      message: /does(n.t| not) hold the lease/,
    });
    assert.equal((await Array.fromAsync(store.kept())).length, 1);
  });

  test('assigns a tainted node to the cluster in its state, whatever its labels', async () => {
    await store.commit(ref, 0, { ...none, node: aNode() }, NOW);
    const object = (await objects.get('node-7')) as Parameters<FakeObjects['replace']>[0];
    const labels = { ...object.metadata.labels, 'taintward.dev/cluster': 'other' };
    await objects.replace({ ...object, metadata: { ...object.metadata, labels } });
    assert.deepEqual(await Array.fromAsync(store.taintedNodes(clusterName('other'))), []);
  });

  test('rejects writes without the lease', async () => {
    const idle = new KubernetesStore({ objects, own, leads: () => false });
    const refusal = { name: 'StoreError', message: /does(n.t| not) hold the lease/ };
    await assert.rejects(idle.commit(ref, 0, { ...none, node: aNode() }, NOW), refusal);
    await assert.rejects(idle.end(ref, [anEnding()], NOW), refusal);
    assert.equal(objects.writes, 0);
  });

  test("rejects a state that exceeds an object's size limit and names the node", async () => {
    const noise = () => Array.from({ length: 400 }, () => Math.random().toString(36)).join('');
    const schedule = someRecords(600).map((record) => ({
      ...record,
      failure: { since: NOW, error: noise() },
    }));
    await assert.rejects(store.commit(ref, 0, { ...none, node: aNode(), schedule }, NOW), {
      name: 'StoreError',
      message:
        /^The state of node node-7 of cluster in-cluster exceeds the limit of \d+ characters: it has \d+, with 600 scheduled/,
    });
  });

  for (const [what, change] of [
    ['records that are no gzip', { records: 'AAAA' }],
    ['a revision that is none', { revision: 'many' }],
  ] as const) {
    test(`rejects an object with ${what}`, async () => {
      await store.commit(ref, 0, { ...none, node: aNode() }, NOW);
      const object = (await objects.get('node-7')) as Parameters<FakeObjects['replace']>[0];
      await objects.replace({ ...object, status: { ...(await status()), ...change } } as typeof object);
      await assert.rejects(store.load(ref, NOW), { name: 'StoreError', message: /cannot be read/ });
    });
  }

  test('reports an unreadable object as the leader and continues with the others', async () => {
    const events: string[] = [];
    const unreadable = ({ message }: Error) => void events.push(message);
    const leader = new KubernetesStore({ objects, own, leads: () => true, unreadable });
    await store.commit(ref, 0, { ...none, node: aNode(), schedule: [aRecord()] }, NOW);
    await store.commit(aRef(own, 'node-8'), 0, { ...none, node: aNode(), schedule: [aRecord()] }, NOW);
    const object = (await objects.get('node-7')) as Parameters<FakeObjects['replace']>[0];
    await objects.replace({ ...object, status: { ...(await status()), records: 'AAAA' } } as typeof object);
    const nodes = (await Array.fromAsync(leader.upcoming())).map((each) => each.ref.node);
    assert.deepEqual(nodes, ['node-8']);
    assert.equal(events.length, 1);
    assert.match(events[0] ?? '', /of node node-7 of cluster in-cluster cannot be read/);
    await assert.rejects(Array.fromAsync(store.upcoming()), { name: 'StoreError' });
  });

  test('detects as the leader that an unreadable object was deleted', async () => {
    const leader = new KubernetesStore({ objects, own, leads: () => true });
    await store.commit(ref, 0, { ...none, node: aNode() }, NOW);
    const object = (await objects.get('node-7')) as Parameters<FakeObjects['replace']>[0];
    await objects.replace({ ...object, status: { ...(await status()), records: 'AAAA' } } as typeof object);
    await assert.rejects(leader.load(ref, NOW), { name: 'StoreError' });
    const { metadata } = (await objects.get('node-7')) as { metadata: { resourceVersion: string } };
    await objects.remove('node-7', metadata.resourceVersion);
    assert.equal((await leader.load(ref, NOW)).revision, 0);
  });

  test('stores nodes of different clusters in different objects, whatever their names', async () => {
    const refs = [ref, aRef(aCluster(), 'node-7'), aRef(aCluster(), 'node-7'), aRef(aCluster(), '--- !')];
    for (const each of refs) await store.commit(each, 0, { ...none, node: aNode() }, NOW);
    for (const each of refs) assert.deepEqual((await store.load(each, NOW)).ref, each);
    assert.equal(objects.writes, refs.length);
  });
});

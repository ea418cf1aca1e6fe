import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { KubernetesHistory } from '#shared/state/objects/kubernetes-history.ts';
import { KubernetesStore } from '#shared/state/objects/kubernetes-store.ts';
import { ObjectLeases } from '#shared/state/objects/object-leases.ts';
import { ObjectPermits } from '#shared/state/objects/object-permits.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import { askedUnder, type Names, namesOf, underNames } from '#shared/state/objects/shown-name.ts';
import { Operator } from '#shared/state/operator.ts';
import { historyContract } from '#test/contracts/history-contract.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';
import { aNode, anEnding, aRecord, aRef, NOW, someRecords } from '#test/contracts/partition-builders.ts';
import { permitsContract } from '#test/contracts/permits-contract.ts';
import { rulesStoreContract } from '#test/contracts/rules-store-contract.ts';
import { storeContract } from '#test/contracts/store-contract.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = clusterName('in-cluster');

/** Stored objects, with which any number of processes start. */
function keptObjects() {
  const all = {
    nodes: new FakeObjects(),
    rules: new FakeObjects(),
    maps: new FakeObjects(),
    leases: new FakeObjects(),
  };
  const under = (names: Names) => {
    const store = new KubernetesStore({ objects: all.nodes, own });
    const kept = {
      store,
      rulesStore: new ObjectRulesStore({ objects: all.rules }),
      permits: new ObjectPermits(all.maps),
      history: new KubernetesHistory({ store, configMaps: all.maps }),
      leases: new ObjectLeases({ objects: all.leases }),
    };
    return underNames(kept, names);
  };
  return { ...all, under };
}

/** A naming under which each stored cluster name differs from its displayed name. */
const OTHERS: Names = {
  stored: (cluster) => clusterName(`kept-${cluster}`),
  shown: (cluster) => clusterName(cluster.replace(/^kept-/, '')),
};
const close = async () => undefined;

storeContract('a store under other names', async () => ({ store: keptObjects().under(OTHERS).store, close }));
rulesStoreContract('a rulebook under other names', async () => ({
  rulesStore: keptObjects().under(OTHERS).rulesStore,
  close,
}));
leaseContract('leases under other names', async () => ({
  leases: keptObjects().under(OTHERS).leases,
  close,
}));
permitsContract('permits under other names', async () => {
  const kept = keptObjects();
  return { open: () => kept.under(OTHERS).permits, close };
});
historyContract('a history under other names', async () => {
  const { store, history } = keptObjects().under(OTHERS);
  return { store, history, notes: history, close };
});

describe('a service with a display name', () => {
  const prod = clusterName('prod');
  const named = (shown: string) => namesOf(own, () => clusterName(shown));

  test('uses all state from before', async () => {
    const { under, rules, leases } = keptObjects();
    const [before, after] = [under(named('in-cluster')), under(named('prod'))];
    const pods = someRecords(2);
    const [first = aRecord()] = pods;
    await before.store.commit(aRef(own), 0, { node: aNode(), schedule: pods, end: [], live: true }, NOW);
    await before.store.end(aRef(own), [anEnding(first)], NOW);
    const clock = new DrivenClock(NOW);
    await new Operator({ rulesStore: before.rulesStore, clock, who: 'anna' }).stop(own, { why: 'x' });
    const lease = await before.leases.take(own, undefined, 'a', NOW);

    const { ref, scheduled, ended } = await after.store.load(aRef(prod), NOW);
    assert.deepEqual([ref.cluster, scheduled.size, ended.size], ['prod', 1, 1]);
    assert.deepEqual(
      (await Array.fromAsync(after.store.upcoming())).map(({ ref: { cluster } }) => cluster),
      ['prod'],
    );
    const { soonest, total } = await after.store.countdowns(9);
    assert.deepEqual([total, soonest[0]?.ref.cluster], [1, 'prod']);
    assert.deepEqual(
      after.store.standings().map(({ cluster }) => cluster),
      ['prod'],
    );
    assert.equal((await after.rulesStore.read(prod)).orders.stop?.why, 'x');
    const audited = await after.rulesStore.audit({ cluster: prod, from: 0, to: NOW + 1 });
    assert.deepEqual(
      audited.map(({ cluster, what }) => [cluster, what]),
      [['prod', 'stopped evictions']],
    );
    assert.deepEqual(await after.leases.look(prod), lease && { ...lease, cluster: prod });
    const entries = await Array.fromAsync(after.history.entries({ cluster: prod, from: 0, to: NOW + 1 }));
    assert.deepEqual([...new Set(entries.map(({ ref: { cluster } }) => cluster))], ['prod']);

    await new Operator({ rulesStore: after.rulesStore, clock, who: 'anna' }).resume(prod, 'over');
    assert.equal((await before.rulesStore.read(own)).orders.stop, undefined);
    const names = async (objects: FakeObjects) =>
      (await Array.fromAsync(objects.list())).map((each) => (each as KubernetesObject).metadata.name);
    assert.deepEqual([await names(rules), await names(leases)], [['in-cluster'], ['taintward-in-cluster']]);
  });

  test('applies a policy file once, whatever its name', async () => {
    const { under } = keptObjects();
    const file = { hash: 'h', writtenAt: NOW };
    const { rulesStore } = under(named('in-cluster'));
    const { orders } = await rulesStore.read(own);
    const entry = { cluster: own, who: 'anna', at: NOW, kind: 'policy', what: 'applied' } as const;
    const change = { next: { holds: [] }, entry };
    assert.equal(await rulesStore.noteFile(own, { orders, file: undefined }, file, change), 'changed');
    const renamed = under(named('prod')).rulesStore;
    assert.deepEqual(await renamed.appliedFile(prod), file);
    const [first] = await renamed.audit({ from: 0, to: NOW + 1 });
    assert.equal(first?.cluster, 'prod');
  });

  test('records the name in its lease until it runs without a name', async () => {
    const objects = new FakeObjects();
    const leases = new ObjectLeases({ objects, shownAs: prod });
    assert.equal(await leases.shownName(own), undefined);
    const lease = await leases.take(own, undefined, 'a', NOW);
    assert.ok(lease);
    assert.equal(await leases.shownName(own), 'prod');
    await leases.renew(lease, { renewedAt: NOW + 1 });
    assert.equal(await leases.shownName(own), 'prod');
    await new ObjectLeases({ objects }).renew(lease, { renewedAt: NOW + 2 });
    assert.equal(await leases.shownName(own), undefined);
  });

  test('performs requests that name the stored cluster name', () => {
    const body = (cluster: string) =>
      JSON.stringify({ v: 1, cluster, node: 'n', kind: 'retry', pods: ['u'] });
    const cluster = (asked: string) =>
      JSON.parse(askedUnder([{ body: body(asked) }], named('prod'))[0]?.body ?? '').cluster;
    assert.deepEqual(['in-cluster', 'prod', 'other'].map(cluster), ['prod', 'prod', 'other']);
    const torn = [{ body: '{' }, { body: 'null' }];
    assert.deepEqual(askedUnder(torn, named('prod')), torn);
  });
});

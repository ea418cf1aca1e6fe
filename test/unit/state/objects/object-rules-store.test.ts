import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { timeText } from '#shared/time/time-text.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { rulesStoreContract } from '#test/contracts/rules-store-contract.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = clusterName('in-cluster');
const DAY_MS = 24 * 3_600_000;

rulesStoreContract('ObjectRulesStore', async () => ({
  rulesStore: new ObjectRulesStore({ objects: new FakeObjects() }),
  close: async () => undefined,
}));

describe('ObjectRulesStore', () => {
  let objects: FakeObjects;
  let rulesStore: ObjectRulesStore;
  beforeEach(() => {
    objects = new FakeObjects();
    rulesStore = new ObjectRulesStore({ objects });
  });

  const entry = (at: number, fields: Partial<AuditEntry> = {}): AuditEntry => ({
    cluster: own,
    actor: 'anna',
    at,
    kind: 'hold',
    message: 'held node n1',
    ...fields,
  });
  const audited = async () => (await rulesStore.audit({ from: 0, to: NOW * 2 })).map(({ at }) => at - NOW);

  test('names an object after its cluster and summarizes its rules in plain text', async () => {
    const { orders } = await rulesStore.read(own);
    const stop = { actor: 'anna', at: NOW, reason: 'an incident', scope: 'cluster', until: NOW } as const;
    await rulesStore.changeOrders(own, orders, { ...orders, stops: [stop] }, entry(NOW));
    const { mode, stopped, holds, trips } = fieldsOf(fieldsOf(await objects.get('in-cluster'))['status']);
    const until = `until ${timeText(NOW)}`;
    assert.deepEqual(
      { mode, stopped, holds, trips },
      { mode: 'observe', stopped: until, holds: 0, trips: 0 },
    );
  });

  test('retries after a concurrent change of another part, and keeps both changes', async () => {
    const { orders, guard } = await rulesStore.read(own);
    const trip = { scope: 'cluster', trippedAt: NOW, nodes: 6, outOf: 10 } as const;
    const results = await Promise.all([
      rulesStore.changeOrders(own, orders, { stops: [], holds: [] }, entry(NOW)),
      rulesStore.changeGuard(own, guard, [trip]),
      rulesStore.note(entry(NOW + 1, { kind: 'retry' })),
    ]);
    assert.deepEqual(results.slice(0, 2), ['changed', 'changed']);
    const now = await rulesStore.read(own);
    assert.deepEqual([now.orders.revision, now.guard.trips], [1, [trip]]);
    assert.deepEqual(await audited(), [1, 0]);
  });

  test('keeps released guard trips when operator controls change', async () => {
    const { orders, guard } = await rulesStore.read(own);
    const released = { scope: 'customTaints', trippedAt: NOW, nodes: 6, outOf: 10, upTo: 7 } as const;
    await rulesStore.changeGuard(own, guard, [released]);
    await rulesStore.changeOrders(own, orders, { stops: [], holds: [] }, entry(NOW));
    assert.deepEqual((await rulesStore.read(own)).guard, { revision: 1, trips: [], released: [released] });
  });

  test('removes the oldest entries of an audit log that is too long or too old', async () => {
    for (let second = 0; second < 400; second++) {
      const noise = Array.from({ length: 10 }, () => Math.random().toString(36)).join('');
      await rulesStore.note(entry(NOW + second, { message: noise }));
    }
    const entries = await audited();
    assert.ok(entries.length > 100 && entries.length < 400, `${entries.length} are left`);
    assert.equal(entries[0], 399);
    await rulesStore.note(entry(NOW + 8 * 24 * 3_600_000));
    assert.equal((await audited()).length, 1);
  });

  test('keeps an entry for the days of history, and the newest one whatever its size', async () => {
    await rulesStore.note(entry(NOW));
    await rulesStore.note(entry(NOW + HISTORY_DAYS * DAY_MS - 1));
    assert.equal((await audited()).length, 2);
    await rulesStore.note(entry(NOW + HISTORY_DAYS * DAY_MS));
    assert.equal((await audited()).length, 2);
    const message = randomBytes(64 * 1024).toString('hex');
    await rulesStore.note(entry(NOW + HISTORY_DAYS * DAY_MS + 1, { message }));
    assert.deepEqual(await audited(), [HISTORY_DAYS * DAY_MS + 1]);
  });

  test('rejects the rules with an unknown field, but not those of other clusters', async () => {
    await rulesStore.changeOrders(
      own,
      { revision: 0, stops: [], holds: [] },
      { stops: [], holds: [] },
      entry(NOW),
    );
    const object = (await objects.get('in-cluster')) as KubernetesObject & { readonly status: object };
    const orders = { ...fieldsOf(fieldsOf(object.status)['orders']), never: true };
    const changed = { ...object, status: { ...object.status, orders } };
    await objects.replace(changed);
    await assert.rejects(rulesStore.read(own), {
      name: 'StoreError',
      message: /rules of cluster in-cluster cannot be read .*never.*newer release/,
    });
    const other = clusterName('other');
    assert.deepEqual([...(await rulesStore.readAll([own, other])).keys()], [other]);
  });
});

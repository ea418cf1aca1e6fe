import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Hold, type Policy, type Stop, type Trip } from '#shared/eviction/policy.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { policyText } from '#shared/state/policy-document.ts';
import {
  type AuditEntry,
  type OperatorControls,
  type RulesStore,
  stopsOf,
} from '#shared/state/rules-store.ts';
import { eventually } from './eventually.ts';
import { aCluster, NOW } from './partition-builders.ts';

/** A rules store under contract; every test uses clusters of its own, so one instance serves all tests. */
export interface RulesStoreUnderContract {
  readonly rulesStore: RulesStore;
  close(): Promise<void>;
}

const anna = { actor: 'anna', at: NOW, reason: 'an incident' };
const aStop = (fields: Partial<Stop> = {}): Stop => ({ ...anna, scope: 'cluster', ...fields });
const anEntry = (fields: Partial<AuditEntry> = {}): AuditEntry => ({
  actor: 'anna',
  at: NOW,
  kind: 'stop',
  message: 'stopped evictions',
  reason: 'an incident',
  ...fields,
});
const aTrip: Trip = { scope: 'zone', zone: 'a', trippedAt: NOW, nodes: 6, outOf: 10 };

/** A policy that sets every field. */
const FULL: Required<Policy> = {
  ...DEFAULT_POLICY,
  mode: 'enforce',
  evictionRate: 0.5,
  maxEvictionsPerWorkload: { count: '10%', windowMs: 600_000 },
  requireExpiredLease: false,
  exclude: [
    { namespaces: ['kube-system'], taints: ['a/b'], until: NOW },
    {
      labels: {
        matchLabels: { app: 'web' },
        matchExpressions: [{ key: 'x', operator: 'In', values: ['y'] }],
      },
    },
  ],
  include: [{ namespaces: ['default'] }],
  method: { kind: 'evict', timeoutMs: 900_000, onTimeout: 'fail' },
  tolerationSecondsOverrides: { 'node.kubernetes.io/unreachable': 30 },
  treatAsNoExecute: ['maintenance'],
};

const HOLDS: readonly Hold[] = [
  { ...anna, id: 'h1', target: { kind: 'node', node: nodeName('node-1') } },
  {
    ...anna,
    id: 'h2',
    until: NOW + 60_000,
    target: { kind: 'workload', namespace: 'default', owner: { kind: 'Deployment', name: 'web' } },
  },
  {
    ...anna,
    id: 'h3',
    target: { kind: 'pod', namespace: 'default', name: 'web-0', uid: podUid('u') },
  },
  { ...anna, id: 'h4', target: { kind: 'namespace', namespace: 'default' } },
  {
    ...anna,
    id: 'h5',
    target: {
      kind: 'labels',
      namespace: 'default',
      labels: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] },
    },
  },
  { ...anna, id: 'h6', target: { kind: 'zone', zone: 'a' } },
  { ...anna, id: 'h7', target: { kind: 'pod', namespace: 'default', name: 'web-0' } },
  { ...anna, id: 'h8', target: { kind: 'labels', labels: { matchLabels: { app: 'web' } } } },
];

/** Registers the tests that every implementation of `RulesStore` has to pass. */
export function rulesStoreContract(name: string, make: () => Promise<RulesStoreUnderContract>): void {
  describe(`${name} keeps the contract of rules stores`, () => {
    let underContract: RulesStoreUnderContract | undefined;
    let rulesStore: RulesStore;
    before(async () => {
      underContract = await make();
      rulesStore = underContract.rulesStore;
    });
    after(() => underContract?.close());

    const change = async (
      cluster: ClusterName,
      fields: Partial<Omit<OperatorControls, 'revision'>>,
      entry: Partial<AuditEntry> = {},
    ) => {
      const { orders } = await rulesStore.read(cluster);
      return rulesStore.changeOrders(
        cluster,
        orders,
        { ...orders, ...fields },
        anEntry({ cluster, ...entry }),
      );
    };

    test('returns empty rules for an unknown cluster', async () => {
      const cluster = aCluster('admin@prod/eu:1');
      const nothing = {
        orders: { revision: 0, stops: [], holds: [] },
        guard: { revision: 0, trips: [] },
        fleetRevision: 0,
      };
      assert.deepEqual(await rulesStore.read(cluster), nothing);
      assert.deepEqual(await rulesStore.readAll([cluster]), new Map([[cluster, nothing]]));
    });

    test('reads stored rules back unchanged, without canceled ones', async () => {
      const cluster = aCluster();
      const policy = { text: `# a comment\n${policyText(FULL)}`, read: FULL, revision: 1 };
      const stop = aStop({ until: NOW + 1 });
      assert.equal(await change(cluster, { policy, stops: [stop], holds: HOLDS }), 'changed');
      assert.deepEqual((await rulesStore.read(cluster)).orders, {
        revision: 1,
        policy,
        stops: [stop],
        holds: HOLDS,
      });
      const { orders } = await rulesStore.read(cluster);
      assert.equal(
        await rulesStore.changeOrders(
          cluster,
          orders,
          { ...orders, stops: [], holds: [] },
          anEntry({ cluster }),
        ),
        'changed',
      );
      const left = { revision: 2, policy, stops: [], holds: [] };
      // With known rules for all clusters, the cluster's own are still read strongly consistent.
      const { fleetRevision } = await rulesStore.read(cluster);
      assert.deepEqual((await rulesStore.read(cluster, { fleetRevision })).orders, left);
    });

    test('rejects the second of two changes to the same revision, without an audit entry', async () => {
      const cluster = aCluster();
      const { orders } = await rulesStore.read(cluster);
      const entryBy = (who: string) =>
        rulesStore.changeOrders(
          cluster,
          orders,
          { ...orders, stops: [aStop({ actor: who })] },
          anEntry({ cluster, actor: who }),
        );
      const outcomes = await Promise.all([entryBy('anna'), entryBy('ben')]);
      assert.deepEqual(outcomes.toSorted(), ['changed', 'conflict']);
      const winner = outcomes[0] === 'changed' ? 'anna' : 'ben';
      assert.equal((await rulesStore.read(cluster)).orders.stops[0]?.actor, winner);
      assert.deepEqual(
        (await rulesStore.audit({ cluster, from: NOW, to: NOW + 1 }))
          .filter((entry) => entry.cluster === cluster)
          .map(({ actor: who }) => who),
        [winner],
      );
    });

    test('trips and releases a guard only at the revision that was read', async () => {
      const cluster = aCluster();
      const { guard: none } = await rulesStore.read(cluster);
      assert.equal(await rulesStore.changeGuard(cluster, none, [aTrip]), 'changed');
      assert.equal(await rulesStore.changeGuard(cluster, none, []), 'conflict');
      const { guard: tripped } = await rulesStore.read(cluster);
      assert.deepEqual(tripped, { revision: 1, trips: [aTrip] });
      const entry = anEntry({ cluster, kind: 'release-guard' });
      assert.equal(await rulesStore.changeGuard(cluster, tripped, [], entry), 'changed');
      assert.equal(await rulesStore.changeGuard(cluster, tripped, [], entry), 'conflict');
      assert.deepEqual((await rulesStore.read(cluster)).guard, { revision: 2, trips: [] });
      const noted = await rulesStore.audit({ cluster, from: NOW, to: NOW + 1 });
      assert.equal(noted.filter((each) => each.cluster === cluster).length, 1);
    });

    test('rewrites a guard unchanged only at the revision that was read', async () => {
      const cluster = aCluster();
      const { guard: none } = await rulesStore.read(cluster);
      assert.equal(await rulesStore.touchGuard(cluster, { revision: 1, trips: [] }), 'conflict');
      const released = { ...aTrip, scope: 'customTaints', upTo: 7 } as const;
      await rulesStore.changeGuard(cluster, none, [aTrip, released]);
      const before = await rulesStore.read(cluster);
      assert.equal(await rulesStore.touchGuard(cluster, before.guard), 'changed');
      assert.deepEqual(await rulesStore.read(cluster), before);
      assert.equal(await rulesStore.touchGuard(cluster, { ...before.guard, revision: 2 }), 'conflict');
    });

    test("returns the guard's own actions in the audit of its cluster", async () => {
      const cluster = aCluster();
      const { guard: none } = await rulesStore.read(cluster);
      const entry = anEntry({ cluster, actor: 'the guard', kind: 'guard-tripped' });
      assert.equal(await rulesStore.changeGuard(cluster, none, [aTrip], entry), 'changed');
      for (const query of [{ cluster }, {}]) {
        const noted = await rulesStore.audit({ ...query, from: NOW, to: NOW + 1 });
        assert.deepEqual(
          noted.filter((each) => each.cluster === cluster).map(({ kind }) => kind),
          ['guard-tripped'],
        );
      }
    });

    test('records an audit entry without a change of rules, and nothing else', async () => {
      const cluster = aCluster();
      const entry = anEntry({ cluster, kind: 'retry', message: 'had evictions tried again' });
      await rulesStore.note(entry);
      await eventually(async () =>
        assert.deepEqual(await rulesStore.audit({ cluster, from: NOW, to: NOW + 1 }), [entry]),
      );
      assert.equal((await rulesStore.read(cluster)).orders.revision, 0);
    });

    test('distinguishes released guard trips from active ones', async () => {
      const cluster = aCluster();
      const { guard: none } = await rulesStore.read(cluster);
      const released = [
        { ...aTrip, scope: 'customTaints', upTo: 7 },
        { ...aTrip, scope: 'zone', zone: 'a', releasedAt: NOW },
      ] as const;
      assert.equal(await rulesStore.changeGuard(cluster, none, [...released, aTrip]), 'changed');
      const { guard } = await rulesStore.read(cluster);
      assert.deepEqual(guard, { revision: 1, trips: [aTrip], released });
    });

    test('reads a stop of all clusters with each cluster, and cancels it only at the revision that was read', async () => {
      const cluster = aCluster();
      const stop = aStop({ scope: 'fleet' });
      const entry = anEntry({ message: 'stopped all clusters' });
      const { fleetRevision } = await rulesStore.read(cluster);
      assert.equal(await rulesStore.changeFleetStop(undefined, stop, entry), 'changed');
      assert.equal(await rulesStore.changeFleetStop(undefined, aStop({ at: NOW + 1 }), entry), 'conflict');
      assert.deepEqual((await rulesStore.read(cluster)).fleetStop, stop);
      assert.deepEqual(await rulesStore.fleetStop(), stop);
      const other = aStop({ scope: 'fleet', at: NOW + 1 });
      assert.equal(await rulesStore.changeFleetStop(stop, other, entry), 'changed');
      assert.equal(await rulesStore.changeFleetStop(stop, undefined, entry), 'conflict');
      await eventually(async () =>
        assert.deepEqual((await rulesStore.readAll([cluster])).get(cluster)?.fleetStop, other),
      );
      assert.equal(await rulesStore.changeFleetStop(other, undefined, entry), 'changed');
      assert.equal('fleetStop' in (await rulesStore.read(cluster)), false);
      assert.equal(await rulesStore.fleetStop(), undefined);
      // The revision is the only trace of a stop that was set and canceled between two reads.
      assert.equal((await rulesStore.read(cluster)).fleetRevision, fleetRevision + 3);
    });

    test('resumes a cluster alone from a stop of all clusters, until they are stopped again', async () => {
      const [resumed, other, registeredLater] = [aCluster(), aCluster(), aCluster()];
      // Without progress of the clock, only the revision distinguishes the stops.
      const operator = { rulesStore, clock: { now: () => NOW }, actor: 'anna' };
      const stopped = async () => {
        const clusters = [resumed, other, registeredLater];
        const read = await Promise.all(clusters.map(async (each) => stopsOf(await rulesStore.read(each))));
        await eventually(async () => {
          const all = await rulesStore.readAll(clusters);
          assert.deepEqual(
            clusters.map((each) => stopsOf(all.get(each) ?? assert.fail())),
            read,
          );
        });
        return read.map(({ length }) => length);
      };
      await perform({ kind: 'stop', cluster: resumed, reason: 'a drill' }, operator);
      await perform({ kind: 'stop', reason: 'an incident' }, operator);
      assert.deepEqual(await stopped(), [2, 1, 1]);
      await perform({ kind: 'resume', cluster: resumed, reason: 'the drill is over' }, operator);
      assert.deepEqual(await stopped(), [1, 1, 1]);
      await perform({ kind: 'resume', cluster: resumed, reason: 'it is well' }, operator);
      assert.deepEqual(await stopped(), [0, 1, 1]);
      await assert.rejects(perform({ kind: 'resume', cluster: resumed, reason: 'again' }, operator), {
        name: 'OperatorError',
      });
      await perform(
        { kind: 'hold', cluster: resumed, target: { kind: 'node', node: nodeName('n') }, reason: 'a backup' },
        operator,
      );
      assert.deepEqual(await stopped(), [0, 1, 1]);
      await perform({ kind: 'stop', reason: 'a worse one' }, operator);
      assert.deepEqual(await stopped(), [1, 1, 1]);
      await perform({ kind: 'resume', cluster: resumed, reason: 'it is well' }, operator);
      await perform({ kind: 'resume', reason: 'it is over' }, operator);
      assert.deepEqual(await stopped(), [0, 0, 0]);
      await perform({ kind: 'stop', reason: 'the next one' }, operator);
      assert.deepEqual(await stopped(), [1, 1, 1]);
      await perform({ kind: 'resume', reason: 'it is over' }, operator);
      await eventually(async () => {
        const entries = await rulesStore.audit({ cluster: resumed, from: NOW, to: NOW + 1 });
        const resumptions = entries.filter(({ kind, cluster }) => kind === 'resume' && cluster === resumed);
        assert.equal(resumptions.length, 3);
      });
    });

    test('reads many clusters in one call, each with its own rules', async () => {
      const clusters = Array.from({ length: 60 }, () => aCluster());
      const [stopped] = clusters;
      assert.ok(stopped);
      await change(stopped, { stops: [aStop()] });
      await eventually(async () => {
        const read = await rulesStore.readAll(clusters);
        assert.deepEqual([...read.keys()].toSorted(), clusters.toSorted());
        for (const [cluster, { orders }] of read) assert.equal(orders.revision, cluster === stopped ? 1 : 0);
      });
    });

    test('returns the audit of a cluster, and of all clusters, newest first, between two times', async () => {
      const [cluster, other] = [aCluster(), aCluster()];
      const later = NOW + 3_600_000;
      const settings = [{ setting: 'mode', now: 'observe', next: 'enforce' }];
      const policy = { revision: 2, text: 'mode: enforce', settings };
      await change(cluster, { stops: [aStop()] }, { at: later, message: 'first' });
      await change(cluster, {}, { at: later + 1, kind: 'policy', message: 'second', policy });
      await change(other, {}, { at: later + 2, message: 'third', policy: { revision: 1, settings } });
      await rulesStore.changeFleetStop(
        undefined,
        aStop({ at: later }),
        anEntry({ at: later + 3, message: 'fourth' }),
      );
      await rulesStore.changeFleetStop(
        aStop({ at: later }),
        undefined,
        anEntry({ at: later + 4, message: 'fifth' }),
      );
      const noted = async (query: { readonly cluster?: ClusterName; readonly to?: number }) =>
        (await rulesStore.audit({ from: later, to: later + 5, ...query })).map(({ message: what }) => what);
      await eventually(async () =>
        assert.deepEqual(await noted({}), ['fifth', 'fourth', 'third', 'second', 'first']),
      );
      assert.deepEqual(await noted({ cluster }), ['fifth', 'fourth', 'second', 'first']);
      assert.deepEqual(await noted({ cluster, to: later + 1 }), ['first']);
      const [, , second] = await rulesStore.audit({ cluster, from: later, to: later + 5 });
      assert.deepEqual(
        second,
        anEntry({ cluster, at: later + 1, kind: 'policy', message: 'second', policy }),
      );
    });
  });
}

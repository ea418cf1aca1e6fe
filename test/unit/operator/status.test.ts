import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ContextFleet } from '#functions/operator/fleet.ts';
import type { LiveCluster } from '#functions/operator/live-cluster.ts';
import { look } from '#functions/operator/look.ts';
import { statusOf } from '#functions/operator/status.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/store/store.ts';
import { VERSION } from '#shared/version.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { controllerManager, shownCluster } from '#test/world/shown-cluster.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const MINUTE_MS = 60_000;
const prod = clusterName('prod');

/** A fleet of the cluster `prod`, which was heard a moment ago and is not asked. */
async function heard(t: TestContext) {
  const clock = new DrivenClock(NOW);
  const found = embeddedFleet(t, { clusters: ['prod'], clock });
  const lease = await found.leases.take(prod, undefined, 'relay-1', NOW);
  assert.ok(lease);
  await found.leases.renew(lease, { renewedAt: NOW, heardAt: NOW, nodes: 7 });
  const status = async (fleet = found.fleet) => statusOf(await look(fleet, [prod], { clock }));
  return { ...found, lease, clock, status };
}

test('a fleet that goes on by itself needs nobody', async (t) => {
  const { status } = await heard(t);
  const { needs, clusters } = await status();
  assert.deepEqual(needs, []);
  const [{ mode, holder, heardAt, nodes, pending, builtIn } = assert.fail('there is no cluster')] = clusters;
  assert.deepEqual([mode, holder, heardAt, nodes, pending], ['observe', 'relay-1', NOW, 7, 0]);
  assert.deepEqual(builtIn, { state: 'unknown', evidence: 'cluster prod was asked' });
});

test('a pause that is over is told as what it is then: enforced, until no moment', async (t) => {
  const { status, fleet, clock } = await heard(t);
  const operator = await fleet.operator();
  await operator.applyPolicy(prod, 'mode: enforce');
  await operator.pause(prod, { why: 'an upgrade', forMs: MINUTE_MS });
  const told = async () => {
    const [{ mode, pausedUntil } = assert.fail('there is no cluster')] = (await status()).clusters;
    return [mode, pausedUntil];
  };
  assert.deepEqual(await told(), ['paused', NOW + MINUTE_MS]);
  await clock.advanceTo(NOW + MINUTE_MS);
  assert.deepEqual(await told(), ['enforce', undefined]);
});

test('what needs somebody is told, the most urgent first', async (t) => {
  const { status, store, leases, lease, rulebook, letters, fleet, clock } = await heard(t);
  const schedule = [
    aRecord({ name: 'late', fireAt: NOW - 2 * MINUTE_MS }),
    aRecord({ name: 'lost', fireAt: NOW - MINUTE_MS, gaveUpAt: NOW }),
    aRecord({ name: 'held', fireAt: NOW - MINUTE_MS, held: { by: { kind: 'observe' }, since: NOW } }),
    aRecord({ name: 'next', fireAt: NOW + 10 * MINUTE_MS }),
  ];
  await store.commit(aRef(prod), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  await leases.reportStuck(lease, [
    {
      ...{ node: nodeName('n1'), uid: podUid('u'), namespace: 'default', name: 'stuck' },
      ...{ overAt: NOW, finalizers: [], nodeState: 'gone' },
    },
  ]);
  const { guard } = await rulebook.read(prod);
  await rulebook.changeGuard(prod, guard, [{ scope: 'cluster', trippedAt: NOW, nodes: 3, outOf: 7 }]);
  letters.add('evictions-due', { body: '{}' }, 'nobody can read it');
  await (await fleet.operator()).stop(prod, { why: 'an incident' });
  await clock.advanceTo(NOW + 3 * MINUTE_MS);
  const { needs, clusters } = await status();
  assert.deepEqual(
    needs.map(({ kind }) => kind),
    ['guard-tripped', 'deaf', 'late', 'given-up', 'dead-letters', 'stuck', 'stopped'],
  );
  const [{ tainted, pending, held, gaveUp, lateMs, nextAt } = assert.fail('there is no cluster')] = clusters;
  assert.deepEqual([tainted, pending, held, gaveUp], [1, 4, 1, 1]);
  assert.deepEqual([lateMs, nextAt], [5 * MINUTE_MS, NOW + 10 * MINUTE_MS]);
});

test('what cannot be read of one cluster, or of the queues, keeps nothing else back', async (t) => {
  const { status, fleet } = await heard(t);
  const gone = () => Promise.reject(new StoreError('It is away.'));
  const { needs, unknown, clusters, deadLetters } = await status({
    ...fleet,
    leases: { look: gone, stuck: gone },
    deadLetters: { ...fleet.deadLetters, count: gone },
  });
  assert.deepEqual(
    needs.map(({ kind, text }) => [kind, text]),
    [['unreadable', 'It cannot be read: It is away.']],
  );
  assert.deepEqual(clusters, [{ cluster: 'prod', error: 'It is away.' }]);
  assert.equal(deadLetters, undefined);
  assert.deepEqual(unknown, ['No npm start runs on this state directory now.', 'It is away.']);
});

test('neither the stop of all clusters nor the queues keep anything back when they cannot be read', async (t) => {
  const { status, fleet } = await heard(t);
  const { unknown, clusters, backlog, stop } = await status({
    ...fleet,
    backlog: () => Promise.reject(new StoreError('No right to the queues.')),
    rulebook: Object.assign(Object.create(fleet.rulebook), {
      read: fleet.rulebook.read.bind(fleet.rulebook),
      fleetStop: () => Promise.reject(new StoreError('The stop cannot be read.')),
    }),
  });
  assert.deepEqual([backlog, stop, clusters[0]?.nodes], [undefined, undefined, 7]);
  assert.deepEqual(unknown.slice(1), ['No right to the queues.', 'The stop cannot be read.']);
});

test('a stop of all clusters that has expired needs nobody', async (t) => {
  const { status, fleet, clock, lease, leases } = await heard(t);
  await (await fleet.operator()).stopAll({ why: 'an incident', forMs: MINUTE_MS });
  assert.deepEqual(
    (await status()).needs.map(({ kind }) => kind),
    ['stopped'],
  );
  await clock.advanceTo(NOW + MINUTE_MS);
  await leases.renew(lease, { renewedAt: NOW, heardAt: NOW + MINUTE_MS });
  const { stop, needs } = await status();
  assert.deepEqual([stop, needs], [undefined, []]);
});

test('a stop of a cluster that has expired needs nobody', async (t) => {
  const { status, fleet, clock, lease, leases } = await heard(t);
  await (await fleet.operator()).stop(prod, { why: 'an incident', forMs: MINUTE_MS });
  assert.equal((await status()).clusters[0]?.stop?.why, 'an incident');
  await clock.advanceTo(NOW + MINUTE_MS);
  await leases.renew(lease, { renewedAt: NOW, heardAt: NOW + MINUTE_MS });
  const { clusters, needs } = await status();
  assert.deepEqual([clusters[0]?.stop, needs], [undefined, []]);
});

test('of the one process its own word counts, which is newer than what its lease says', async (t) => {
  const { status, fleet } = await heard(t);
  const view = {
    nodes: 9,
    tainted: 0,
    pods: 0,
    down: 0,
    taintedByPeople: 0,
    breakerOpen: true,
    heardAt: NOW + 1,
  };
  const shown = async (state: 'live' | 'syncing') => {
    const clusters = { prod: { ...view, state } };
    const service = async () => ({ version: VERSION, startedAt: NOW, queues: {}, clusters });
    const [found = assert.fail('there is no cluster')] = (await status({ ...fleet, service })).clusters;
    return [found.nodes, found.breakerOpen, found.heardAt];
  };
  assert.deepEqual(await shown('live'), [9, true, NOW + 1]);
  assert.deepEqual(await shown('syncing'), [7, true, NOW + 1], 'it has not listed them yet');
});

test('what was given up counts as that, and not as held', async (t) => {
  const { status, store } = await heard(t);
  const held = { by: { kind: 'observe' }, since: NOW } as const;
  const schedule = [aRecord({ held, gaveUpAt: NOW }), aRecord({ held })];
  await store.commit(aRef(prod), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  const [{ held: counted, gaveUp } = assert.fail('there is no cluster')] = (await status()).clusters;
  assert.deepEqual([counted, gaveUp], [1, 1]);
});

test('relays are told with what they have on their hands, and the releases of all parts with them', async (t) => {
  const { status, lease, leases, fleet } = await heard(t);
  await leases.renew(lease, { renewedAt: NOW, heardAt: NOW, nodes: 7 });
  const account = { release: async () => '1.2.2', quotas: assert.fail, alarms: assert.fail };
  const { relays, versions } = await status({ ...fleet, kind: 'deployed', account });
  assert.deepEqual(relays, [
    { holder: 'relay-1', version: VERSION, clusters: ['prod'], nodes: 7, renewedAt: NOW },
  ]);
  assert.deepEqual(versions, { cli: VERSION, functions: '1.2.2', relays: [VERSION] });
});

test('a cluster whose API server does not answer needs somebody before it counts as deaf', async (t) => {
  const { status, lease, leases, store } = await heard(t);
  await leases.renew(lease, { renewedAt: NOW, heardAt: NOW, breakerOpen: true });
  const retry = { attempts: 1, nextTryAt: NOW, since: NOW, error: 'no answer', everything: true };
  await store.commit(aRef(prod), 0, { node: aNode({ retry }), schedule: [], end: [], live: true }, NOW);
  const { needs, clusters } = await status();
  assert.deepEqual(
    needs.map(({ kind }) => kind),
    ['out-of-reach'],
  );
  assert.deepEqual([clusters[0]?.breakerOpen, clusters[0]?.retrying], [true, 1]);
});

describe('of a bare context', () => {
  const nodes = [{ spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } }, { spec: {} }];
  const statusIn = async (live: LiveCluster) => {
    const clock = new DrivenClock(NOW);
    const fleet: ContextFleet = {
      ...{ kind: 'context', where: 'context kind', close: () => undefined },
      ...{ clusters: async () => [prod], manages: async () => true, cluster: async () => live },
    };
    return statusOf(await look(fleet, [prod], { clock }));
  };

  test('what its cluster shows is told, and nobody is missed who was never asked', async () => {
    const shown = {
      ...controllerManager('on'),
      '/api/v1/nodes': nodes,
      '/version': { gitVersion: 'v1.36.3' },
    };
    const { clusters, needs, relays } = await statusIn(shownCluster(shown, NOW));
    assert.deepEqual([needs, relays], [[], []]);
    const [{ nodes: all, tainted, kubernetes, builtIn, mode } = assert.fail()] = clusters;
    assert.deepEqual([all, tainted, kubernetes, builtIn?.state, mode], [2, 1, 'v1.36.3', 'on', undefined]);
  });

  test('one that does not let us in needs somebody', async () => {
    const { needs } = await statusIn(shownCluster({}, NOW, () => true));
    assert.deepEqual(
      needs.map(({ kind }) => kind),
      ['unreadable'],
    );
  });
});

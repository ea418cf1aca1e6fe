import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type ClusterName, clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { readClusters } from '#shared/operations/look/look.ts';
import { statusOf } from '#shared/operations/look/status.ts';
import { FAULT_TYPES, type Fault, type FaultType } from '#shared/state/fault.ts';
import { LEASE_TTL_MS, type LeaseReport } from '#shared/state/lease.ts';
import { StoreError } from '#shared/state/store.ts';
import { timeText } from '#shared/time/time-text.ts';
import { VERSION } from '#shared/version.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const MINUTE_MS = 60_000;
const prod = clusterName('prod');

const aFault = (type: FaultType): Fault => ({ type, since: NOW, error: 'It is so' });

/** A fleet of the cluster `prod` with a recent contact, whose API server is not called. */
async function connected(t: TestContext) {
  const clock = new DrivenClock(NOW);
  const service = async () => ({ version: VERSION, startedAt: NOW, queues: {}, clusters: {} });
  const found = embeddedFleet(t, { clusters: ['prod'], clock }, { service });
  const lease = await found.leases.take(prod, undefined, 'relay-1', NOW);
  assert.ok(lease);
  await found.leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, nodes: 7, faults: [] });
  const status = async (fleet = found.fleet) => statusOf(await readClusters(fleet, [prod], { clock }));
  return { ...found, lease, clock, status };
}

test('reports no issue for a healthy fleet', async (t) => {
  const { status } = await connected(t);
  const { issues, clusters } = await status();
  assert.deepEqual(issues, []);
  const [{ mode, holder, lastContactAt, nodes, pending, builtIn } = assert.fail('there is no cluster')] =
    clusters;
  assert.deepEqual([mode, holder, lastContactAt, nodes, pending], ['observe', 'relay-1', NOW, 7, 0]);
  assert.deepEqual(builtIn, { state: 'unknown', evidence: 'cluster prod was asked' });
});

test('reports issues most urgent first', async (t) => {
  const { status, store, leases, lease, rulesStore, letters, fleet, clock } = await connected(t);
  const schedule = [
    aRecord({ name: 'delayed', dueAt: NOW - 2 * MINUTE_MS }),
    aRecord({ name: 'lost', dueAt: NOW - MINUTE_MS, gaveUpAt: NOW }),
    aRecord({ name: 'held', dueAt: NOW - MINUTE_MS, held: { by: { kind: 'observe' }, since: NOW } }),
    aRecord({ name: 'next', dueAt: NOW + 10 * MINUTE_MS }),
  ];
  await store.commit(aRef(prod), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  await leases.reportStuck(lease, [
    {
      node: nodeName('n1'),
      uid: podUid('u'),
      namespace: 'default',
      name: 'stuck',
      gracePeriodEndedAt: NOW,
      finalizers: [],
      nodeState: 'gone',
    },
  ]);
  const { guard } = await rulesStore.read(prod);
  await rulesStore.changeGuard(prod, guard, [{ scope: 'cluster', trippedAt: NOW, nodes: 3, outOf: 7 }]);
  letters.add('evictions-due', { body: '{}' }, 'nobody can read it');
  await perform({ kind: 'stop', cluster: prod, reason: 'an incident' }, await fleet.operator());
  await clock.advanceTo(NOW + 3 * MINUTE_MS);
  const { issues, clusters } = await status();
  assert.deepEqual(
    issues.map(({ type }) => type),
    ['guard-tripped', 'lease-expired', 'failed', 'dead-letters', 'stuck-terminating', 'stopped'],
  );
  const [{ tainted, pending, held, failed, delayMs, nextAt } = assert.fail('there is no cluster')] = clusters;
  assert.deepEqual([tainted, pending, held, failed], [1, 4, 2, 1]);
  assert.deepEqual([delayMs, nextAt], [0, undefined]);
});

test("reports everything else when one cluster or the queues can't be read", async (t) => {
  const { status, fleet } = await connected(t);
  const gone = () => Promise.reject(new StoreError('It is away.'));
  const { issues, unknown, clusters, deadLetters } = await status({
    ...fleet,
    leases: { read: gone, stuck: gone },
    deadLetters: { list: gone, redrive: gone, count: gone },
  });
  assert.deepEqual(
    issues.map(({ type, message }) => [type, message]),
    [['unreadable', 'Its state is unreadable: It is away.']],
  );
  assert.deepEqual(clusters, [{ cluster: 'prod', error: 'It is away.' }]);
  assert.equal(deadLetters, undefined);
  assert.deepEqual(unknown, ['It is away.']);
});

test('reports everything else when neither the stop of all clusters nor the queues can be read', async (t) => {
  const { status, fleet } = await connected(t);
  const { unknown, clusters, backlog, stop } = await status({
    ...fleet,
    backlog: () => Promise.reject(new StoreError('No right to the queues.')),
    rulesStore: Object.assign(Object.create(fleet.rulesStore), {
      read: fleet.rulesStore.read.bind(fleet.rulesStore),
      fleetStop: () => Promise.reject(new StoreError('The stop cannot be read.')),
    }),
  });
  assert.deepEqual([backlog, stop, clusters[0]?.nodes], [undefined, undefined, 7]);
  assert.deepEqual(unknown, ['No right to the queues.', 'The stop cannot be read.']);
});

test('reports no issue for an expired stop of all clusters', async (t) => {
  const { status, fleet, clock, lease, leases } = await connected(t);
  await perform({ kind: 'stop', reason: 'an incident', durationMs: MINUTE_MS }, await fleet.operator());
  assert.deepEqual(
    (await status()).issues.map(({ type }) => type),
    ['stopped'],
  );
  await clock.advanceTo(NOW + MINUTE_MS);
  await leases.renew(lease, { renewedAt: NOW + MINUTE_MS, lastContactAt: NOW + MINUTE_MS });
  const { stop, issues } = await status();
  assert.deepEqual([stop, issues], [undefined, []]);
});

test('reports no issue for an expired stop of a cluster', async (t) => {
  const { status, fleet, clock, lease, leases } = await connected(t);
  await perform(
    { kind: 'stop', cluster: prod, reason: 'an incident', durationMs: MINUTE_MS },
    await fleet.operator(),
  );
  assert.equal((await status()).clusters[0]?.stop?.reason, 'an incident');
  await clock.advanceTo(NOW + MINUTE_MS);
  await leases.renew(lease, { renewedAt: NOW + MINUTE_MS, lastContactAt: NOW + MINUTE_MS });
  const { clusters, issues } = await status();
  assert.deepEqual([clusters[0]?.stop, issues], [undefined, []]);
});

test('prefers the state of the single process to its older lease', async (t) => {
  const { status, fleet } = await connected(t);
  const view = {
    nodes: 9,
    tainted: 0,
    pods: 0,
    down: 0,
    customTaints: 0,
    breakerOpen: true,
    lastContactAt: NOW + 1,
  };
  const shown = async (state: 'live' | 'syncing') => {
    const clusters = { prod: { ...view, state } };
    const service = async () => ({ version: VERSION, startedAt: NOW, queues: {}, clusters });
    const [found = assert.fail('there is no cluster')] = (await status({ ...fleet, service })).clusters;
    return [found.nodes, found.breakerOpen, found.lastContactAt];
  };
  assert.deepEqual(await shown('live'), [9, true, NOW + 1]);
  assert.deepEqual(await shown('syncing'), [7, true, NOW + 1], 'it has not listed them yet');
});

test('reports how far a trip is from its reset, while its relay reports it', async (t) => {
  const { status, fleet, clock, lease, leases, rulesStore } = await connected(t);
  const trip = { scope: 'cluster', trippedAt: NOW, nodes: 6, outOf: 7 } as const;
  const { guard } = await rulesStore.read(prod);
  await rulesStore.changeGuard(prod, guard, [trip, { ...trip, scope: 'customTaints' }]);
  const shown = async (given = fleet) => {
    const { clusters, issues } = await status(given);
    const resets = issues.flatMap(({ type, message }) =>
      type === 'guard-tripped' ? message.replace(/^.* holds evictions\. /, '') : [],
    );
    return [clusters[0]?.trips?.map(({ affectedNow, resetsAt }) => [affectedNow, resetsAt]), resets];
  };
  const unknown = 'It resets 5 minutes after fewer than half as many nodes as its limit are affected.';
  const none = [
    [
      [undefined, undefined],
      [undefined, undefined],
    ],
    [unknown, unknown],
  ];
  assert.deepEqual(await shown(), none);
  const resetsAt = NOW + 5 * MINUTE_MS;
  const all = { trippedAt: NOW, scope: 'cluster', affectedNow: 1, resetsBelow: 3, resetsAt } as const;
  const customTaints = { trippedAt: NOW, scope: 'customTaints', affectedNow: 5, resetsBelow: 2 } as const;
  const report = { renewedAt: NOW, lastContactAt: NOW, tripProgress: [customTaints, all] };
  await leases.renew(lease, report);
  assert.deepEqual(await shown(), [
    [
      [1, resetsAt],
      [5, undefined],
    ],
    [
      `1 node is down now. It resets at ${timeText(resetsAt)} if they stay fewer than 3.`,
      '5 nodes have custom taints now. It resets 5 minutes after they are fewer than 2.',
    ],
  ]);
  const service = async () => undefined;
  assert.deepEqual((await shown({ ...fleet, service }))[0], none[0], 'the process is down');
  await leases.renew(lease, { ...report, tripProgress: [{ ...all, trippedAt: NOW - 1 }] });
  assert.deepEqual(await shown(), none, 'of an earlier trip');
  await leases.renew(lease, report);
  await clock.advanceTo(NOW + MINUTE_MS);
  assert.deepEqual(await shown(), none, 'the lease was not renewed');
});

test('reports the released scopes of the guard, and when they trip again', async (t) => {
  const { status, rulesStore } = await connected(t);
  const trip = { scope: 'zone', zone: 'a', trippedAt: NOW, nodes: 6, outOf: 7, upTo: 6 } as const;
  const { guard } = await rulesStore.read(prod);
  const fresh = { scope: 'customTaints', trippedAt: NOW, nodes: 6, outOf: 7, releasedAt: NOW } as const;
  await rulesStore.changeGuard(prod, guard, [trip, fresh]);
  const [found] = (await status()).clusters;
  assert.deepEqual(found?.trips, []);
  assert.deepEqual(found?.releasedScopes, [{ scope: 'zone/a', tripsAbove: 6 }, { scope: 'customTaints' }]);
});

test('counts each due eviction once: failed, observed, held, blocked, retried, or on its way', async (t) => {
  const { status, store, fleet } = await connected(t);
  const observed = { by: { kind: 'observe' }, since: NOW } as const;
  const failure = { since: NOW, error: 'denied' };
  const schedule = [
    aRecord({ dueAt: NOW, held: observed, gaveUpAt: NOW }),
    aRecord({ dueAt: NOW, held: observed }),
    aRecord({ dueAt: NOW, failure }),
    aRecord({ dueAt: NOW, blocked: { since: NOW, nextTryAt: NOW + 1, reason: 'a budget' } }),
    aRecord({ dueAt: NOW }),
    aRecord({ dueAt: NOW + 1 }),
  ];
  await store.commit(aRef(prod), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  const counts = async () => {
    const [found = assert.fail('there is no cluster')] = (await status()).clusters;
    const { pending, due, held, heldBy, observed, blocked, retrying, failed, nextAt } = found;
    return { pending, due, held, heldBy, observed, blocked, retrying, failed, nextAt };
  };
  const all = { pending: 6, due: 5, failed: 1 };
  const free = { held: 0, heldBy: {}, observed: 1, blocked: 1, retrying: 1, nextAt: NOW + 1 };
  assert.deepEqual(await counts(), { ...all, ...free });
  await perform({ kind: 'stop', cluster: prod, reason: 'an incident' }, await fleet.operator());
  const held = { held: 4, heldBy: { stopped: 4 }, observed: 0, blocked: 0, retrying: 0, nextAt: undefined };
  assert.deepEqual(await counts(), { ...all, ...held });
});

test('reports relays with their nodes, and the releases of all parts', async (t) => {
  const { status, lease, leases, fleet, clock } = await connected(t);
  await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, nodes: 7 });
  const account = { release: async () => '1.2.2', quotas: assert.fail, alarms: assert.fail };
  const lab = clusterName('lab');
  const other = (await leases.take(lab, undefined, 'relay-1', NOW)) ?? assert.fail('no lease');
  await leases.renew(other, { renewedAt: NOW - MINUTE_MS, lastContactAt: NOW - MINUTE_MS, nodes: 3 });
  const both = await readClusters(fleet, [prod, lab], { clock });
  assert.deepEqual(statusOf(both).relays, [
    { holder: 'relay-1', version: VERSION, clusters: ['prod', 'lab'], nodes: 10, renewedAt: NOW },
  ]);
  const { relays, versions } = await status({
    ...fleet,
    kind: 'deployed',
    account,
    service: async () => undefined,
  });
  assert.deepEqual(relays, [
    { holder: 'relay-1', version: VERSION, clusters: ['prod'], nodes: 7, renewedAt: NOW },
  ]);
  assert.deepEqual(versions, { cli: VERSION, functions: '1.2.2', relays: [VERSION] });
});

test('reports an unresponsive API server before the cluster counts as disconnected', async (t) => {
  const { status, lease, leases, store } = await connected(t);
  await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, breakerOpen: true });
  const retry = { attempts: 1, nextTryAt: NOW, since: NOW, error: 'no answer', everything: true };
  await store.commit(
    aRef(prod),
    0,
    { node: aNode({ retry }), schedule: [aRecord({ dueAt: NOW })], end: [], live: true },
    NOW,
  );
  const { issues, clusters } = await status();
  assert.deepEqual(
    issues.map(({ type }) => type),
    ['api-server-unreachable'],
  );
  assert.deepEqual([clusters[0]?.breakerOpen, clusters[0]?.retrying], [true, 1]);
});

test('reports a dead npm start and omits its reports', async (t) => {
  const { status, fleet, clock, lease, leases } = await connected(t);
  await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, faults: [aFault('store-failing')] });
  await clock.advanceTo(NOW + 3_000);
  const { issues, process } = await status({ ...fleet, service: async () => undefined });
  assert.equal(process, 'not-running');
  assert.deepEqual(
    issues.map(({ type, since }) => [type, since]),
    [['not-running', NOW]],
  );
  assert.match(issues[0]?.message ?? '', /Its last lease renewal was 3s ago\.$/);
});

test('reports an unresponsive npm start as unknown while its lease is valid, then as frozen', async (t) => {
  const { status, fleet, clock } = await connected(t);
  const silent = {
    ...fleet,
    service: () => Promise.reject(new FleetError('It does not answer.')),
  };
  await clock.advanceTo(NOW + LEASE_TTL_MS);
  const fresh = await status(silent);
  assert.deepEqual(
    [fresh.process, fresh.issues, fresh.unknown],
    ['not-responding', [], ['It does not answer.']],
  );
  await clock.advanceTo(NOW + LEASE_TTL_MS + 1);
  const { issues, clusters } = await status(silent);
  assert.deepEqual(
    issues.map(({ type }) => type),
    ['not-responding'],
  );
  assert.equal(clusters[0]?.connection, 'stale');
});

test('reports a relay that stopped renewing once its lease expired, with its cluster', async (t) => {
  const { fleet, clock } = await connected(t);
  const deployed: Fleet = { ...fleet, kind: 'deployed', service: async () => undefined };
  const seen = await readClusters(deployed, [prod], { clock });
  assert.deepEqual(statusOf(seen).issues, []);
  await clock.advanceTo(NOW + LEASE_TTL_MS + 1);
  const { issues, clusters } = statusOf(await readClusters(deployed, [prod], { clock, before: seen }));
  assert.deepEqual(
    issues.map(({ type, since }) => [type, since]),
    [['lease-expired', NOW]],
  );
  assert.deepEqual([clusters[0]?.connection, clusters[0]?.faults], ['stale', undefined]);
});

test('treats a relay with a slow clock as alive while its lease changes', async (t) => {
  const { fleet, clock, lease, leases } = await connected(t);
  const deployed: Fleet = { ...fleet, kind: 'deployed', service: async () => undefined };
  const before = await readClusters(deployed, [prod], { clock });
  await clock.advanceTo(NOW + MINUTE_MS);
  await leases.renew(lease, { renewedAt: NOW + 1, lastContactAt: NOW + MINUTE_MS, faults: [] });
  const seen = await readClusters(deployed, [prod], { clock, before });
  assert.deepEqual([statusOf(seen).issues, seen.clusters[0]?.renewedAt], [[], NOW + MINUTE_MS]);
  let reads = 0;
  const renewing: Fleet['leases'] = {
    stuck: (cluster) => leases.stuck(cluster),
    read: async (cluster) => {
      const found = await leases.read(cluster);
      return found && { ...found, renewals: found.renewals + reads++ };
    },
  };
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const first = readClusters({ ...deployed, leases: renewing }, [prod], { clock });
  while (reads < 2) {
    await setImmediate();
    t.mock.timers.tick(1_000);
  }
  assert.deepEqual(statusOf(await first).issues, []);
});

test('reads a cluster again beside another as it does alone', async (t) => {
  const readTwice = async (names: readonly ClusterName[]) => {
    const { fleet, leases, clock } = await connected(t);
    const deployed: Fleet = { ...fleet, kind: 'deployed', service: async () => undefined };
    await leases.take(beside, undefined, 'relay-2', NOW);
    const before = await readClusters(deployed, names, { clock });
    await clock.advanceTo(NOW + LEASE_TTL_MS + 1);
    const { clusters } = await readClusters(deployed, names, { clock, before });
    return clusters.find(({ cluster }) => cluster === prod);
  };
  const beside = clusterName('beside');
  const alone = await readTwice([prod]);
  assert.equal(alone?.renewedAt, NOW);
  assert.deepEqual(await readTwice([beside, prod]), alone);
});

test('reports a recently acquired lease as unknown, not as disconnected', async (t) => {
  const clock = new DrivenClock(NOW);
  const { fleet, leases } = embeddedFleet(t, { clusters: ['prod'], clock }, { kind: 'deployed' });
  const reported = async () => {
    const { issues, unknown } = statusOf(await readClusters(fleet, [prod], { clock }));
    return [issues.map(({ type }) => type), unknown];
  };
  assert.deepEqual(await reported(), [['lease-expired'], []]);
  const lease = await leases.take(prod, undefined, 'relay-1', NOW);
  assert.ok(lease);
  assert.deepEqual(await reported(), [
    [],
    ['The state of cluster prod is not known yet: its relay has just acquired the lease.'],
  ]);
  await leases.renew(lease, { renewedAt: NOW, faults: [] });
  assert.deepEqual(await reported(), [['disconnected'], []]);
});

test("reports a relay's faults with remedies, and that an older relay reports none", async (t) => {
  const { fleet, clock, lease, leases } = await connected(t);
  const reported = async (report: Pick<LeaseReport, 'faults' | 'breakerOpen'>) => {
    await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, breakerOpen: false, ...report });
    const { issues, unknown } = statusOf(await readClusters(fleet, [prod], { clock }));
    return [...issues.map(({ type }) => type), ...unknown];
  };
  for (const type of FAULT_TYPES) assert.deepEqual(await reported({ faults: [aFault(type)] }), [type]);
  const unread = aFault('list-failing');
  assert.deepEqual(await reported({ faults: [unread], breakerOpen: true }), ['api-server-unreachable']);
  assert.deepEqual(await reported({ faults: [{ ...unread, status: 403 }], breakerOpen: true }), [
    ...['list-failing', 'api-server-unreachable'],
  ]);
  const silent: Fleet['leases'] = {
    stuck: (cluster) => leases.stuck(cluster),
    read: async (cluster) => {
      const { faults: _faults, ...known } = (await leases.read(cluster)) ?? assert.fail();
      return known;
    },
  };
  const { issues, unknown } = statusOf(await readClusters({ ...fleet, leases: silent }, [prod], { clock }));
  assert.deepEqual(
    issues.filter(({ type }) => type !== 'api-server-unreachable'),
    [],
  );
  assert.deepEqual(unknown, [
    'The state of cluster prod is not known yet: its relay has just acquired the lease.',
  ]);
});

test('reads the expired lease of a stopped npm start once, and does not wait for its renewal', async (t) => {
  const { status, clock, fleet, leases } = await connected(t);
  await clock.advanceTo(NOW + 2 * LEASE_TTL_MS);
  const read = t.mock.fn(leases.read.bind(leases));
  await status({ ...fleet, kind: 'local', leases: { read, stuck: leases.stuck.bind(leases) } });
  assert.equal(read.mock.callCount(), 1);
});

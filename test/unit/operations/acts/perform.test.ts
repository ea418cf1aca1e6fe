import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget, ReleasedTrip, Stop, Trip } from '#shared/eviction/policy.ts';
import type { RulesAct } from '#shared/operations/acts/act.ts';
import { decide, withNext } from '#shared/operations/acts/decide.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { type OperatorControls, stopsInForce, stopsOf } from '#shared/state/rules-store.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const prod = clusterName('prod');
const node: HoldTarget = { kind: 'node', node: nodeName('node-1') };

function anOperator() {
  const rulesStore = new SqliteRulesStore({ database: openRulesDatabase(':memory:') });
  const clock = new DrivenClock(NOW);
  return {
    rulesStore,
    clock,
    act: (act: RulesAct) => perform(act, { rulesStore, clock, actor: 'anna' }),
    orders: async (): Promise<OperatorControls> => (await rulesStore.read(prod)).orders,
    audited: async () =>
      (await rulesStore.audit({ from: 0, to: Number.MAX_SAFE_INTEGER })).map(
        ({ kind, message: what, reason: why }) =>
          [kind, what, why].filter((part) => part !== undefined).join(': '),
      ),
  };
}

test('keeps a policy as written with an increasing revision, and applies an identical policy only once', async () => {
  const { act, orders, audited } = anOperator();
  const written = 'mode: enforce # at last\n';
  assert.equal((await act({ kind: 'apply-policy', cluster: prod, text: written })).changed, true);
  assert.equal((await act({ kind: 'apply-policy', cluster: prod, text: written })).changed, false);
  assert.equal((await orders()).policy?.text, written);
  assert.equal((await orders()).policy?.read.mode, 'enforce');
  await act({ kind: 'withdraw-policy', cluster: prod });
  assert.equal((await orders()).policy, undefined);
  await act({ kind: 'apply-policy', cluster: prod, text: 'mode: observe', reason: 'an audit first' });
  assert.equal((await orders()).policy?.revision, 3);
  assert.deepEqual(await audited(), [
    'policy: applied a policy: observe: an audit first',
    'policy: withdrew the policy',
    'policy: applied a policy: enforce',
  ]);
});

test('rejects an invalid policy', async () => {
  const { act, orders } = anOperator();
  await assert.rejects(act({ kind: 'apply-policy', cluster: prod, text: 'mode: on' }), {
    name: 'PolicyError',
  });
  assert.equal((await orders()).revision, 0);
});

test('stops a cluster, and resumes it with a reason', async () => {
  const { act, orders, audited } = anOperator();
  const { stop: id = '', message } = await act({
    kind: 'stop',
    cluster: prod,
    reason: 'an incident',
    durationMs: 60_000,
  });
  assert.match(id, /^s[0-9a-f]{8}$/);
  assert.equal(message, 'Evictions are stopped in cluster prod until 2026-11-21T12:01:00Z.');
  const until = NOW + 60_000;
  assert.deepEqual((await orders()).stops, [
    { scope: 'cluster', id, actor: 'anna', at: NOW, reason: 'an incident', until },
  ]);
  await assert.rejects(act({ kind: 'resume', cluster: prod, reason: ' ' }), {
    name: 'OperatorError',
    message: /^--reason must not be empty/,
  });
  await act({ kind: 'resume', cluster: prod, reason: 'it is over' });
  assert.deepEqual((await orders()).stops, []);
  await assert.rejects(act({ kind: 'resume', cluster: prod, reason: 'again' }), {
    name: 'OperatorError',
    message: 'Cluster prod is not stopped. Nothing to resume.',
  });
  assert.deepEqual(await audited(), [
    'resume: resumed evictions: it is over',
    'stop: stopped evictions until 2026-11-21T12:01:00Z: an incident',
  ]);
});

test('resumes one cluster while all are stopped, from exactly that stop', async () => {
  const { act, rulesStore, audited } = anOperator();
  const stops = async (cluster = prod) =>
    stopsOf(await rulesStore.read(cluster)).map(({ reason: why }) => why);
  await act({ kind: 'stop', reason: 'an incident', durationMs: 60_000 });
  await act({ kind: 'stop', cluster: prod, reason: 'a drill' });
  await act({ kind: 'resume', cluster: prod, reason: 'done' });
  assert.deepEqual(await stops(), ['an incident']);
  await act({ kind: 'resume', cluster: prod, reason: 'it is well' });
  assert.deepEqual(await stops(), []);
  assert.deepEqual(await stops(clusterName('stage')), ['an incident']);
  assert.equal(
    (await audited())[0],
    'resume: resumed evictions, while other clusters stay stopped: it is well',
  );
  await act({ kind: 'stop', cluster: prod, reason: 'another drill' });
  await act({ kind: 'resume', cluster: prod, reason: 'over' });
  assert.equal((await audited())[0], 'resume: resumed evictions: over');
  assert.deepEqual(await stops(), []);
  await act({ kind: 'stop', reason: 'a worse one' });
  assert.deepEqual(await stops(), ['a worse one']);
});

test('does not resume a cluster from a stop of the same revision at another time', async () => {
  const { act, rulesStore } = anOperator();
  await act({ kind: 'stop', reason: 'an incident' });
  await act({ kind: 'resume', cluster: prod, reason: 'it is well' });
  const found = await rulesStore.read(prod);
  const fleetStop: Stop = {
    scope: 'fleet',
    actor: 'ben',
    at: NOW + 1,
    reason: 'after the object was deleted',
  };
  assert.deepEqual(stopsOf({ ...found, fleetStop }), [fleetStop]);
});

test('does not resume a cluster from an expired stop of all clusters', async () => {
  const { act, clock } = anOperator();
  await act({ kind: 'stop', reason: 'an incident', durationMs: 60_000 });
  await clock.advanceTo(NOW + 60_000);
  await assert.rejects(act({ kind: 'resume', cluster: prod, reason: 'over' }), {
    message: /is not stopped/,
  });
});

test('stops and resumes all clusters', async () => {
  const { act, rulesStore } = anOperator();
  await act({ kind: 'stop', reason: 'an incident' });
  assert.equal((await rulesStore.read(prod)).fleetStop?.scope, 'fleet');
  await act({ kind: 'stop', reason: 'a worse one' });
  const shorter = await act({ kind: 'stop', reason: 'a drill', durationMs: 1_000 });
  assert.equal(shorter.message, 'Evictions are stopped in all clusters.');
  const { reason, until } = (await rulesStore.fleetStop()) ?? {};
  assert.deepEqual([reason, until], ['a worse one', undefined]);
  await act({ kind: 'resume', reason: 'it is over' });
  assert.equal(await rulesStore.fleetStop(), undefined);
  await assert.rejects(act({ kind: 'resume', reason: 'again' }), { name: 'OperatorError' });
});

test('a stop of all clusters stops each of them, in its preview too, whatever was done before', async () => {
  const reason = 'x';
  const stops = [{ durationMs: 60_000 }, {}].map((lasts) => ({ kind: 'stop', reason, ...lasts }) as const);
  const acts: readonly RulesAct[] = [
    ...stops.flatMap((stop) => [stop, { ...stop, cluster: prod }]),
    { kind: 'resume', reason },
    { kind: 'resume', reason, cluster: prod },
  ];
  const histories = acts.flatMap((first) => acts.map((second) => [first, second] as const));
  for (const stop of stops)
    for (const history of histories) {
      const { act, rulesStore, clock } = anOperator();
      for (const each of history) {
        await act(each).catch(({ name }) => assert.equal(name, 'OperatorError'));
        await clock.advanceTo(clock.now() + 1);
      }
      const before = await rulesStore.read(prod);
      const { change } = decide(stop, before, { actor: 'anna', now: clock.now() });
      await act(stop);
      for (const rules of [withNext(before, change?.next ?? assert.fail()), await rulesStore.read(prod)])
        assert.ok(
          stopsInForce(rules, clock.now()).some(({ scope }) => scope === 'fleet'),
          JSON.stringify([...history, stop]),
        );
    }
});

test('releases holds by ID and removes expired rules with the next change', async () => {
  const { act, clock, orders } = anOperator();
  const { hold: first = '' } = await act({
    kind: 'hold',
    cluster: prod,
    target: node,
    reason: 'a backup',
    durationMs: 1000,
  });
  await act({ kind: 'stop', cluster: prod, reason: 'x', durationMs: 1000 });
  await clock.advanceTo(NOW + 1000);
  const target: HoldTarget = { kind: 'pod', namespace: 'default', name: 'web-0' };
  const { hold: id = '' } = await act({ kind: 'hold', cluster: prod, target, reason: 'a debugger' });
  const second = { id, target, actor: 'anna', at: NOW + 1000, reason: 'a debugger' };
  assert.deepEqual(await orders(), { revision: 3, stops: [], holds: [second] });
  await assert.rejects(act({ kind: 'release', cluster: prod, id: first, reason: 'done' }), {
    name: 'OperatorError',
  });
  const { message } = await act({ kind: 'release', cluster: prod, id, reason: 'done' });
  assert.equal(message, `Hold ${id} is released: pod default/web-0 in cluster prod.`);
  assert.deepEqual((await orders()).holds, []);
});

test('always adds a stop, which neither shortens nor ends the others, and ends the one that is named', async () => {
  const { act, orders, audited } = anOperator();
  const lasting = async () => (await orders()).stops.map(({ until }) => until && until - NOW);
  const { stop: short } = await act({ kind: 'stop', cluster: prod, reason: 'short', durationMs: 1_000 });
  await act({ kind: 'stop', cluster: prod, reason: 'long', durationMs: 2_000 });
  const { stop: open } = await act({ kind: 'stop', cluster: prod, reason: 'open' });
  await act({ kind: 'stop', cluster: prod, reason: 'short, too', durationMs: 500 });
  assert.deepEqual(await lasting(), [undefined, 2_000, 1_000, 500]);
  await assert.rejects(act({ kind: 'resume', cluster: prod, reason: 'over' }), {
    message: /^Cluster prod has several stops\./,
  });
  await assert.rejects(act({ kind: 'resume', cluster: prod, reason: 'over', id: 's0' }), {
    message: 'Stop "s0" not found in cluster "prod". It expired or was ended: see taintward holds.',
  });
  const other =
    'A stop of cluster prod is ended. Another one keeps evictions stopped until 2026-11-21T12:00:02Z (anna: long).';
  for (const id of [open, short])
    assert.equal((await act({ kind: 'resume', cluster: prod, reason: 'over', id })).message, other);
  assert.deepEqual(await lasting(), [2_000, 500]);
  assert.equal((await audited())[0], `resume: ended stop ${short}, while another one stays in force: over`);
});

test('keeps the longest stops of a cluster, as many as a decision can read', async () => {
  const { act, orders } = anOperator();
  for (let count = 0; count < 20; count++)
    await act({ kind: 'stop', cluster: prod, reason: 'x', durationMs: 2_000 });
  await act({ kind: 'stop', cluster: prod, reason: 'longer', durationMs: 3_000 });
  await act({ kind: 'stop', cluster: prod, reason: 'shorter', durationMs: 1_000 });
  const { stops } = await orders();
  assert.deepEqual([stops.length, stops[0]?.reason, stops.at(-1)?.reason], [20, 'longer', 'shorter']);
});

test('limits the holds of a cluster to the number that a decision can read', async () => {
  const { act, orders } = anOperator();
  for (let count = 0; count < 100; count++)
    await act({ kind: 'hold', cluster: prod, target: node, reason: 'x' });
  await assert.rejects(act({ kind: 'hold', cluster: prod, target: node, reason: 'x' }), {
    name: 'OperatorError',
    message: /^Cluster prod has the maximum of 100 holds\. Release some/,
  });
  assert.equal(new Set((await orders()).holds.map(({ id }) => id)).size, 100);
});

test('releases guard trips and leaves counting to a relay', async () => {
  const { act, rulesStore, audited } = anOperator();
  await assert.rejects(act({ kind: 'release-guard', cluster: prod, reason: 'x' }), {
    name: 'OperatorError',
  });
  const { guard } = await rulesStore.read(prod);
  const trip: Trip = { scope: 'zone', zone: 'a', trippedAt: NOW - 5, nodes: 6, outOf: 10 };
  const before: ReleasedTrip = { ...trip, zone: 'b', upTo: 7 };
  await rulesStore.changeGuard(prod, guard, [trip, before]);
  await act({ kind: 'release-guard', cluster: prod, reason: 'they are dead for certain' });
  assert.deepEqual((await rulesStore.read(prod)).guard, {
    revision: 2,
    trips: [],
    released: [before, { ...trip, releasedAt: NOW }],
  });
  assert.deepEqual(await audited(), ['release-guard: released the guard: zone/a: they are dead for certain']);
});

test('releases the named scope of the guard alone, and none if several tripped and none is named', async () => {
  const { act, rulesStore } = anOperator();
  const { guard } = await rulesStore.read(prod);
  const zone: Trip = { scope: 'zone', zone: 'a', trippedAt: NOW - 5, nodes: 6, outOf: 10 };
  const other: Trip = { ...zone, zone: 'b' };
  const custom: Trip = { scope: 'customTaints', trippedAt: NOW - 5, nodes: 9, outOf: 30 };
  await rulesStore.changeGuard(prod, guard, [zone, other, custom]);
  const several =
    /for several scopes\. Specify one of: --scope zone\/a, --scope zone\/b, --scope customTaints\.$/;
  await assert.rejects(act({ kind: 'release-guard', cluster: prod, reason: 'x' }), {
    name: 'OperatorError',
    message: several,
  });
  await assert.rejects(act({ kind: 'release-guard', cluster: prod, reason: 'x', scope: 'cluster' }), {
    message: /has not tripped for cluster\./,
  });
  const { message } = await act({ kind: 'release-guard', cluster: prod, reason: 'x', scope: 'zone/b' });
  assert.match(message, /^The guard of cluster prod is released for zone\/b\. Held evictions continue/);
  const left = (await rulesStore.read(prod)).guard;
  assert.deepEqual(left.trips, [zone, custom]);
  assert.deepEqual(left.released, [{ ...other, releasedAt: NOW }]);
});

test('applies concurrent changes of operators completely', async () => {
  const { act, orders } = anOperator();
  await Promise.all(
    Array.from({ length: 5 }, () => act({ kind: 'hold', cluster: prod, target: node, reason: 'x' })),
  );
  assert.equal((await orders()).holds.length, 5);
});

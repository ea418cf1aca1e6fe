import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Registry } from 'prom-client';
import { Emf } from '#shared/aws/emf.ts';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { STORE_FAILING } from '#shared/engine/watch/cluster-faults.ts';
import { OVER_BUDGET_MS } from '#shared/engine/watch/fleet.ts';
import { LEASE_READ_MS } from '#shared/engine/watch/lease-manager.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import type { Fault } from '#shared/state/fault.ts';
import type { Lease } from '#shared/state/lease.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { GUARD_TRIPS, OVER_BUDGET, TAKEOVERS_WITHHELD } from '#shared/telemetry/metrics.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { PROVEN } from '#test/world/proven.ts';
import { PushedRules } from '#test/world/pushed-rules.ts';
import { ScriptedGuardStore } from '#test/world/scripted-guard-store.ts';
import { OrderedQueue } from '../../aws/relay/ordered-queue.ts';
import { liveNode } from './live-objects.ts';
import { inSqlite, SECOND, taintedCluster } from './relay-world.ts';
import { listOf } from './scripted-resource.ts';

const [C1, C2] = [clusterName('c1'), clusterName('c2')];

function bench(context: TestContext) {
  const time = driveTimers(context, Date.UTC(2026, 0, 1));
  const state = inSqlite();
  const { leases } = state;
  const clock = { now: Date.now };
  const relayOf = (holder: string, nodeBudget = Infinity) => {
    const [nodes, pods] = [new OrderedQueue(), new OrderedQueue()];
    const log = recordingLog();
    const registry = new Registry();
    const written: string[] = [];
    const emf = new Emf({ namespace: 'taintward', clock, write: (line) => written.push(line) });
    const metrics = relayMetrics(registry, emf);
    const outbox = new DeltaSender({ nodeDeltas: nodes, podDeltas: pods, clock, log, metrics });
    const rules = new PushedRules();
    const relay = new Relay({
      ...state,
      rules,
      outbox,
      clock,
      log,
      metrics,
      holder,
      nodeBudget,
      prover: PROVEN,
      rulesStore: new ScriptedGuardStore(),
    });
    context.after(() => relay.stop());
    return { relay, rules, nodes, log, registry, written };
  };
  const holderOf = async (name: ClusterName) => (await leases.read(name))?.holder;
  const clusterOf = (...keys: readonly string[]) => {
    const made = taintedCluster();
    made.pods.lists = [listOf()];
    made.nodes.lists = [listOf(liveNode('n1', ...keys))];
    return made;
  };
  return { time, leases, relayOf, holderOf, clusterOf };
}

test('reports the faults of a cluster without access on its lease and in metrics, until it is added', async (context) => {
  const { time, relayOf, leases, clusterOf } = bench(context);
  const { relay, registry } = relayOf('r1');
  const lists = async () =>
    /taintward_relay_lists_total\{cluster="c1",resource="nodes"\} (.+)/.exec(await registry.metrics())?.[1];
  const fault: Fault = { type: 'list-failing', since: 1, error: 'renew the credentials', status: 401 };
  relay.report(C1, () => [fault]);
  relay.add(C2, clusterOf('a'));
  await time.pass(4 * SECOND);
  assert.deepEqual((await leases.read(C1))?.faults, [fault]);
  assert.notEqual((await leases.read(C1))?.breakerOpen, true);
  assert.equal(await lists(), '0', 'its series begin with 0');
  assert.deepEqual(relay.faults().get(C1), [fault]);
  assert.deepEqual([...relay.states().keys()], [C2], 'it is not in service');
  assert.match(await registry.metrics(), /^taintward_cluster_disconnected\{cluster="c2"\} 0$/m);
  const metrics = await registry.metrics();
  assert.match(metrics, /taintward_cluster_faults\{cluster="c1",type="list-failing"\} 1/);
  assert.match(metrics, /taintward_cluster_faults\{cluster="c2",type="list-failing"\} 0/);
  assert.match(metrics, /taintward_relay_synced\{cluster="c1"\} 0/);
  relay.add(C1, clusterOf('a'));
  await time.pass(4 * SECOND);
  assert.deepEqual((await leases.read(C1))?.faults, []);
  assert.deepEqual(relay.states().get(C1), { kind: 'live' });
});

test('releases the lease of a cluster without access when it stops', async (context) => {
  const { time, relayOf, holderOf } = bench(context);
  const { relay } = relayOf('r1');
  relay.report(C1, () => []);
  await time.pass(SECOND);
  assert.equal(await holderOf(C1), 'r1');
  const stopped = relay.stop();
  await time.pass(10 * SECOND);
  await stopped;
  assert.equal(await holderOf(C1), undefined);
});

test('follows many clusters, each until it is removed', async (context) => {
  const { time, relayOf, holderOf, clusterOf } = bench(context);
  const { relay, nodes, registry } = relayOf('r1');
  relay.add(C1, clusterOf('a'));
  relay.add(C2, clusterOf('b'));
  await time.pass(SECOND);
  assert.deepEqual(
    [...relay.states()],
    [
      [C1, { kind: 'live' }],
      [C2, { kind: 'live' }],
    ],
  );
  assert.deepEqual(
    nodes.taken.map(({ ref, taints }) => [ref.cluster, taints[0]?.key]),
    [
      [C1, 'a'],
      [C2, 'b'],
    ],
  );

  assert.deepEqual([...relay.clusters().keys()], [C1, C2]);
  assert.deepEqual([...relay.faults().values()], [[], []]);
  relay.noted(C1, STORE_FAILING, new Error('the disk is full'));
  relay.noted(clusterName('unknown'), STORE_FAILING, new Error('the disk is full'));
  assert.deepEqual(
    [...relay.faults()].map(([name, faults]) => [name, faults.map(({ type }) => type)]),
    [
      [C1, ['store-failing']],
      [C2, []],
    ],
  );

  const series = async () => [...(await registry.metrics()).matchAll(/cluster="c1"/g)].length;
  assert.ok((await series()) > 0);
  await relay.remove(C1);
  assert.equal(await series(), 0, 'all of its series end');
  assert.deepEqual([...relay.states().keys()], [C2]);
  assert.deepEqual(await Promise.all([C1, C2].map(holderOf)), [undefined, 'r1']);

  await relay.remove(clusterName('unknown'));
  await relay.stop();
  assert.equal(await holderOf(C2), undefined);
});

test('follows a cluster with changed access again after its pending deltas are sent', async (context) => {
  const { time, relayOf, clusterOf } = bench(context);
  const { relay, nodes, registry } = relayOf('r1');
  nodes.onSend = async () => {
    await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
    return [];
  };
  relay.add(C1, clusterOf('a'));
  await time.pass(SECOND);
  const removed = relay.remove(C1);
  relay.add(C1, clusterOf('b'));
  await time.pass(10 * SECOND);
  await removed;
  assert.deepEqual(
    nodes.taken.map(({ taints }) => taints[0]?.key),
    ['a', 'b'],
  );
  const [before, after] = nodes.taken.map(({ version }) => version.epoch);
  assert.ok(Number(after) > Number(before));
  assert.equal(relay.states().get(C1)?.kind, 'live');
  assert.match(await registry.metrics(), /^taintward_relay_lists_total\{cluster="c1",resource="nodes"\} 2$/m);
});

test('follows a cluster that was removed twice and added twice by its last access alone', async (context) => {
  const { time, relayOf, clusterOf } = bench(context);
  const { relay, nodes } = relayOf('r1');
  nodes.onSend = async () => {
    await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
    return [];
  };
  const add = (key: string) => relay.add(C1, clusterOf(key));
  add('a');
  await time.pass(SECOND);
  const removed = [relay.remove(C1)];
  add('b');
  removed.push(relay.remove(C1));
  add('c');
  await time.pass(10 * SECOND);
  await Promise.all(removed);
  assert.deepEqual(
    nodes.taken.map(({ taints }) => taints[0]?.key),
    ['a', 'c'],
  );
});

test('gives a new relay its share, one cluster at a time, and then moves no cluster', async (context) => {
  const { time, relayOf, holderOf, clusterOf } = bench(context);
  const names = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'].map((name) => clusterName(name));
  const holders = () => Promise.all(names.map(holderOf));
  const join = (holder: string) => {
    const { relay } = relayOf(holder);
    for (const name of names) relay.add(name, clusterOf());
  };
  join('r1');
  await time.pass(3 * SECOND);
  assert.deepEqual(new Set(await holders()), new Set(['r1']));
  join('r2');
  const unheldMs = new Map<ClusterName, number>();
  for (let passed = 0; passed < 180 * SECOND; passed += 250) {
    await time.pass(250);
    const now = await holders();
    for (const [index, name] of names.entries()) {
      unheldMs.set(name, now[index] === undefined ? (unheldMs.get(name) ?? 0) + 250 : 0);
      assert.ok(Number(unheldMs.get(name)) <= LEASE_READ_MS + 250, 'nobody waits for longer than a look');
    }
    assert.ok(now.filter((holder) => holder === undefined).length <= 1, 'one at a time');
  }
  const shared = await holders();
  assert.equal(shared.filter((holder) => holder === 'r2').length, 3);
  await time.pass(120 * SECOND);
  assert.deepEqual(await holders(), shared);
});

test('logs that a lease cannot be requested, and requests one again', async (context) => {
  const { time, leases, relayOf, clusterOf } = bench(context);
  const error = new Error('the table is throttled');
  const bidFor: ClusterName[] = [];
  context.mock.method(leases, 'bid', async ({ cluster }: Lease) => {
    bidFor.push(cluster);
    throw error;
  });
  const [{ relay: busy }, { relay: idle, log }] = [relayOf('r1'), relayOf('r2')];
  for (const name of [C1, C2]) busy.add(name, clusterOf());
  await time.pass(3 * SECOND);
  for (const name of [C1, C2]) idle.add(name, clusterOf());
  await time.pass(120 * SECOND);
  const logged = log.lines.filter(({ event }) => event === 'relay.lease-failed');
  assert.ok(bidFor.length > 1);
  assert.deepEqual(
    logged.map(({ fields }) => fields),
    bidFor.map((cluster) => ({ cluster, error })),
  );
});

test('exceeds its capacity only for clusters without another relay, with a delay and a log line', async (context) => {
  const { time, relayOf, holderOf, clusterOf } = bench(context);
  const { relay, log, registry } = relayOf('small', 150);
  const over = async () => (await registry.getSingleMetric(OVER_BUDGET)?.get())?.values[0]?.value;
  relay.add(C1, clusterOf());
  await time.pass(SECOND);
  relay.add(C2, clusterOf());
  await time.pass(OVER_BUDGET_MS - SECOND);
  assert.deepEqual(await Promise.all([C1, C2].map(holderOf)), ['small', undefined]);
  assert.equal(await over(), 0);
  await time.pass(7 * SECOND);
  assert.deepEqual(await Promise.all([C1, C2].map(holderOf)), ['small', 'small']);
  const logged = log.lines.filter(({ event }) => event === 'relay.over-capacity');
  assert.equal(logged.length, 1);
  const { load, excess } = logged[0]?.fields ?? {};
  // The node of the second cluster may be listed already.
  assert.ok([201, 202].includes(Number(load)));
  assert.equal(excess, Number(load) - 150);
  // By the next check of the load, the node of the second cluster is listed.
  await time.pass(5 * SECOND);
  assert.equal(await over(), 52);
  assert.match(await registry.metrics(), /^taintward_relay_load 202$/m);
});

test('reports the mode of each cluster whose lease it holds in metrics', async (context) => {
  const { time, relayOf, clusterOf } = bench(context);
  const { relay, rules, registry } = relayOf('r1');
  const modes = async () => {
    const values = (await registry.getSingleMetric('taintward_cluster_mode')?.get())?.values ?? [];
    assert.ok(values.length === 0 || values.length === 3);
    return values.filter(({ value }) => value === 1).map(({ labels }) => labels['mode']);
  };
  relay.add(C1, clusterOf());
  assert.deepEqual(await modes(), []);
  await time.pass(SECOND);
  assert.deepEqual(await modes(), ['enforce']);
  rules.push({ policy: { ...DEFAULT_POLICY, mode: 'observe' } });
  assert.deepEqual(await modes(), ['observe']);
  const stop = { at: 0, actor: 'ann', reason: 'drill' };
  const until = Date.now() + SECOND;
  rules.push({
    policy: { ...DEFAULT_POLICY, mode: 'enforce' },
    stops: [{ ...stop, scope: 'cluster', until }],
  });
  assert.deepEqual(await modes(), ['stopped']);
  await time.pass(SECOND);
  assert.deepEqual(await modes(), ['enforce']);
  rules.push({ stops: [{ ...stop, scope: 'fleet' }] });
  assert.deepEqual(await modes(), ['stopped']);
});

test('reports the active trips of the guard in metrics', async (context) => {
  const { time, relayOf, clusterOf } = bench(context);
  const { relay, registry, written } = relayOf('r1');
  relay.add(C1, clusterOf(NODE_UNREACHABLE));
  relay.add(C2, clusterOf());
  await time.pass(SECOND);
  const text = await registry.getSingleMetricAsString(GUARD_TRIPS);
  const values = text.split('\n').filter((line) => line.startsWith(GUARD_TRIPS));
  assert.deepEqual(
    values.filter((line) => line.endsWith(' 1')),
    ['taintward_guard_active_trips{cluster="c1",scope="cluster"} 1'],
  );
  assert.equal(values.length, 6);
  assert.deepEqual(
    [...relay.trips()].map(([name, trips]) => [name, trips.length]),
    [
      [C1, 1],
      [C2, 0],
    ],
  );
  await time.pass(10 * SECOND);
  const counts = written.filter((line) => line.includes(GUARD_TRIPS));
  assert.ok(counts.length > 1 && counts.every((line) => line.includes(`"${GUARD_TRIPS}":[1]`)));
});

test('reports a suspended takeover heartbeat in metrics', async (context) => {
  const { time, relayOf, clusterOf } = bench(context);
  const { relay, registry, written } = relayOf('r1');
  const taken = clusterOf();
  // The virtual keys of the takeover are not in the policy.
  taken.putTakeover([NODE_UNREACHABLE], 90 * SECOND);
  relay.add(C1, taken);
  relay.add(C2, clusterOf());
  await time.pass(10 * SECOND);
  const value = async () =>
    (await registry.getSingleMetricAsString('taintward_cluster_faults'))
      .split('\n')
      .filter((line) => line.includes('cluster="c1",type="heartbeat-suspended"'))
      .map((line) => line.at(-1));
  assert.deepEqual(await value(), ['1']);
  assert.ok(written.some((line) => line.includes(`"${TAKEOVERS_WITHHELD}":[1]`)));
  taken.takeover = undefined;
  await time.pass(20 * SECOND);
  assert.deepEqual(await value(), ['0']);
});

test('leaves a cluster to the relay with enough capacity', async (context) => {
  const { time, relayOf, holderOf, clusterOf } = bench(context);
  const full = relayOf('full', 1);
  const free = relayOf('free', 1000);
  for (const { relay } of [full, free]) relay.add(C1, clusterOf());
  await time.pass(SECOND);
  assert.equal(await holderOf(C1), 'free');
});

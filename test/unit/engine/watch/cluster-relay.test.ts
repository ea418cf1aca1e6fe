import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { LEASE_RENEW_MS } from '#shared/engine/watch/lease-manager.ts';
import { HEARTBEAT_MS } from '#shared/engine/watch/takeover-heartbeat.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import type { LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { LEASE_TTL_MS } from '#shared/state/lease.ts';
import { QueueError } from '#shared/state/sender.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { StoreError } from '#shared/state/store.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import { aNode, anEnding, aRecord } from '#test/contracts/partition-builders.ts';
import { ref, taint } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { PushedRules } from '#test/world/pushed-rules.ts';
import type { OrderedQueue } from '../../aws/relay/ordered-queue.ts';
import { liveNode, livePod } from './live-objects.ts';
import { CLUSTER, clusterRelay, inSqlite, SECOND, taintedCluster, throwing, wakesOf } from './relay-world.ts';
import { ends, endsAfter, listOf } from './scripted-resource.ts';

function bench(context: TestContext) {
  const time = driveTimers(context, Date.UTC(2026, 0, 1));
  return { time, cluster: taintedCluster(), ...inSqlite() };
}

type Bench = ReturnType<typeof bench>;

function relayOf(context: TestContext, { cluster, ...state }: Bench, holder = 'relay-1', clock?: Clock) {
  const rules = new PushedRules();
  const given = { ...state, rules, holder, ...(clock ? { clock } : {}) };
  return { rules, ...clusterRelay(context, cluster, given) };
}

/** Starts a relay, and lets this time pass. */
async function started(context: TestContext, passMs = SECOND, given = bench(context)) {
  const made = relayOf(context, given);
  made.relay.start();
  await given.time.pass(passMs);
  return { given, ...made };
}

/** Acquires the lease from any holder. */
const takeOver = async (leases: Bench['leases'], holder: string) =>
  leases.take(CLUSTER, await leases.read(CLUSTER), holder, Date.now());

const upsert = (...keys: readonly string[]): WatchEvent<LiveNode> => ({
  kind: 'upsert',
  object: { ...liveNode('n1', ...keys), resourceVersion: '2' },
});

test('reports the clock skew only while it holds the lease of the cluster', async (context) => {
  const given = bench(context);
  given.cluster.skewMs = 700;
  const { relay } = relayOf(context, given);
  assert.equal(relay.skewMs, undefined);
  relay.start();
  await given.time.pass(SECOND);
  assert.equal(relay.skewMs, 700);
});

test('acquires the lease, lists, reports tainted nodes, and watches', async (context) => {
  const given = bench(context);
  given.cluster.nodes.watches = [endsAfter(5 * SECOND), ends('quiet', upsert('b'))];
  const { relay, nodes, pods } = relayOf(context, given);
  assert.equal(relay.state.kind, 'standby');
  relay.start();
  await given.time.pass(SECOND);
  assert.equal(relay.state.kind, 'live');
  assert.deepEqual(nodes.accepted, ['n1@1']);
  await given.time.pass(5 * SECOND);
  assert.deepEqual(nodes.accepted, ['n1@1', 'n1@2']);
  assert.deepEqual(pods.accepted, []);
  const [first] = nodes.taken;
  assert.ok(first?.kind === 'node' && first.wake, 'after a take-over, what is overdue is looked at at once');
});

describe('a cluster without an eviction controller', () => {
  const POLICY: Policy = { ...DEFAULT_POLICY, mode: 'observe' };
  /** The taint was found at the start, and the pod tolerates the taint for a minute. */
  const FORGOTTEN_MS = 11 * 60 * SECOND;

  test('is reported once when the built-in controller missed a pod and policy forbids its eviction', async (context) => {
    const given = bench(context);
    const { relay, rules, events } = relayOf(context, given);
    rules.push({ policy: POLICY });
    relay.start();
    await given.time.pass(FORGOTTEN_MS - 30 * SECOND);
    assert.ok(!relay.faults.some(({ type }) => type === 'no-eviction-controller'));
    await given.time.pass(60 * SECOND);
    assert.ok(relay.faults.some(({ type }) => type === 'no-eviction-controller'));
    await given.time.pass(60 * SECOND);
    assert.equal(events().filter((event) => event === 'cluster.no-eviction-controller').length, 1);
    rules.push({ policy: { ...POLICY, mode: 'enforce' } });
    await given.time.pass(20 * SECOND);
    assert.ok(!relay.faults.some(({ type }) => type === 'no-eviction-controller'));
  });

  test('is not reported for pods that tolerate their taints, or for taints that the built-in controller ignores', async (context) => {
    const given = bench(context);
    given.cluster.nodes.lists = [
      listOf({ ...liveNode('n1', 'a'), taints: [{ key: 'a', effect: 'NoSchedule' }] }, liveNode('n2', 'a')),
    ];
    const forGood = livePod('u2', { node: nodeName('n2'), tolerations: [{ key: 'a', operator: 'Exists' }] });
    given.cluster.pods.lists = [listOf(livePod(), forGood)];
    const { relay, rules } = relayOf(context, given);
    rules.push({ policy: { ...POLICY, treatAsNoExecute: ['a'] } });
    relay.start();
    await given.time.pass(2 * FORGOTTEN_MS);
    assert.equal(relay.state.kind, 'live');
    assert.ok(!relay.faults.some(({ type }) => type === 'no-eviction-controller'));
  });
});

test('renews a takeover while it holds the lease and policy evicts', async (context) => {
  const given = bench(context);
  const { relay, rules } = relayOf(context, given);
  const policy: Policy = { ...DEFAULT_POLICY, mode: 'enforce' };
  given.cluster.skewMs = 0;
  given.cluster.putTakeover([NODE_NOT_READY], 90 * SECOND);
  relay.start();
  await given.time.pass(2 * HEARTBEAT_MS);
  assert.equal(given.cluster.takeover?.heartbeat, undefined);
  rules.push({ policy: { ...policy, treatAsNoExecute: [NODE_NOT_READY] } });
  await given.time.pass(2 * HEARTBEAT_MS);
  const { heartbeat = 0 } = given.cluster.takeover ?? {};
  assert.ok(Date.now() - heartbeat <= HEARTBEAT_MS);
  rules.push({ policy: { ...policy, treatAsNoExecute: [NODE_NOT_READY], mode: 'observe' } });
  await given.time.pass(2 * HEARTBEAT_MS);
  assert.ok(Date.now() - (given.cluster.takeover?.heartbeat ?? 0) >= 2 * HEARTBEAT_MS);
  rules.push({ policy: { ...policy, treatAsNoExecute: [NODE_NOT_READY] } });
  await given.time.pass(HEARTBEAT_MS);
  const last = given.cluster.takeover?.heartbeat;
  const stopped = relay.stop();
  await given.time.pass(2 * HEARTBEAT_MS);
  await stopped;
  assert.equal(given.cluster.takeover?.heartbeat, last);
});

test('starts only once', async (context) => {
  const given = bench(context);
  const { relay } = relayOf(context, given);
  relay.start();
  relay.start();
  await given.time.pass(SECOND);
  assert.equal(given.cluster.nodes.listed.length, 1);
});

test('reports no node before its pods are listed', async (context) => {
  const given = bench(context);
  given.cluster.pods.lists = ['hang'];
  const { relay, nodes } = await started(context, LEASE_TTL_MS * 3, given);
  assert.deepEqual(nodes.calls, []);
  assert.equal(relay.state.kind, 'syncing');
});

describe('a resync', () => {
  test('reports every tainted node at each interval, without a wake', async (context) => {
    const { given, nodes } = await started(context);
    await given.time.pass(RESYNC_MS);
    await given.time.pass(RESYNC_MS);
    assert.deepEqual(nodes.accepted, ['n1@1', 'n1@2', 'n1@3']);
    assert.deepEqual(wakesOf(nodes), [true, false, false]);
  });

  test('is due once after a gap, for any number of lists', async (context) => {
    const given = bench(context);
    const gone = new ApiError('too old', 410);
    given.cluster.nodes.watches = [endsAfter(5 * SECOND, gone), ends('quiet')];
    given.cluster.pods.watches = [endsAfter(5 * SECOND, gone), ends('quiet')];
    const { nodes } = await started(context, SECOND, given);
    const list = given.store.taintedNodes.bind(given.store);
    given.store.taintedNodes = async function* (cluster) {
      await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
      yield* list(cluster);
    };
    await given.time.pass(20 * SECOND);
    assert.ok(nodes.accepted.length >= 2 && nodes.accepted.length <= 3, String(nodes.accepted));
    assert.ok(nodes.taken.every((delta) => delta.kind === 'node' && delta.wake));
  });

  test('is retried soon after a failure of the store, and the relay is syncing until then', async (context) => {
    const given = bench(context);
    const list = given.store.taintedNodes.bind(given.store);
    given.store.taintedNodes = throwing(new StoreError('the table is away'));
    const { relay, nodes, events } = await started(context, 10 * SECOND, given);
    assert.equal(relay.state.kind, 'syncing');
    assert.ok(events().filter((event) => event === 'relay.resync-failed').length < 10);
    given.store.taintedNodes = list;
    await given.time.pass(3 * SECOND);
    assert.equal(relay.state.kind, 'live');
    assert.deepEqual(nodes.accepted, ['n1@1']);
  });
});

describe('a lease', () => {
  test('stops the watches when it is lost, and drops unsent deltas', async (context) => {
    const given = bench(context);
    const { relay, nodes, events, metrics } = relayOf(context, given);
    const pending = async () => (await metrics.pending.get()).values.map(({ value }) => value);
    nodes.onSend = throwing(new QueueError('away'));
    relay.start();
    await given.time.pass(SECOND);
    assert.deepEqual(await pending(), [1, 0]);
    assert.ok(await takeOver(given.leases, 'relay-2'));
    await given.time.pass(2 * LEASE_RENEW_MS);
    assert.equal(relay.state.kind, 'standby');
    assert.ok(events().includes('relay.lease-lost'));
    assert.deepEqual(await pending(), [0, 0]);
    nodes.onSend = () => [];
    await given.time.pass(5 * SECOND);
    assert.deepEqual(nodes.accepted, []);
  });

  test('keeps its view while it cannot be renewed, because no other relay can acquire it meanwhile', async (context) => {
    const { given, relay, nodes } = await started(context);
    const renew = given.leases.renew.bind(given.leases);
    given.leases.renew = () => Promise.reject(new StoreError('the table is away'));
    await given.time.pass(3 * LEASE_TTL_MS);
    assert.equal(relay.state.kind, 'live');
    given.leases.renew = renew;
    await given.time.pass(LEASE_RENEW_MS);
    assert.equal(given.cluster.nodes.listed.length, 1);
    await given.time.pass(RESYNC_MS);
    assert.deepEqual(nodes.accepted, ['n1@1', 'n1@2']);
  });

  describe('expired before its renewal', () => {
    /**
     * A node or a pod changes at second 11 of a lease of 10 s. `renewed`: the renewal succeeds at second 12.
     */
    async function lapse(context: TestContext, renewed: boolean, changed: 'node' | 'pod' = 'node') {
      const given = bench(context);
      const { nodes, pods } = given.cluster;
      const added = {
        kind: 'upsert',
        object: livePod('u2', { resourceVersion: '2', tolerations: [] }),
      } as const;
      if (changed === 'node') nodes.watches = [endsAfter(11 * SECOND), ends('quiet', upsert('b'))];
      else pods.watches = [endsAfter(11 * SECOND), ends('quiet', added)];
      const relay = relayOf(context, given);
      const renew = given.leases.renew.bind(given.leases);
      const away = () => Promise.reject(new StoreError('the table is away'));
      given.leases.renew = (lease, report) => (report.claim ? renew(lease, report) : away());
      relay.relay.start();
      await given.time.pass(11.5 * SECOND);
      given.leases.read = away;
      given.leases.renew = renewed ? renew : async () => undefined;
      return { ...relay, time: given.time };
    }

    test('sends nothing while it is expired, and the pending deltas after its renewal', async (context) => {
      const { nodes, relay, time } = await lapse(context, true);
      assert.deepEqual(nodes.accepted, ['n1@1']);
      await time.pass(SECOND);
      assert.deepEqual(nodes.accepted, ['n1@1', 'n1@2']);
      assert.equal(nodes.taken[1]?.taints[0]?.key, 'b');
      assert.equal(relay.state.kind, 'live');
    });

    test('sends the pending deltas after its renewal although the guard held none of them', async (context) => {
      const { pods, time } = await lapse(context, true, 'pod');
      assert.deepEqual(pods.accepted, []);
      await time.pass(SECOND);
      assert.deepEqual(pods.accepted, ['u2@2']);
    });

    test('sends no more deltas when it is lost', async (context) => {
      const { nodes, relay, time } = await lapse(context, false);
      await time.pass(30 * SECOND);
      assert.equal(relay.state.kind, 'standby');
      assert.deepEqual(nodes.accepted, ['n1@1']);
    });
  });

  test('is acquired from a dead relay with a newer epoch', async (context) => {
    const given = bench(context);
    const dead = await takeOver(given.leases, 'dead');
    const { relay, nodes } = await started(context, LEASE_TTL_MS - SECOND, given);
    assert.equal(relay.state.kind, 'standby');
    await given.time.pass(5 * SECOND);
    assert.equal(relay.state.kind, 'live');
    assert.ok(Number(nodes.taken[0]?.version.epoch) > Number(dead?.epoch));
  });

  test('has the known state of the cluster with each renewal', async (context) => {
    const given = bench(context);
    const { relay } = relayOf(context, given);
    const startedAt = Date.now();
    given.cluster.breakerOpen = true;
    relay.start();
    await given.time.pass(SECOND + LEASE_RENEW_MS);
    const record = await given.leases.read(CLUSTER);
    assert.deepEqual([record?.nodes, record?.breakerOpen], [1, true]);
    assert.deepEqual(relay.state, { kind: 'live', breakerOpen: true });
    assert.ok(Number(record?.lastContactAt) - startedAt <= SECOND, 'nothing was heard since the watch stood');
    assert.ok(Number(record?.renewedAt) - startedAt >= LEASE_RENEW_MS);
  });
});

describe('a relay that stops', () => {
  test('releases its lease, so that the next relay need not wait', async (context) => {
    const given = bench(context);
    const first = relayOf(context, given);
    const second = relayOf(context, given, 'relay-2');
    first.relay.start();
    await given.time.pass(SECOND);
    const stopped = first.relay.stop();
    await given.time.settle();
    await stopped;
    second.relay.start();
    await given.time.pass(SECOND);
    assert.equal(second.relay.state.kind, 'live');
    const [before, after] = [first, second].map(({ nodes }) => Number(nodes.taken[0]?.version.epoch));
    assert.ok(Number(after) > Number(before));
  });

  test('first sends the pending deltas', async (context) => {
    const given = bench(context);
    const { relay, nodes } = relayOf(context, given);
    nodes.onSend = async () => {
      await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
      return [];
    };
    relay.start();
    await given.time.pass(SECOND);
    let released = false;
    void relay.stop().then(() => {
      released = true;
    });
    await given.time.pass(500);
    assert.equal(released, false);
    await given.time.pass(SECOND);
    assert.equal(released, true);
    assert.deepEqual(nodes.accepted, ['n1@1']);
  });

  test('does not wait for an unreachable queue', async (context) => {
    const given = bench(context);
    const { relay, nodes } = relayOf(context, given);
    nodes.onSend = throwing(new QueueError('away'));
    relay.start();
    await given.time.pass(SECOND);
    let released = false;
    void relay.stop().then(() => {
      released = true;
    });
    await given.time.pass(6 * SECOND);
    assert.equal(released, true);
    assert.equal((await given.leases.read(CLUSTER))?.holder, undefined);
    nodes.onSend = () => [];
    await given.time.pass(20 * SECOND);
    assert.deepEqual(nodes.accepted, [], 'another relay may speak for it by now');
  });
});

describe('an unreachable cluster', () => {
  async function away(context: TestContext) {
    const given = bench(context);
    const { lists } = given.cluster.nodes;
    given.cluster.nodes.lists = [new ApiError('the connection was refused', 0)];
    const state = { setMs: 0 };
    const clock = { now: () => Date.now() + state.setMs, stopwatch: Date.now };
    const relay = relayOf(context, given, 'relay-1', clock);
    const startedAt = Date.now();
    relay.relay.start();
    const comesBack = () => {
      given.cluster.nodes.lists = lists;
    };
    return { ...given, ...relay, startedAt, comesBack, state };
  }

  test('is disconnected, and live again as soon as it answers', async (context) => {
    const { time, relay, nodes, events, startedAt, comesBack } = await away(context);
    await time.pass(60 * SECOND);
    assert.equal(relay.state.kind, 'disconnected');
    assert.ok(relay.state.kind === 'disconnected' && relay.state.since - startedAt < SECOND);
    assert.ok(events().includes('relay.watch-failed'));
    comesBack();
    await time.pass(12 * SECOND);
    assert.equal(relay.state.kind, 'live');
    assert.deepEqual(nodes.accepted, ['n1@1']);
  });

  for (const [how, setMs] of [
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ] as const)
    test(`is handed off to other relays on time when the clock is set ${how}`, async (context) => {
      const { time, events, state } = await away(context);
      await time.pass(60 * SECOND);
      state.setMs = setMs;
      await time.pass(110 * SECOND);
      assert.ok(!events().includes('relay.lease-handed-off'));
      await time.pass(20 * SECOND);
      assert.ok(events().includes('relay.lease-handed-off'));
    });

  test('is handed off after three minutes, and acquired again when no other relay does', async (context) => {
    const { time, relay, nodes, leases, events, comesBack } = await away(context);
    await time.pass(60 * SECOND);
    const first = (await leases.read(CLUSTER))?.epoch;
    await time.pass(3 * 60 * SECOND);
    assert.ok(events().includes('relay.lease-handed-off'));
    comesBack();
    await time.pass(40 * SECOND);
    assert.equal(relay.state.kind, 'live');
    assert.ok(Number(nodes.taken[0]?.version.epoch) > Number(first));
  });
});

/** Returns a pod that was evicted with a grace period of 30 s. */
const leavingPod = (...finalizers: readonly string[]) =>
  livePod('u1', {
    terminating: true,
    disrupted: true,
    leaving: { gracePeriodEndedAt: Date.now() + 30 * SECOND, finalizers },
  });

test('watches stuck pods on an untainted node, and reports them until they are gone', async (context) => {
  const given = bench(context);
  const leaving = leavingPod('example.com/backup');
  given.cluster.pods.lists = [listOf(leaving), { items: [leaving, livePod('u2')], resourceVersion: '9' }];
  given.cluster.nodes.watches = [
    endsAfter(5 * SECOND),
    { events: [upsert()], end: undefined, afterMs: 120 * SECOND },
    ends('quiet', upsert('a')),
  ];
  const { relay, nodes, events } = await started(context, 85 * SECOND, given);
  assert.deepEqual([relay.gauges.stuck, await given.leases.stuck(CLUSTER)], [0, []]);
  await given.time.pass(20 * SECOND);
  assert.deepEqual([relay.gauges.counts.tainted, relay.gauges.stuck], [0, 1]);
  assert.deepEqual(
    (await given.leases.stuck(CLUSTER)).map(({ uid, nodeState }) => [uid, nodeState]),
    [['u1', 'there']],
  );
  assert.equal(events().filter((event) => event === 'pod.stuck-terminating').length, 1);
  await given.time.pass(60 * SECOND);
  const last = nodes.taken.at(-1);
  assert.deepEqual(last?.kind === 'node' && last.pods.map(({ uid }) => uid), ['u2']);
});

test('ends the watch of an untainted node as soon as its last evicted pod is gone', async (context) => {
  const given = bench(context);
  const leaving = leavingPod();
  given.cluster.pods.lists = [listOf(leaving)];
  given.cluster.pods.watches = [
    endsAfter(10 * SECOND),
    { events: [{ kind: 'delete', object: { ...leaving, resourceVersion: '2' } }], end: 'hang' },
  ];
  given.cluster.nodes.watches = [endsAfter(5 * SECOND), ends('quiet', upsert())];
  const { relay } = relayOf(context, given);
  relay.start();
  const ofPods = () => given.cluster.pods.watched.at(-1)?.signal.aborted;
  await given.time.pass(9 * SECOND);
  assert.deepEqual([relay.gauges.counts.tainted, ofPods()], [0, false]);
  await given.time.pass(3 * SECOND);
  assert.equal(ofPods(), true);
});

/** A relay whose pod is evicted, and deleted at second 5. */
async function evicting(context: TestContext) {
  const given = bench(context);
  const leaving = livePod('u1', { terminating: true, disrupted: true, resourceVersion: '3' });
  given.cluster.pods.watches = [endsAfter(5 * SECOND), ends('quiet', { kind: 'delete', object: leaving })];
  const { relay } = await started(context, SECOND, given);
  await given.store.end(
    { cluster: CLUSTER, node: nodeName('n1') },
    [anEnding(aRecord({ uid: podUid('u1') }))],
    Date.now(),
  );
  const removedAt = async () => {
    const history = new SqliteHistory({ database: given.store.database });
    const entries = await Array.fromAsync(history.entries({ cluster: CLUSTER, from: 0, to: Date.now() }));
    return entries.find(({ event }) => event === 'evicted')?.removedAt;
  };
  return { ...given, relay, removedAt };
}

test('records the removal of an evicted pod in the history', async (context) => {
  const { time, removedAt } = await evicting(context);
  const evictedAt = Date.now();
  await time.pass(20 * SECOND);
  const at = await removedAt();
  assert.ok(at !== undefined && at > evictedAt && at < evictedAt + 10 * SECOND, `${at}`);
});

test('records the last removals before it stops', async (context) => {
  const { time, relay, history, removedAt } = await evicting(context);
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  const noteGone = history.noteGone.bind(history);
  history.noteGone = (...removals) => promise.then(() => noteGone(...removals));
  await time.pass(4.5 * SECOND);
  let ended = false;
  const stopped = relay.stop().then(() => {
    ended = true;
  });
  await time.pass(SECOND);
  assert.equal(ended, false);
  answer();
  await stopped;
  assert.ok(await removedAt());
});

test('watches pods that were evicted before it started and are still on an untainted node', async (context) => {
  const given = bench(context);
  given.cluster.nodes.lists = [listOf(liveNode('n1'))];
  const leaving = leavingPod();
  given.cluster.pods.lists = [listOf(leaving)];
  const record = aRecord();
  await given.store.end(ref, [anEnding(record)], Date.now() - 5 * SECOND);
  await given.store.end({ ...ref, node: nodeName('n2') }, [anEnding(record)], Date.now() - 20 * 60 * SECOND);
  const { relay } = await started(context, 80 * SECOND, given);
  assert.equal(relay.gauges.stuck, 0);
  await given.time.pass(20 * SECOND);
  assert.deepEqual(
    (await given.leases.stuck(CLUSTER)).map(({ uid, nodeState }) => [uid, nodeState]),
    [['u1', 'there']],
  );
  assert.equal(given.cluster.pods.listed.length, 1);
});

describe('a server that answers again after an outage', () => {
  const REFUSED = new ApiError('the connection was refused', 0);
  const outage = {
    attempts: 5,
    nextTryAt: Date.UTC(2026, 0, 2),
    since: 0,
    triedAt: 0,
    error: 'silent',
    everything: true,
  };

  /** Returns a cluster with two tainted nodes, the second of which waits for the server. */
  async function waiting(context: TestContext) {
    const given = bench(context);
    const nodes = [liveNode('n1', 'a'), liveNode('n2', 'a')];
    given.cluster.nodes.lists = [listOf(...nodes)];
    for (const [name, more] of [
      ['n1', {}],
      ['n2', { outage }],
    ] as const) {
      const node = { ...aNode({ taints: [{ ...taint('a'), since: 0 }] }), ...more };
      const at = { cluster: CLUSTER, node: nodeName(name) };
      await given.store.commit(at, 0, { node, schedule: [], end: [], live: true }, Date.now());
    }
    return given;
  }

  const wokenOf = ({ taken }: OrderedQueue) =>
    taken.flatMap((delta) => (delta.kind === 'node' && delta.wake ? `${delta.ref.node}` : []));

  test('has the nodes woken that wait for it, at most once in ten seconds, without a list', async (context) => {
    const given = await waiting(context);
    const quiet = ends('quiet');
    given.cluster.nodes.watches = [endsAfter(60 * SECOND, REFUSED), quiet];
    const { nodes, events } = await started(context, 50 * SECOND, given);
    assert.deepEqual(wokenOf(nodes), ['n1', 'n2']);
    await given.time.pass(15 * SECOND);
    assert.ok(events().includes('cluster.reconnected'));
    assert.deepEqual(wokenOf(nodes), ['n1', 'n2', 'n2']);
    const last = nodes.taken.at(-1);
    assert.ok(last?.kind === 'node' && (last.answeredAt ?? 0) > Date.now() - 5 * SECOND);
    assert.equal(given.cluster.nodes.listed.length, 1);
    await given.time.pass(60 * SECOND);
    assert.deepEqual(wokenOf(nodes), ['n1', 'n2', 'n2']);
  });

  for (const [how, end] of [
    ['resumes its watches', REFUSED],
    ['needs new lists', new ApiError('too old', 410)],
  ] as const)
    test(`has each node woken at most once in ten seconds while it comes and goes and ${how}`, async (context) => {
      const given = await waiting(context);
      given.cluster.nodes.watches = [{ events: [], end, afterMs: 2 * SECOND }];
      const { relay, nodes } = relayOf(context, given);
      relay.start();
      const sentAt: number[] = [];
      nodes.onSend = (messages) => {
        sentAt.push(...messages.filter(({ body }) => body.includes('"n2"')).map(() => Date.now()));
        return [];
      };
      await given.time.pass(120 * SECOND);
      assert.ok(sentAt.length >= 5 && sentAt.length <= 13, `${sentAt.length} messages`);
      for (const [index, at] of sentAt.slice(1).entries())
        assert.ok(at - (sentAt[index] ?? 0) >= 9 * SECOND, `${sentAt}`);
    });

  test('has them woken, too, if it was frozen, and its watch stayed open', async (context) => {
    const given = await waiting(context);
    const { nodes } = await started(context, 15 * SECOND, given);
    given.cluster.allows = throwing(new ApiError('timed out', 0));
    await given.time.pass(60 * SECOND);
    assert.deepEqual(wokenOf(nodes), ['n1', 'n2']);
    given.cluster.allows = () => true;
    await given.time.pass(2 * SECOND);
    assert.deepEqual(wokenOf(nodes), ['n1', 'n2', 'n2']);
    assert.ok(nodes.taken.every((delta) => delta.kind === 'node' && (delta.answeredAt ?? 0) > 0));
  });

  test('has them woken although the store could not be read at first', async (context) => {
    const given = await waiting(context);
    const { nodes } = await started(context, 15 * SECOND, given);
    given.cluster.allows = throwing(new ApiError('timed out', 0));
    await given.time.pass(15 * SECOND);
    const list = given.store.taintedNodes.bind(given.store);
    given.store.taintedNodes = throwing(new StoreError('unavailable'));
    given.cluster.allows = () => true;
    await given.time.pass(5 * SECOND);
    given.store.taintedNodes = list;
    await given.time.pass(10 * SECOND);
    assert.deepEqual(wokenOf(nodes), ['n1', 'n2', 'n2']);
  });
});

describe('a change of the rules', () => {
  test('wakes every tainted node immediately, and again after in-flight evictions have settled', async (context) => {
    const { given, rules, nodes } = await started(context);
    rules.push({ policyRevision: 7 });
    await given.time.pass(SECOND);
    assert.deepEqual(nodes.accepted, ['n1@1', 'n1@2']);
    await given.time.pass(5 * SECOND);
    assert.deepEqual(nodes.accepted, ['n1@1', 'n1@2', 'n1@3']);
    await given.time.pass(RESYNC_MS / 2);
    assert.deepEqual(wakesOf(nodes), [true, true, true]);
  });

  test('reports due pods with their place in the release order', async (context) => {
    const given = bench(context);
    const owner = { kind: 'ReplicaSet', name: 'web' };
    const [first, second] = [
      livePod('u1', { owner, tolerations: [] }),
      livePod('u2', { owner, tolerations: [] }),
    ];
    given.cluster.pods.lists = [listOf(second, first, livePod('u3', { tolerations: [] }))];
    const { rules, nodes } = await started(context, SECOND, given);
    rules.push({ policyRevision: 7 });
    await given.time.pass(SECOND);
    const delta = nodes.taken.at(-1);
    assert.ok(delta?.kind === 'node');
    assert.deepEqual(Object.fromEntries(delta.pods.map(({ uid, rank }) => [uid, rank])), {
      u1: 0,
      u3: 1,
      u2: 2,
    });
  });
});

describe('nodes that go down', () => {
  const down = (name: string): WatchEvent<LiveNode> => ({
    kind: 'upsert',
    object: {
      ...liveNode(name, NODE_UNREACHABLE),
      resourceVersion: '2',
    },
  });

  /** Five nodes. Two go down after 5 s, and a third after another 5 s. */
  function failing(context: TestContext) {
    const given = bench(context);
    const names = ['n1', 'n2', 'n3', 'n4', 'n5'];
    given.cluster.nodes.lists = [listOf(...names.map((name) => liveNode(name)))];
    given.cluster.nodes.watches = [
      endsAfter(5 * SECOND),
      { events: [down('n1'), down('n2')], end: undefined, afterMs: 5 * SECOND },
      ends('quiet', down('n3')),
    ];
    given.cluster.pods.lists = [listOf()];
    return { given, ...relayOf(context, given) };
  }

  const sentRevisions = ({ taken }: OrderedQueue) =>
    taken.map(({ ref, guardRevision }) => `${ref.node} ${guardRevision ?? 'unguarded'}`);

  test('are reported under an unsaved revision while a trip cannot be saved', async (context) => {
    const { given, relay, rulesStore, nodes, events } = failing(context);
    relay.start();
    await given.time.pass(6 * SECOND);
    rulesStore.isReadOnly = true;
    await given.time.pass(20 * SECOND);
    assert.deepEqual(sentRevisions(nodes), ['n1 unguarded', 'n2 unguarded', 'n1 1', 'n2 1', 'n3 1']);
    assert.equal(rulesStore.state.revision, 0);
    assert.ok(events().includes('guard.save-failed'));
    rulesStore.isReadOnly = false;
    await given.time.pass(3 * SECOND);
    assert.deepEqual(sentRevisions(nodes).slice(5), []);
    assert.deepEqual(relay.gauges.trips, rulesStore.state.trips);
    assert.deepEqual(
      relay.trips.map(({ affectedNow, resetsBelow }) => [affectedNow, resetsBelow]),
      [[3, 2]],
    );
    assert.ok(events().includes('guard.tripped'));
  });

  test('are not reported before their trip is saved', async (context) => {
    const { given, relay, rulesStore, nodes } = failing(context);
    const saving = Promise.withResolvers<void>();
    relay.start();
    await given.time.pass(6 * SECOND);
    rulesStore.answer = saving.promise;
    await given.time.pass(10 * SECOND);
    assert.deepEqual(sentRevisions(nodes), ['n1 unguarded', 'n2 unguarded']);
    saving.resolve();
    await given.time.pass(SECOND);
    assert.deepEqual(sentRevisions(nodes).slice(2), ['n3 1']);
  });

  test('are judged by the present policy, also if it changes while they are down', async (context) => {
    const { given, relay, rules, rulesStore } = failing(context);
    const guard = { ...DEFAULT_POLICY.guard, cluster: { percent: 100, nodes: 100 } };
    rules.push({ policy: { ...DEFAULT_POLICY, guard } });
    relay.start();
    await given.time.pass(20 * SECOND);
    assert.deepEqual(rulesStore.state.trips, []);
    rules.push({ policy: DEFAULT_POLICY });
    await given.time.pass(SECOND);
    assert.equal(rulesStore.state.trips.length, 1);
  });

  test('reset the guard automatically when they have been up for five minutes', async (context) => {
    const { given, relay, rulesStore, events } = failing(context);
    const up = ['n1', 'n2', 'n3'].map((name) => ({
      kind: 'upsert' as const,
      object: { ...liveNode(name), resourceVersion: '3' },
    }));
    given.cluster.nodes.watches = [
      { events: ['n1', 'n2', 'n3'].map(down), end: undefined, afterMs: 5 * SECOND },
      ends('quiet', ...up),
    ];
    relay.start();
    await given.time.pass(SECOND);
    assert.deepEqual([rulesStore.state.trips.length, relay.tally?.cluster.nodes], [1, 3]);
    await given.time.pass(5 * 60 * SECOND);
    assert.equal(rulesStore.state.trips.length, 1);
    assert.equal((await given.leases.read(CLUSTER))?.tripProgress?.length, 1);
    await given.time.pass(20 * SECOND);
    assert.deepEqual([rulesStore.state.trips, relay.gauges.trips], [[], []]);
    assert.ok(events().includes('guard.released'));
  });

  test('wake other tainted nodes when they are up before their trip could be saved', async (context) => {
    const { given, relay, rulesStore, nodes } = failing(context);
    const untainted = ['n1', 'n2', 'n3', 'n4'];
    given.cluster.nodes.lists = [listOf(...untainted.map((name) => liveNode(name)), liveNode('n5', 'a'))];
    const up = (name: string) =>
      ({ kind: 'upsert', object: { ...liveNode(name), resourceVersion: '3' } }) as const;
    const isDown = ['n1', 'n2', 'n3'];
    given.cluster.nodes.watches = [
      { events: isDown.map(down), end: undefined, afterMs: 5 * SECOND },
      ends('quiet', ...isDown.map(up)),
    ];
    rulesStore.isReadOnly = true;
    relay.start();
    await given.time.pass(4 * SECOND);
    nodes.taken.length = 0;
    await given.time.pass(20 * SECOND);
    assert.deepEqual(rulesStore.state.trips, []);
    assert.ok(nodes.taken.some((delta) => delta.kind === 'node' && delta.wake && delta.ref.node === 'n5'));
  });
});

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DISCONNECTED_MS } from '#shared/engine/watch/cluster-relay.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import { type ClusterName, type ClusterUids, clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { liveNode } from './live-objects.ts';
import { clusterRelay, inDynamoDb, SECOND, taintedCluster } from './relay-world.ts';
import { ends, endsAfter, listOf } from './scripted-resource.ts';

const [A, B] = [clusterName('a'), clusterName('b')];
/** Longer than any pause between two tries here, and than the interval between two checks of a claim. */
const A_WHILE = 40 * SECOND;
const REFUSED = 'b and a are the same cluster, which is managed as a: name only one of the two.';

/** Relays of one installation, each with a server of its own that shows one tainted node with a pod. */
function bench(context: TestContext) {
  const time = driveTimers(context, Date.UTC(2026, 0, 1));
  const clock = { now: Date.now };
  const state = inDynamoDb();
  const { leases } = state;
  const registered = new Set<ClusterName>();

  /** Starts the relay of a cluster; `isBlind`: it may read no other lease, as an agent. */
  const follow = (name: ClusterName, identity: ClusterUids, { isBlind = false } = {}) => {
    registered.add(name);
    const server = taintedCluster();
    server.identity = identity;
    const log = recordingLog();
    const readAll = async () => new Map([[name, enforced({ comparisonOperators: false })]]);
    const rules = new RulesWatch({ readAll, clock, log });
    const holder = `relay of ${name}`;
    const made = clusterRelay(context, server, {
      ...state,
      name,
      rules,
      log,
      holder,
      ...(isBlind
        ? {}
        : { otherLeases: async () => leases.readAll([...registered].filter((other) => other !== name)) }),
    });
    const { relay, nodes, events } = made;
    const stop = async () => {
      await made.stop();
      await rules.stop();
    };
    context.after(stop);
    relay.start();
    const fault = () => relay.faults.find(({ type }) => type === 'same-cluster')?.error;
    const claim = async () => {
      const { uids, sameAs } = (await leases.read(name)) ?? {};
      return { uids, sameAs };
    };
    return { server, relay, events, sent: nodes.taken, fault, claim, stop };
  };

  const unregister = async (name: ClusterName, { stop }: { readonly stop: () => Promise<void> }) => {
    registered.delete(name);
    await stop();
  };
  return { time, follow, unregister };
}

const ONE: ClusterUids = { system: 's1', nodes: ['n1', 'n2'] };
const OTHER: ClusterUids = { system: 's2', nodes: ['n3'] };

describe('a cluster under two names', () => {
  for (const [how, second] of [
    ['by kube-system', { system: 's1', nodes: [] }],
    ['by a node, where kube-system may not be read', { nodes: ['n2', 'n9'] }],
  ] as const) {
    test(`is managed under the name that was first, ${how}`, async (context) => {
      const { time, follow } = bench(context);
      const first = follow(A, ONE);
      await time.pass(A_WHILE);
      const before = first.sent.length;
      assert.ok(before > 0);
      const late = follow(B, second);
      await time.pass(A_WHILE);
      assert.deepEqual([late.sent.length, late.server.nodes.watched.length, late.fault()], [0, 0, REFUSED]);
      assert.deepEqual(await late.claim(), { uids: undefined, sameAs: A });
      assert.deepEqual([first.fault(), first.relay.state.kind], [undefined, 'live']);
      assert.deepEqual(await first.claim(), { uids: ONE, sameAs: undefined });
      // No other relay could manage it either, so the lease is kept, and its fault with it.
      await time.pass(DISCONNECTED_MS + A_WHILE);
      assert.ok(!late.events().includes('relay.lease-handed-off'));
    });
  }

  test('keeps its first name when that relay was stopped for a while', async (context) => {
    const { time, follow } = bench(context);
    const first = follow(A, ONE);
    await time.pass(A_WHILE);
    await first.stop();
    const late = follow(B, ONE);
    await time.pass(A_WHILE);
    assert.deepEqual([late.sent.length, late.fault()], [0, REFUSED]);
  });

  test('is managed under the second name once the first is removed', async (context) => {
    const { time, follow, unregister } = bench(context);
    const first = follow(A, ONE);
    await time.pass(A_WHILE);
    const late = follow(B, ONE);
    await time.pass(A_WHILE);
    await unregister(A, first);
    await time.pass(A_WHILE);
    assert.deepEqual([late.fault(), late.relay.state.kind], [undefined, 'live']);
    assert.ok(late.sent.length > 0);
    assert.deepEqual(await late.claim(), { uids: ONE, sameAs: undefined });
  });

  test('is never managed under both when two relays start simultaneously, and is under one in the end', async (context) => {
    const { time, follow } = bench(context);
    const both = [follow(A, ONE), follow(B, ONE)];
    await time.pass(3 * A_WHILE);
    assert.equal(both.filter(({ sent }) => sent.length > 0).length, 1);
    assert.equal(both.filter(({ fault }) => fault() === undefined).length, 1);
  });

  test('is managed under one in the end when it had no nodes at the start', async (context) => {
    const { time, follow } = bench(context);
    const both = [follow(A, { nodes: [] }), follow(B, { nodes: [] })];
    await time.pass(A_WHILE);
    for (const { server } of both) server.identity = { nodes: ['n1'] };
    await time.pass(3 * A_WHILE);
    assert.equal(both.filter(({ sent }) => sent.length > 0).length, 1);
    assert.equal(both.filter(({ fault }) => fault() === undefined).length, 1);
  });

  test('is found when the server of a name is replaced while it is watched', async (context) => {
    const { time, follow } = bench(context);
    const first = follow(A, ONE);
    const moving = follow(B, OTHER);
    moving.server.nodes.watches = [
      endsAfter(A_WHILE, new ApiError('the connection broke', 0)),
      ends('quiet'),
    ];
    await time.pass(A_WHILE - SECOND);
    const [sent, watched] = [moving.sent.length, moving.server.nodes.watched.length];
    assert.ok(sent > 0);
    moving.server.identity = ONE;
    await time.pass(A_WHILE);
    assert.deepEqual([moving.server.nodes.watched.length, moving.fault()], [watched, REFUSED]);
    assert.deepEqual([moving.sent.length, (await moving.claim()).sameAs], [sent, A]);
    assert.equal(first.relay.state.kind, 'live');
    moving.server.identity = OTHER;
    await time.pass(A_WHILE);
    assert.deepEqual([moving.fault(), moving.relay.state.kind], [undefined, 'live']);
  });

  test('is left to an agent, which cannot read other claims', async (context) => {
    const { time, follow } = bench(context);
    const outside = follow(B, ONE);
    await time.pass(A_WHILE);
    follow(A, ONE, { isBlind: true });
    await time.pass(A_WHILE);
    assert.deepEqual([outside.fault(), (await outside.claim()).sameAs], [REFUSED, A]);
  });
});

test('a cluster that is rebuilt under its name is managed', async (context) => {
  const { time, follow } = bench(context);
  const rebuilt = follow(A, ONE);
  follow(B, { system: 's3', nodes: [] });
  rebuilt.server.nodes.watches = [
    endsAfter(20 * SECOND, new ApiError('the version is too old', 410)),
    ends('quiet'),
  ];
  await time.pass(10 * SECOND);
  rebuilt.server.identity = OTHER;
  await time.pass(A_WHILE);
  assert.deepEqual([rebuilt.fault(), rebuilt.relay.state.kind], [undefined, 'live']);
  assert.deepEqual((await rebuilt.claim()).uids, OTHER);
});

test('a claim names the current nodes', async (context) => {
  const { time, follow } = bench(context);
  const { server, claim } = follow(A, { nodes: ['n1', 'n2'] });
  server.nodes.watches = [endsAfter(5 * SECOND)];
  await time.pass(3 * SECOND);
  server.identity = { nodes: ['n2', 'n3'] };
  await time.pass(A_WHILE);
  assert.deepEqual((await claim()).uids, { nodes: ['n2', 'n3'] });
});

test('nothing is sent from a cluster of which nothing can be told apart, until it has a node', async (context) => {
  const { time, follow } = bench(context);
  const empty = follow(A, { nodes: [] });
  await time.pass(A_WHILE);
  assert.deepEqual([empty.relay.state.kind, empty.sent.length], ['live', 0]);
  empty.server.identity = { nodes: ['n1'] };
  await time.pass(A_WHILE);
  assert.ok(empty.sent.length > 0);
});

test('a cluster without nodes is claimed as soon as the first comes', async (context) => {
  context.mock.method(Math, 'random', () => 0.9);
  const { time, follow } = bench(context);
  const { server, sent } = follow(A, { nodes: [] });
  server.nodes.lists = [listOf()];
  const object = { ...liveNode('n1', 'a'), resourceVersion: '2' };
  server.nodes.watches = [endsAfter(3 * SECOND), ends('quiet', { kind: 'upsert', object })];
  await time.pass(2 * SECOND);
  assert.equal(sent.length, 0);
  let reads = 0;
  server.uids = async () => {
    reads += 1;
    return { nodes: reads === 1 ? [] : ['n1'] };
  };
  await time.pass(2 * SECOND);
  assert.ok(sent.length > 0);
});

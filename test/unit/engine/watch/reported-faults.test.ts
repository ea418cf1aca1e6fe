import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { REPORTED_FOR_MS } from '#shared/engine/watch/built-in-evictions.ts';
import { STORE_FAILING, UNSTORED_MS } from '#shared/engine/watch/cluster-faults.ts';
import { LEASE_RENEW_MS } from '#shared/engine/watch/lease-manager.ts';
import { PING_MS } from '#shared/engine/watch/permission-watch.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import { HEARTBEAT_MS } from '#shared/engine/watch/takeover-heartbeat.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { FaultType } from '#shared/state/fault.ts';
import { QueueError } from '#shared/state/sender.ts';
import { StoreError } from '#shared/state/store.ts';
import { NODE_NOT_READY } from '#shared/taints/taint.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { liveNode, livePod } from './live-objects.ts';
import {
  CLUSTER,
  clusterRelay,
  inDynamoDb,
  SECOND,
  taintedCluster,
  throwing,
  wakesOf,
} from './relay-world.ts';
import { ends, endsAfter, listOf } from './scripted-resource.ts';

const START = Date.UTC(2026, 0, 1);
/** Longer than any pause between two tries here, and than the renewal interval. */
const A_WHILE = 15 * SECOND;

const refused = (status: number) => new ApiError(`Cannot list pods: ${status}`, status);

type Bench = ReturnType<typeof bench>;

/** Returns a relay that holds the lease of a cluster with one tainted node. */
function bench(context: TestContext) {
  const time = driveTimers(context, START);
  const clock = { now: Date.now };
  const state = inDynamoDb();
  const { leases, store, history } = state;
  const cluster = taintedCluster();
  const log = recordingLog();
  const governing = {
    rules: enforced({ comparisonOperators: false }),
    read: async (): Promise<Rules> => governing.rules,
  };
  const readAll = async () => new Map([[CLUSTER, await governing.read()]]);
  const rules = new RulesWatch({ readAll, clock, log });
  const { relay, rulesStore, nodes, pods } = clusterRelay(context, cluster, { ...state, rules, log });
  context.after(() => rules.stop());
  const stored = async () => (await leases.read(CLUSTER))?.faults;
  /** Lets this time pass. Returns the faults of the lease in short form: type, resource and status. */
  const faultsAfter = async (afterMs = A_WHILE) => {
    await time.pass(afterMs);
    return (await stored())?.map(({ type, resource, status }) =>
      [type, resource, status].filter(Boolean).join(' '),
    );
  };
  const govern = (policy: Partial<Policy>) => {
    governing.rules = { ...governing.rules, policy: { ...governing.rules.policy, ...policy } };
  };
  relay.start();
  return {
    time,
    cluster,
    relay,
    leases,
    store,
    history,
    nodes,
    pods,
    governing,
    govern,
    rulesStore,
    log,
    stored,
    faultsAfter,
  };
}

describe('the lease of a cluster reports', () => {
  test('an empty list without faults', async (context) => {
    const { time, faultsAfter } = bench(context);
    await time.pass(SECOND);
    assert.equal(await faultsAfter(0), undefined, 'it was not renewed yet');
    assert.deepEqual(await faultsAfter(LEASE_RENEW_MS), []);
  });

  for (const status of [401, 403, 500])
    test(`a failing list of pods (${status}) with its start, until it succeeds`, async (context) => {
      const { cluster, stored, faultsAfter } = bench(context);
      cluster.pods.lists = [refused(status)];
      assert.deepEqual(await faultsAfter(), [`list-failing pods ${status}`]);
      const [fault] = (await stored()) ?? [];
      assert.ok(fault && fault.since < START + SECOND, 'however often it failed since');
      assert.equal(fault.error, `Cannot list pods: ${status}`);
      cluster.pods.lists = [{ items: [], resourceVersion: '2' }];
      assert.deepEqual(await faultsAfter(), []);
    });

  test('a failing list of nodes, also without an answer', async (context) => {
    const { cluster, leases, faultsAfter } = bench(context);
    cluster.nodes.lists = [new ApiError('the connection was refused', 0)];
    assert.deepEqual(await faultsAfter(), ['list-failing nodes']);
    assert.equal((await leases.read(CLUSTER))?.nodes, undefined);
    cluster.nodes.lists = [listOf()];
    assert.deepEqual(await faultsAfter(), []);
  });

  for (const resource of ['nodes', 'pods'] as const)
    test(`a failing watch of ${resource}, until a watch opens, even a quiet one`, async (context) => {
      const { cluster, faultsAfter } = bench(context);
      cluster[resource].watches = [endsAfter(5 * SECOND), ends<never>(refused(403))];
      assert.deepEqual(await faultsAfter(), [`watch-failing ${resource} 403`]);
      cluster[resource].watches = [ends<never>('hang')];
      assert.deepEqual(await faultsAfter(), []);
    });

  for (const resource of ['nodes', 'pods'] as const)
    for (const [when, watches, expected] of [
      ['is mended', [ends(refused(410)), ends('quiet')], []],
      ['is not mended', [ends(refused(410))], [`watch-failing ${resource} 410`]],
    ] as const)
      test(`an expired version of ${resource}, when it ${when} by a new list`, async (context) => {
        const { cluster, faultsAfter } = bench(context);
        cluster[resource].watches = [...watches];
        assert.deepEqual(await faultsAfter(), expected);
      });

  test('an API server that is frozen while every watch is open, within 9 s, until it answers', async (context) => {
    const { cluster, faultsAfter } = bench(context);
    await faultsAfter();
    const both = ['list-failing pods', 'watch-failing nodes'];
    cluster.allows = throwing(new ApiError('timed out', 0));
    assert.deepEqual(await faultsAfter(PING_MS + LEASE_RENEW_MS + SECOND), both);
    assert.deepEqual(await faultsAfter(), both);
    cluster.allows = () => true;
    assert.deepEqual(await faultsAfter(LEASE_RENEW_MS + 2 * SECOND), []);
  });

  test('a failing queue of deltas', async (context) => {
    const { time, nodes, leases, relay, faultsAfter } = bench(context);
    nodes.onSend = () => Promise.reject(new QueueError('the queue is away'));
    assert.deepEqual(await faultsAfter(), ['queue-failing']);
    nodes.onSend = (messages) =>
      messages.map((_, index) => ({ index, permanent: false, reason: 'throttled' }));
    assert.deepEqual(await faultsAfter(), ['queue-failing']);
    nodes.onSend = () => [];
    assert.deepEqual(await faultsAfter(), []);
    nodes.onSend = throwing(new QueueError('the queue is away'));
    await time.pass(RESYNC_MS);
    assert.equal(relay.faults[0]?.type, 'queue-failing');
    const answer = Promise.withResolvers<never>();
    nodes.onSend = () => answer.promise;
    await time.pass(A_WHILE);
    await leases.take(CLUSTER, await leases.read(CLUSTER), 'another', Date.now());
    await time.pass(2 * LEASE_RENEW_MS);
    answer.reject(new QueueError('the queue is away'));
    await time.settle();
    assert.deepEqual([relay.state.kind, relay.faults], ['standby', []]);
  });

  test('a failing queue of deltas of pods, although that of nodes works', async (context) => {
    const { time, cluster, pods, nodes, stored } = bench(context);
    const added = { kind: 'upsert', object: livePod('u2', { resourceVersion: '2' }) } as const;
    cluster.pods.watches = [endsAfter(5 * SECOND), ends('quiet', added)];
    pods.onSend = throwing(new QueueError('the queue is away'));
    await time.pass(RESYNC_MS + A_WHILE);
    assert.ok(nodes.taken.length > 1);
    const [fault] = (await stored()) ?? [];
    assert.ok(fault && fault.since < START + A_WHILE);
  });

  for (const [what, type, silence] of [
    ['renewals of the lease', 'lease-unavailable', ({ leases }) => [leases, 'renew']],
    ['reads of the rules', 'store-failing', ({ governing }) => [governing, 'read']],
    ['sends of deltas', 'queue-failing', ({ nodes }) => [nodes, 'send']],
  ] satisfies readonly (readonly [string, FaultType, (bench: Bench) => readonly [object, string]])[])
    test(`${what} that never settle, within 15 s, until there is an answer`, async (context) => {
      const world = bench(context);
      const { time, cluster, relay, faultsAfter } = world;
      const other = { kind: 'upsert', object: liveNode('n1', 'other') } as const;
      cluster.nodes.watches = [endsAfter(2 * SECOND), ends('quiet', other)];
      assert.deepEqual(await faultsAfter(SECOND), undefined);
      const [port, call] = silence(world);
      const answer = Promise.withResolvers<void>();
      const calls = Reflect.get(port, call) as (...args: unknown[]) => unknown;
      Reflect.set(port, call, async (...args: unknown[]) => {
        await answer.promise;
        return calls.apply(port, args);
      });
      await time.pass(A_WHILE);
      assert.deepEqual(
        relay.faults.map((fault) => [fault.type, fault.error]),
        [[type, 'There is no answer within 5s']],
      );
      answer.resolve();
      assert.deepEqual(await faultsAfter(), []);
    });

  test('a failing history', async (context) => {
    const { cluster, history, faultsAfter } = bench(context);
    const gone = livePod('u1', { terminating: true, disrupted: true, resourceVersion: '3' });
    cluster.pods.watches = [endsAfter(5 * SECOND), ends('quiet', { kind: 'delete', object: gone })];
    const notes = context.mock.method(history, 'noteGone', throwing(new StoreError('the table is away')));
    assert.deepEqual(await faultsAfter(), ['store-failing']);
    notes.mock.restore();
    assert.deepEqual(await faultsAfter(60 * SECOND), []);
  });

  test('unreadable rules, and an unreadable store', async (context) => {
    const { governing, store, faultsAfter } = bench(context);
    const away = async (): Promise<never> => {
      throw new StoreError('the table is away');
    };
    const { read } = governing;
    governing.read = away;
    assert.deepEqual(await faultsAfter(), ['store-failing']);
    const list = store.taintedNodes.bind(store);
    Object.assign(store, { taintedNodes: () => ({ [Symbol.asyncIterator]: () => ({ next: away }) }) });
    governing.read = read;
    assert.deepEqual(await faultsAfter(), ['store-failing']);
    Object.assign(store, { taintedNodes: list });
    assert.deepEqual(await faultsAfter(), []);
  });

  test('failing writes, as reported by the process that decides', async (context) => {
    const { time, relay, faultsAfter } = bench(context);
    await time.pass(SECOND);
    relay.noted(STORE_FAILING, new StoreError('the disk is full'));
    assert.deepEqual(await faultsAfter(), ['store-failing']);
    assert.deepEqual(relay.gauges.faults, relay.faults);
    relay.noted(STORE_FAILING);
    assert.deepEqual(await faultsAfter(), []);
    // The next decision may be far away.
    relay.noted(STORE_FAILING, new StoreError('the disk is full'));
    assert.deepEqual(await faultsAfter(UNSTORED_MS + A_WHILE), []);
  });

  test('a failing report of stuck pods', async (context) => {
    const { cluster, leases, log, faultsAfter } = bench(context);
    const leaving = { gracePeriodEndedAt: START, finalizers: [] };
    cluster.pods.lists = [listOf(livePod('u1', { terminating: true, disrupted: true, leaving }))];
    const error = new StoreError('the table is away');
    const reports = context.mock.method(leases, 'reportStuck', throwing(error));
    assert.deepEqual(await faultsAfter(90 * SECOND), ['store-failing']);
    const line = log.lines.find(({ level }) => level === 'error');
    const fields = { cluster: CLUSTER, error };
    assert.deepEqual(line, { level: 'error', event: 'relay.lease-failed', fields });
    reports.mock.restore();
    assert.deepEqual(await faultsAfter(), []);
  });

  test('a guard that cannot be saved', async (context) => {
    const { cluster, rulesStore, faultsAfter } = bench(context);
    cluster.nodes.lists = [listOf(...Array.from({ length: 6 }, (_, i) => liveNode(`n${i}`, NODE_NOT_READY)))];
    rulesStore.isReadOnly = true;
    assert.deepEqual(await faultsAfter(), ['guard-unsaved']);
    rulesStore.isReadOnly = false;
    assert.deepEqual(await faultsAfter(), []);
  });

  test('clocks that differ by more than 30 s, with the difference; the log reports them once', async (context) => {
    const { time, cluster, log, nodes, stored, faultsAfter } = bench(context);
    cluster.skewMs = 20_000;
    assert.deepEqual(await faultsAfter(), []);
    cluster.skewMs = -240_000;
    assert.deepEqual(await faultsAfter(4 * A_WHILE), ['clocks-differ']);
    const behind = "The API server's clock is at least 4m behind the clock of relay r1";
    assert.equal((await stored())?.[0]?.error, `${behind}: evictions are held.`);
    cluster.otherSkews = [{ leastMs: 0, mostMs: 500 }];
    await time.pass(A_WHILE);
    assert.equal(
      (await stored())?.[0]?.error,
      `${behind}: evictions wait until their deadlines have passed by both clocks.`,
    );
    const clockLines = () => log.lines.filter(({ event }) => event === 'cluster.clocks-differ');
    const reason = `${behind}: evictions are held.`;
    assert.deepEqual([clockLines().length, clockLines()[0]?.fields], [1, { cluster: CLUSTER, reason }]);
    cluster.skewMs = 0;
    cluster.otherSkews = [];
    nodes.taken.length = 0;
    assert.deepEqual(await faultsAfter(), []);
    cluster.skewMs = 31_000;
    await time.pass(A_WHILE);
    assert.equal(clockLines().length, 2);
  });

  test('no clock difference that a slow answer may explain', async (context) => {
    const { cluster, faultsAfter } = bench(context);
    cluster.otherSkews = [{ leastMs: -45_000, mostMs: 500 }];
    assert.deepEqual(await faultsAfter(), []);
  });

  test('a wake of held pods once the clocks agree', async (context) => {
    const { time, cluster, nodes } = bench(context);
    cluster.skewMs = -240_000;
    await time.pass(A_WHILE);
    nodes.taken.length = 0;
    cluster.skewMs = 0;
    await time.pass(A_WHILE);
    assert.deepEqual(wakesOf(nodes), [true]);
  });

  test('a taint with a time in the future, until it is corrected', async (context) => {
    const { cluster, log, stored, faultsAfter } = bench(context);
    const tainted = (timeAdded: number) => ({
      ...liveNode('n1'),
      taints: [{ key: 'a', effect: 'NoExecute', timeAdded }],
    });
    const upsert = (timeAdded: number) => ({ kind: 'upsert' as const, object: tainted(timeAdded) });
    const inYear2999 = Date.UTC(2999, 0);
    cluster.nodes.lists = [listOf(tainted(inYear2999))];
    cluster.nodes.watches = [
      { events: [upsert(inYear2999)], end: undefined, afterMs: 30 * SECOND },
      ends('quiet', upsert(START)),
    ];
    assert.deepEqual(await faultsAfter(), ['taint-time-in-future']);
    assert.equal(
      (await stored())?.[0]?.error,
      'The taint a:NoExecute of node n1 says that it was added at 2999-01-01T00:00:00Z, which is in the future. The time is ignored.',
    );
    assert.deepEqual(await faultsAfter(2 * A_WHILE), []);
    assert.equal(log.lines.filter(({ event }) => event === 'node.taint-time-in-future').length, 1);
  });

  test('a taint with a time in the future, until a new list lacks its node', async (context) => {
    const { cluster, log, stored, faultsAfter } = bench(context);
    const [n1, n2] = (['n1', 'n2'] as const).map((name) => ({
      ...liveNode(name),
      taints: [{ key: 'a', effect: 'NoExecute', timeAdded: Date.UTC(2999, 0) }],
    }));
    assert.ok(n1 && n2);
    cluster.nodes.lists = [listOf(n1, n2), listOf(n2), listOf()];
    cluster.nodes.watches = [
      endsAfter(A_WHILE, refused(410)),
      endsAfter(A_WHILE, refused(410)),
      ends('quiet'),
    ];
    await faultsAfter(2 * A_WHILE);
    assert.match((await stored())?.[0]?.error ?? '', /of node n2 /);
    assert.deepEqual(await faultsAfter(2 * A_WHILE), []);
    const logged = log.lines.filter(({ event }) => event === 'node.taint-time-in-future');
    assert.deepEqual(
      logged.map(({ fields }) => fields['node']),
      ['n1', 'n2'],
    );
  });

  test('a suspended heartbeat of a takeover, with the reason', async (context) => {
    const { cluster, govern, stored, faultsAfter } = bench(context);
    cluster.skewMs = 0;
    cluster.putTakeover([NODE_NOT_READY], 90 * SECOND);
    govern({ mode: 'observe', treatAsNoExecute: [NODE_NOT_READY] });
    assert.deepEqual(await faultsAfter(2 * HEARTBEAT_MS), ['heartbeat-suspended']);
    assert.match((await stored())?.[0]?.error ?? '', /observe/);
    govern({ mode: 'enforce' });
    assert.deepEqual(await faultsAfter(2 * HEARTBEAT_MS), []);
  });

  test('no suspended heartbeat in a cluster without a takeover, although it cannot be read', async (context) => {
    const { cluster, log, faultsAfter } = bench(context);
    cluster.getTakeover = () => Promise.reject(refused(401));
    assert.deepEqual(await faultsAfter(2 * HEARTBEAT_MS), []);
    assert.ok(!log.lines.some(({ event }) => event === 'takeover.heartbeat-suspended'));
  });

  test('a missing eviction controller, with the reason in the log', async (context) => {
    const { govern, log, faultsAfter } = bench(context);
    govern({ mode: 'observe' });
    assert.deepEqual(await faultsAfter(12 * 60 * SECOND), ['no-eviction-controller']);
    const line = log.lines.find(({ event }) => event === 'cluster.no-eviction-controller');
    assert.match(`${line?.fields['reason']}`, /more than 10m overdue.*built-in.*observe/);
    govern({ mode: 'enforce' });
    assert.deepEqual(await faultsAfter(), []);
  });

  test('evictions of held pods by the built-in controller, for an hour', async (context) => {
    const { time, cluster, governing, log, stored } = bench(context);
    const act = { actor: 'anna', at: START, reason: 'it is busy' };
    const [kept, free] = [livePod('u1'), livePod('u2')].map((pod) => ({ ...pod, tolerations: [] }));
    assert.ok(kept && free);
    const target = { kind: 'pod', namespace: 'default', name: kept.name } as const;
    governing.rules = { ...governing.rules, holds: [{ ...act, id: 'h1', target }] };
    cluster.pods.lists = [listOf(kept, free)];
    const evicted = [kept, free].map((pod) => ({
      ...pod,
      resourceVersion: '2',
      terminating: true,
      disrupted: true,
      deleted: { at: START + 5 * SECOND, by: 'taint-manager' } as const,
    }));
    cluster.pods.watches = [
      endsAfter(5 * SECOND),
      ends('quiet', ...evicted.map((object) => ({ kind: 'upsert' as const, object }))),
    ];
    await time.pass(A_WHILE);
    const faults = (await stored()) ?? [];
    assert.deepEqual(
      faults.map(({ type, count }) => [type, count]),
      [['built-in-evicts', 1]],
    );
    assert.match(faults[0]?.error ?? '', /default\/pod-u1 \(hold h1\)/);
    assert.deepEqual(
      log.lines.filter(({ event }) => event === 'pod.evicted-despite-hold').map(({ fields }) => fields),
      [
        {
          cluster: CLUSTER,
          node: 'n1',
          namespace: 'default',
          pod: kept.name,
          uid: 'u1',
          by: 'hold',
          hold: 'h1',
        },
      ],
    );
    await time.pass(REPORTED_FOR_MS);
    assert.deepEqual(await stored(), []);
  });

  test('another installation that evicts there, for an hour, but no former leader', async (context) => {
    const { cluster, stored, faultsAfter } = bench(context);
    cluster.lastRival = { installation: 'former', markedAt: START + 5 * SECOND };
    assert.deepEqual(await faultsAfter(), []);
    cluster.lastRival = { installation: 'theirs', markedAt: START + 25 * SECOND };
    assert.deepEqual(await faultsAfter(), ['conflicting-installation']);
    assert.match((await stored())?.[0]?.error ?? '', /^Another Taintward, theirs, also evicts/);
    assert.deepEqual(await faultsAfter(REPORTED_FOR_MS), []);
  });

  test('no faults of a former holder', async (context) => {
    const { time, cluster, relay, leases, faultsAfter } = bench(context);
    cluster.pods.lists = [refused(403)];
    assert.deepEqual(await faultsAfter(), ['list-failing pods 403']);
    await leases.take(CLUSTER, await leases.read(CLUSTER), 'r2', Date.now());
    assert.equal(await faultsAfter(0), undefined);
    await time.pass(LEASE_RENEW_MS);
    assert.deepEqual(relay.faults, [], 'it holds the lease no longer');
  });
});

test('a relay reports a failing renewal itself, and then on the lease', async (context) => {
  const { time, relay, leases, faultsAfter } = bench(context);
  await time.pass(SECOND);
  const renew = leases.renew.bind(leases);
  leases.renew = () => Promise.reject(new StoreError('the disk is full'));
  await time.pass(A_WHILE);
  assert.deepEqual(
    relay.faults.map(({ type, error }) => `${type}: ${error}`),
    ['lease-unavailable: the disk is full'],
  );
  leases.renew = renew;
  await time.pass(2 * LEASE_RENEW_MS);
  assert.deepEqual([relay.faults, await faultsAfter(0)], [[], []]);
});

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { parseDelta } from '#shared/aws/delta-message.ts';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import type { LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { KubernetesStore } from '#shared/state/objects/kubernetes-store.ts';
import type { Store } from '#shared/state/store.ts';
import { NODE_NOT_READY } from '#shared/taints/taint.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { tolerating } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { PushedRules } from '#test/world/pushed-rules.ts';
import { OrderedQueue } from '../../aws/relay/ordered-queue.ts';
import { liveNode, livePod } from './live-objects.ts';
import { CLUSTER, clusterRelay, inSqlite, SECOND } from './relay-world.ts';
import { ends, endsAfter, listOf } from './scripted-resource.ts';
import { WatchedCluster } from './watched-cluster.ts';

const LAPSE_MS = 90 * SECOND;
const DOWN_AFTER_MS = 60 * SECOND;
const POLICY: Policy = { ...DEFAULT_POLICY, mode: 'enforce', treatAsNoExecute: [NODE_NOT_READY] };

/**
 * Returns a cluster of six nodes. One node goes down after a minute. Its two pods tolerate this for five
 * minutes and indefinitely.
 */
function bench(context: TestContext, inCluster = false) {
  const time = driveTimers(context, Date.UTC(2026, 0, 1));
  const clock = { now: Date.now };
  const { store: database, leases, history } = inSqlite();
  const objects = new FakeObjects();
  const kept: Store = inCluster
    ? new KubernetesStore({ objects, own: CLUSTER, unreadable: () => undefined })
    : database;
  const loads: string[] = [];
  const store: Store = {
    load: (ref, ...args) => {
      loads.push(ref.node);
      return kept.load(ref, ...args);
    },
    commit: (...args) => kept.commit(...args),
    end: (...args) => kept.end(...args),
    taintedNodes: (cluster) => kept.taintedNodes(cluster),
  };
  const cluster = new WatchedCluster(Date.now);
  const names = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'];
  cluster.nodes.lists = [listOf(...names.map((name) => liveNode(name)))];
  const taint = { key: NODE_NOT_READY, effect: 'NoSchedule', timeAdded: Date.now() + DOWN_AFTER_MS };
  const down: WatchEvent<LiveNode> = {
    kind: 'upsert',
    object: { ...liveNode('n1'), resourceVersion: '2', taints: [taint] },
  };
  cluster.nodes.watches = [endsAfter(DOWN_AFTER_MS), ends('quiet', down)];
  const node = nodeName('n1');
  cluster.pods.lists = [
    {
      items: [
        livePod('u1', { node, tolerations: [tolerating(NODE_NOT_READY, 300)] }),
        livePod('u2', { node, tolerations: [tolerating(NODE_NOT_READY)] }),
      ],
      resourceVersion: '3',
    },
  ];
  cluster.skewMs = 0;
  cluster.putTakeover([NODE_NOT_READY], LAPSE_MS);
  const log = recordingLog();
  /** `applied`: whether deltas are processed. */
  const deltas = { applied: true };
  const applying = () => {
    const queue = new OrderedQueue();
    queue.onSend = async (messages) => {
      for (const { body } of deltas.applied ? messages : []) {
        await applyDeltas([parseDelta(body)], {
          store: kept,
          timers: { arm: async () => undefined },
          announce: async () => undefined,
          leaseEpoch: async (name) => (await leases.read(name))?.epoch,
          rules: async () => ({ ...enforced({ comparisonOperators: false }), policy: POLICY }),
          clock,
          log,
        });
      }
      return [];
    };
    return queue;
  };
  const [nodes, pods] = [applying(), applying()];
  const rules = new PushedRules();
  rules.push({ policy: POLICY });
  const given = { store, leases, history, rules, log, nodes, pods };
  const { relay, rulesStore } = clusterRelay(context, cluster, given);
  const sinceHeartbeat = () => Date.now() - (cluster.takeover?.heartbeat ?? 0);
  const why = () =>
    log.lines
      .filter(({ event }) => event === 'takeover.heartbeat-suspended')
      .map(({ fields }) => `${fields['reason']}`);
  return {
    time,
    cluster,
    store: kept,
    objects,
    leases,
    nodes,
    deltas,
    rulesStore,
    relay,
    loads,
    rules,
    sinceHeartbeat,
    why,
  };
}

type Bench = ReturnType<typeof bench>;

/**
 * The time from when the node goes down until the built-in controller evicts, which is before the first pod is
 * due.
 */
const FOUND_MS = 60 * SECOND + LAPSE_MS + 25 * SECOND;

const UNSTORED =
  /^node n1 is down, and its stored state is out of date: its deltas aren't sent or processed$/;

describe('the heartbeat stops', () => {
  const ways: readonly (readonly [string, (given: Bench) => void, RegExp])[] = [
    ['when nobody processes deltas', ({ deltas }) => Object.assign(deltas, { applied: false }), UNSTORED],
    [
      'when the pods of a node that is down cannot be listed',
      ({ cluster }) => {
        cluster.pods.lists = [new ApiError('pods is forbidden', 403, 'Forbidden')];
      },
      /^node n1 is down, and the relay hasn't listed its pods$/,
    ],
    [
      'when the queue of deltas refuses them',
      ({ nodes }) => {
        nodes.onSend = (messages) =>
          messages.map((_, index) => ({ index, reason: 'denied', permanent: false }));
      },
      UNSTORED,
    ],
    [
      'when what the guard holds cannot be read',
      ({ rulesStore }) => Object.assign(rulesStore, { isAway: true }),
      /^the guard's state can't be read/,
    ],
    [
      'when what the guard decides cannot be written',
      ({ rulesStore }) => Object.assign(rulesStore, { isReadOnly: true }),
      /^the guard's state can't be saved/,
    ],
    [
      'when the lease cannot be written',
      ({ leases }) => {
        const renew = leases.renew.bind(leases);
        leases.renew = (lease, report) =>
          report.claim ? renew(lease, report) : Promise.reject(new Error('write throttled'));
      },
      /^the relay couldn't renew the cluster's lease in time$/,
    ],
  ];
  for (const [what, spoil, reason] of ways) {
    test(`${what}, before the first pod is due`, async (context) => {
      const given = bench(context);
      spoil(given);
      given.relay.start();
      await given.time.pass(DOWN_AFTER_MS + FOUND_MS);
      assert.ok(given.sinceHeartbeat() > LAPSE_MS, `the last is of ${given.sinceHeartbeat() / SECOND} s ago`);
      assert.ok(given.relay.faults.some(({ type }) => type === 'heartbeat-suspended'));
      assert.match(given.why().at(-1) ?? '', reason);
    });
  }

  test('when the object of a node that is down cannot be read', async (context) => {
    const given = bench(context, true);
    given.relay.start();
    await given.time.pass(DOWN_AFTER_MS + 30 * SECOND);
    assert.ok(given.sinceHeartbeat() <= 20 * SECOND);
    const object = (await given.objects.get('n1')) as KubernetesObject & { readonly status: object };
    await given.objects.replace({
      ...object,
      status: { ...object.status, records: 'H4sIAAAAAAAAA' },
    } as never);
    await given.time.pass(FOUND_MS);
    assert.ok(given.sinceHeartbeat() > LAPSE_MS, `the last is of ${given.sinceHeartbeat() / SECOND} s ago`);
    assert.match(given.why().at(-1) ?? '', /n1/);
  });

  test('when a due pod is not evicted', async (context) => {
    const given = bench(context);
    given.relay.start();
    await given.time.pass(DOWN_AFTER_MS + 300 * SECOND + FOUND_MS);
    assert.ok(given.sinceHeartbeat() > LAPSE_MS);
    assert.match(given.why().at(-1) ?? '', /^an eviction is overdue by (\d+[ms])+$/);
  });

  test('and continues when deltas are processed again', async (context) => {
    const given = bench(context);
    given.deltas.applied = false;
    given.relay.start();
    await given.time.pass(DOWN_AFTER_MS + FOUND_MS);
    assert.ok(given.relay.faults.some(({ type }) => type === 'heartbeat-suspended'));
    given.deltas.applied = true;
    // Everything is sent again, as at each resync.
    given.rules.push({ ordersRevision: 2 });
    await given.time.pass(30 * SECOND);
    assert.ok(!given.relay.faults.some(({ type }) => type === 'heartbeat-suspended'));
  });
});

describe('the heartbeat continues', () => {
  for (const inCluster of [false, true]) {
    test(`while the pods of a node that is down have their deadlines${inCluster ? ', kept in the cluster' : ''}`, async (context) => {
      const given = bench(context, inCluster);
      given.relay.start();
      await given.time.pass(DOWN_AFTER_MS + 290 * SECOND);
      assert.ok(given.sinceHeartbeat() <= 20 * SECOND);
      assert.ok(!given.relay.faults.some(({ type }) => type === 'heartbeat-suspended'));
      assert.deepEqual(
        given.why().filter((reason) => reason !== "the relay hasn't listed the whole cluster yet"),
        [],
      );
    });
  }

  test('without a read of any node while none is down', async (context) => {
    const given = bench(context);
    given.relay.start();
    await given.time.pass(DOWN_AFTER_MS - SECOND);
    assert.ok(!given.relay.faults.some(({ type }) => type === 'heartbeat-suspended'));
    assert.deepEqual(given.loads, []);
    assert.ok(given.rulesStore.touches <= 3, `${given.rulesStore.touches} writes of the guard`);
  });
});

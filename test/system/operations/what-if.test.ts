import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { askWhatIf, type NodeChoice } from '#shared/operations/ask/what-if.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { type ContextFleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { NODE_UNREACHABLE, type Taint } from '#shared/taints/taint.ts';
import { systemClock } from '#shared/time/clock.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { addBarePod, type SettledCluster, settledCluster } from '#test/world/settled-cluster.ts';

const ALL: NodeChoice = { names: ['node-1', 'node-2', 'node-3', 'node-4'] };
const TAINT = { key: 'maintenance', effect: 'NoExecute' };

describe('the forecast in the simulated cluster', () => {
  let settled: SettledCluster;
  before(async () => {
    settled = await settledCluster(addBarePod);
  });
  after(() => settled.close());

  const preview = (nodes: NodeChoice, fleet: ContextFleet = settled.fleet, taint: Taint = TAINT) =>
    askWhatIf(
      fleet,
      {
        cluster: clusterName(settled.cluster.context),
        taint,
        nodes,
        matching: { comparisonOperators: false },
      },
      { clock: systemClock, progress: () => undefined },
    );

  /** Returns a fleet of the same cluster whose API rejects these calls. */
  const refusing = (refused: (path: string) => boolean): ContextFleet => {
    const check = (path: string) => {
      if (refused(path)) throw new ApiError(`${path} is forbidden`, 403, 'Forbidden');
    };
    const { objects } = settled.live;
    const limited: Pick<ClusterObjects, 'get' | 'list' | 'tryCreate'> = {
      async get(path) {
        check(path);
        return objects.get(path);
      },
      async *list(path, query) {
        check(path);
        yield* objects.list(path, query);
      },
      async tryCreate(path, body) {
        check(path);
        return objects.tryCreate(path, body);
      },
    };
    const live = { ...settled.live, objects: limited as ClusterObjects, close: () => undefined };
    return { ...settled.fleet, cluster: async () => live };
  };

  test('groups all pods of the nodes by their workloads', async () => {
    const { workloads, pods, policy, unknown } = await preview(ALL);
    assert.deepEqual(
      workloads.map(({ kind, name, now, later, keep, replicas }) => ({
        actor: `${kind}/${name}`,
        now,
        later: later.pods,
        stays: keep.map((stay) => stay.cause),
        ready: replicas?.ready,
      })),
      [
        { actor: 'DaemonSet/logs', now: 0, later: 0, stays: ['tolerated'], ready: 4 },
        { actor: 'Deployment/checkout', now: 0, later: 4, stays: [], ready: 4 },
        { actor: 'Deployment/web', now: 6, later: 0, stays: [], ready: 6 },
        { actor: 'Pod/debug', now: 1, later: 0, stays: [], ready: undefined },
        { actor: 'StatefulSet/db', now: 0, later: 2, stays: [], ready: 2 },
      ],
    );
    assert.deepEqual([pods, policy, unknown], [17, 'default', []]);
  });

  test("sums up the Eviction API's answers for single pods", async () => {
    const { budgets, breaks } = await preview(ALL);
    assert.deepEqual(budgets, [
      {
        namespace: 'default',
        name: 'checkout',
        allowed: 1,
        evicted: 4,
        together: 4,
        blocked: 0,
        source: 'eviction-api',
        breaks: true,
        heeded: false,
      },
    ]);
    assert.deepEqual(
      breaks.map(({ kind }) => kind),
      ['budget', 'emptied', 'emptied', 'emptied', 'bare-pod'],
    );
  });

  test('counts the nodes that would be down for the guard, which would hold their evictions', async () => {
    const taint = { key: NODE_UNREACHABLE, effect: 'NoExecute' };
    const three = await preview({ names: ['node-1', 'node-2', 'node-3'] }, settled.fleet, taint);
    assert.deepEqual(
      three.guard.trips.map(({ scope, nodes, total }) => [scope, nodes, total]),
      [['cluster', 3, 4]],
    );
    // Pods without a toleration for it stay for the API server's default of 300 s.
    assert.deepEqual([three.now, three.guarded], [0, three.later]);
    const two = await preview({ names: ['node-1', 'node-2'] }, settled.fleet, taint);
    assert.deepEqual([two.guard.trips, two.guarded], [[], 0]);
  });

  test('uses the status of budgets without permission for the Eviction API', async () => {
    const { budgets, unknown } = await preview(
      ALL,
      refusing((path) => path.endsWith('/eviction')),
    );
    assert.deepEqual(
      budgets.map(({ source, breaks }) => [source, breaks]),
      [['status', true]],
    );
    assert.equal(unknown.length, 1);
    assert.match(unknown[0] ?? '', /\/eviction is forbidden/);
  });

  test('uses the Eviction API alone without permission for budgets', async () => {
    const { budgets, unknown } = await preview(
      ALL,
      refusing((path) => path.endsWith('budgets')),
    );
    assert.deepEqual(budgets, []);
    assert.match(unknown[0] ?? '', /\/poddisruptionbudgets is forbidden/);
  });

  test("uses the owner's name without permission to read owners", async () => {
    const answer = await preview(
      ALL,
      refusing((path) => path.includes('/replicasets/')),
    );
    const kinds = new Set(answer.workloads.map(({ kind }) => kind));
    assert.deepEqual([...kinds].sort(), ['DaemonSet', 'Pod', 'ReplicaSet', 'StatefulSet']);
    assert.match(answer.unknown[0] ?? '', /\/replicasets\/.* is forbidden/);
  });

  test('changes nothing', async () => {
    const shown = () => settled.cluster.pods();
    const asItWas = shown();
    await preview(ALL);
    assert.deepEqual(shown(), asItWas);
  });

  test('selects nodes by name or by labels, and rejects missing ones', async () => {
    const zone = { matchLabels: { 'topology.kubernetes.io/zone': 'zone-a' } };
    assert.deepEqual((await preview({ labels: zone })).nodes, ['node-2', 'node-4']);
    assert.deepEqual((await preview({ names: ['node-2', 'node-2'] })).nodes, ['node-2']);
    await assert.rejects(preview({ names: ['node-1', 'node-9'] }), FleetError);
    await assert.rejects(preview({ labels: { matchLabels: { nobody: 'has' } } }), FleetError);
  });

  test('applies the policy and the holds of its fleet', async (t) => {
    const cluster = clusterName(settled.cluster.context);
    const { fleet, rulesStore } = embeddedFleet(
      t,
      { clusters: [cluster], clock: new DrivenClock(Date.now()) },
      { cluster: async () => ({ ...settled.live, close: () => undefined }) },
    );
    const operator = { rulesStore, clock: systemClock, actor: 'anna' };
    const target = {
      kind: 'workload',
      namespace: 'default',
      owner: { kind: 'Deployment', name: 'web' },
    } as const;
    await perform({ kind: 'hold', cluster, target, reason: 'a sale' }, operator);
    const question = { cluster, taint: TAINT, nodes: ALL, matching: { comparisonOperators: false } };
    const answer = await askWhatIf(fleet, question, { clock: systemClock, progress: () => undefined });
    const web = answer.workloads.find(({ name }) => name === 'web');
    assert.deepEqual(
      web?.keep.map(({ cause, pods }) => [cause, pods]),
      [['hold', 6]],
    );
    assert.deepEqual([answer.policy, answer.gate?.kind], ['applied', 'observe']);
  });
});

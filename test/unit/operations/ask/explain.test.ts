import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { askNode } from '#shared/operations/ask/explain-node.ts';
import { askPod } from '#shared/operations/ask/explain-pod.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { ContextFleet, Fleet } from '#shared/operations/fleet/fleet.ts';
import { type LiveCluster, liveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { DISCONNECTED_AFTER_MS } from '#shared/state/lease.ts';
import { StoreError } from '#shared/state/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';
import { aNode, anEnding, aRecord, aTaint } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet, running } from '#test/world/embedded-fleet.ts';
import { loadContexts } from '#test/world/load-contexts.ts';
import { recordContact } from '#test/world/record-contact.ts';

const CLUSTER = clusterName('simulated');
const NODE = nodeName('node-1');
const matching = { comparisonOperators: false };
const deps = { clock: systemClock };

/** The simulated cluster and a fleet that enforces its policy and has no other records of it. `parts` replace parts of the fleet. */
async function stage(t: TestContext, parts: Partial<Fleet> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'explain-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  t.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true });
  });
  const [context] = loadContexts({ kubeconfig: cluster.kubeconfig, contexts: [cluster.context] });
  assert.ok(context);
  const live = async (): Promise<LiveCluster> => liveCluster(context.connection, systemClock);
  const clock = new DrivenClock(Date.now());
  const embedded = embeddedFleet(
    t,
    { clusters: [CLUSTER], clock },
    { cluster: live, service: running, ...parts },
  );
  const operator = { rulesStore: embedded.rulesStore, clock, actor: 'anna' };
  await perform({ kind: 'apply-policy', cluster: CLUSTER, text: 'mode: enforce' }, operator);
  await recordContact(embedded.leases, CLUSTER, clock.now());
  const bare: ContextFleet = {
    kind: 'context',
    where: 'a test',
    clusters: async () => [CLUSTER],
    manages: async (name) => name === CLUSTER,
    cluster: live,
    close: () => undefined,
  };
  return { ...embedded, clock, cluster, operator, bare };
}

/** Returns a pod on the node with this name prefix once the scheduler has placed it. */
async function podOn(cluster: SimulatedCluster, prefix: string): Promise<string> {
  for (;;) {
    const found = cluster.pods().find(({ name, node }) => node === NODE && name.startsWith(prefix));
    if (found) return found.name;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Returns the first line without its times. */
const lineOf = ({ headline }: { readonly headline: string }): string =>
  headline.replace(/\d{4}-\S+Z( \([^)]*\))?/g, 'T');

test("explains a pod from the API server's objects and the current rules", async (t) => {
  const { cluster, fleet, operator } = await stage(t);
  const name = await podOn(cluster, 'checkout');
  const ask = () => askPod(fleet, { cluster: CLUSTER, namespace: 'default', name, matching }, deps);
  assert.equal(lineOf(await ask()), `default/${name} stays: node node-1 has no taint that evicts.`);
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const tainted = await ask();
  assert.match(
    lineOf(tainted),
    /^default\/checkout-\S+ will be evicted at T because it tolerates maintenance=now:NoExecute for 30s\.$/,
  );
  assert.deepEqual(
    tainted.budgets?.map((budget) => budget.name),
    ['checkout'],
  );
  assert.deepEqual(tainted.workload, { namespace: 'default', kind: 'Deployment', name: 'checkout' });
  assert.equal(tainted.owner?.kind, 'ReplicaSet');
  assert.equal(tainted.scheduling?.loops, true);
  assert.deepEqual(tainted.unknown, []);
  // The simulated cluster has no built-in controller.
  assert.deepEqual(tainted.builtIn?.state, 'off');
  await perform(
    { kind: 'hold', cluster: CLUSTER, target: { kind: 'node', node: NODE }, reason: 'a backup runs' },
    operator,
  );
  assert.match(
    lineOf(await ask()),
    /is due at T because .* for 30s, but is held by hold h\w+ \(anna: a backup runs\)\.$/,
  );
});

test('explains how the Job of a pod counts its eviction', async (t) => {
  const { cluster, fleet, bare } = await stage(t);
  const name = await podOn(cluster, 'web');
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const live = await fleet.cluster(CLUSTER);
  t.after(() => live.close());
  /** Returns the end of the pod if this Job owned it. */
  const endWith = async (job: () => object, phase = 'Running') => {
    const objects = {
      async get(path: string) {
        if (path.includes('/jobs/')) return job();
        const pod = await live.objects.get(path);
        if (!path.endsWith(`/pods/${name}`)) return pod;
        const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', controller: true };
        const metadata = { ...Object(pod?.['metadata']), ownerReferences: [owner] };
        return { ...pod, metadata, status: { ...Object(pod?.['status']), phase } };
      },
      list: live.objects.list.bind(live.objects),
      text: live.objects.text.bind(live.objects),
    };
    const cluster = async () => ({
      ...live,
      objects: objects as unknown as ClusterObjects,
      close: () => undefined,
    });
    const story = await askPod(
      { ...bare, cluster },
      { cluster: CLUSTER, namespace: 'default', name, matching },
      deps,
    );
    return [story.scheduling?.job?.kind, story.scheduling?.finished, story.workload?.kind];
  };
  assert.deepEqual(await endWith(() => ({ spec: { backoffLimit: 0 } })), ['job-fails', undefined, 'Job']);
  assert.deepEqual(await endWith(() => ({ spec: {} })), ['replaced', undefined, 'Job']);
  assert.deepEqual(await endWith(() => ({ spec: {} }), 'Failed'), [undefined, true, 'Job']);
  const forbidden = () => {
    throw new ApiError('jobs is forbidden', 403, 'Forbidden');
  };
  assert.deepEqual(await endWith(forbidden), ['unknown', undefined, undefined]);
});

test('explains a node by workload', async (t) => {
  const { cluster, fleet } = await stage(t);
  await podOn(cluster, 'checkout');
  await podOn(cluster, 'logs');
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const story = await askNode(fleet, { cluster: CLUSTER, node: NODE, matching }, deps);
  assert.match(
    lineOf(story),
    /^node-1 has maintenance=now:NoExecute: \d+ pods? will be evicted .*; 1 pod stays\.$/,
  );
  const checkout = story.workloads.find(({ owner }) => owner?.name === 'checkout');
  assert.equal(checkout?.owner?.kind, 'Deployment');
  const logs = story.workloads.find(({ owner }) => owner?.name === 'logs');
  assert.deepEqual(logs?.keep, [{ cause: 'tolerated', pods: 1 }]);
  await assert.rejects(askNode(fleet, { cluster: CLUSTER, node: nodeName('nix'), matching }, deps), {
    message: 'Node "nix" not found in cluster "simulated". Check its name.',
  });
});

test('counts taints from their last write when only the cluster can be read', async (t) => {
  const { cluster, bare } = await stage(t);
  const name = await podOn(cluster, 'checkout');
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const story = await askPod(bare, { cluster: CLUSTER, namespace: 'default', name, matching }, deps);
  assert.match(
    lineOf(story),
    /must be evicted at T at the latest because .*; the built-in controller is disabled, so the pod stays unless another controller evicts here\.$/,
  );
  assert.deepEqual(
    story.remediations.map(({ kind }) => kind),
    ['tolerate', 'untaint'],
  );
  const lost = await askPod(bare, { cluster: CLUSTER, namespace: 'default', name: 'nix', matching }, deps);
  assert.equal(
    lineOf(lost),
    'default/nix does not exist in cluster simulated; only the service knows its history (--table, --state-dir).',
  );
});

test('explains a deleted pod from history', async (t) => {
  const { fleet, store, clock } = await stage(t);
  const now = clock.now();
  const ref = { cluster: CLUSTER, node: NODE };
  const record = aRecord({ name: 'web-9', startedAt: now - 60_000, dueAt: now - 30_000 });
  await store.commit(
    ref,
    0,
    { node: aNode({ taints: [aTaint()] }), schedule: [record], end: [], live: true },
    now - 60_000,
  );
  await store.end(ref, [anEnding(record, { delayMs: 12 })], now - 30_000);
  const story = await askPod(
    fleet,
    { cluster: CLUSTER, namespace: 'default', name: 'web-9', matching },
    deps,
  );
  assert.equal(
    lineOf(story),
    'default/web-9 was evicted from node node-1 at T because it tolerates node.kubernetes.io/unreachable:NoExecute for 5m.',
  );
  assert.deepEqual(
    story.history.map(({ event }) => event),
    ['scheduled', 'evicted'],
  );
});

test('uses the records when the API server is unreachable and reports the cause', async (t) => {
  const refused = new ApiError('Cannot get pods: the connection was refused.', 0);
  const { fleet, store, clock } = await stage(t, { cluster: async () => Promise.reject(refused) });
  const now = clock.now();
  const ref = { cluster: CLUSTER, node: NODE };
  const record = aRecord({ name: 'web-9', dueAt: now + 30_000 });
  await store.commit(
    ref,
    0,
    { node: aNode({ taints: [aTaint()] }), schedule: [record], end: [], live: true },
    now,
  );
  const story = await askPod(
    fleet,
    { cluster: CLUSTER, namespace: 'default', name: 'web-9', matching },
    deps,
  );
  assert.match(
    lineOf(story),
    /^default\/web-9 will be evicted at T .* This is its record: the pod could not be read\.$/,
  );
  assert.deepEqual(story.unknown, [
    { what: 'the pod', reason: 'Cannot get pods: the connection was refused' },
  ]);
});

test('reports a disconnected cluster and the eviction that is therefore not scheduled', async (t) => {
  const { cluster, fleet, leases, clock } = await stage(t);
  const name = await podOn(cluster, 'checkout');
  await recordContact(leases, CLUSTER, clock.now() - 2 * DISCONNECTED_AFTER_MS);
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const pod = await askPod(fleet, { cluster: CLUSTER, namespace: 'default', name, matching }, deps);
  assert.match(
    lineOf(pod),
    / for 30s\. But no relay has been connected to cluster simulated since T: its eviction is not scheduled until a relay connects\./,
  );
  const node = await askNode(fleet, { cluster: CLUSTER, node: NODE, matching }, deps);
  assert.match(lineOf(node), /since T: \d+ evictions are not scheduled until a relay connects\./);
});

test("names a pod's direct owner when the owner itself can't be read", async (t) => {
  const { cluster, fleet } = await stage(t);
  const name = await podOn(cluster, 'checkout');
  const live = async (which: typeof CLUSTER) => {
    const reached = await fleet.cluster(which);
    const { objects } = reached;
    const limited: Pick<ClusterObjects, 'get' | 'list' | 'text'> = {
      async get(path) {
        if (path.includes('/replicasets/')) throw new ApiError(`${path} is forbidden.`, 403, 'Forbidden');
        return objects.get(path);
      },
      list: (path, query) => objects.list(path, query),
      text: (path) => objects.text(path),
    };
    return { ...reached, objects: limited as ClusterObjects };
  };
  const question = { cluster: CLUSTER, namespace: 'default', name, matching };
  const story = await askPod({ ...fleet, cluster: live }, question, deps);
  assert.deepEqual([story.workload, story.owner?.kind], [undefined, 'ReplicaSet']);
  assert.deepEqual(
    story.unknown.map(({ what }) => what),
    ['its workload'],
  );
});

test('reports unreadable rules and forecasts nothing from other rules', async (t) => {
  const { cluster, fleet } = await stage(t);
  const name = await podOn(cluster, 'checkout');
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const rulesStore = Object.assign(Object.create(fleet.rulesStore), {
    read: async () => Promise.reject(new StoreError('the table is throttled.')),
  });
  const blind = { ...fleet, rulesStore };
  const story = await askPod(blind, { cluster: CLUSTER, namespace: 'default', name, matching }, deps);
  assert.equal(
    lineOf(story),
    `default/${name} may be evicted or stay: the rules of the cluster cannot be read, and nothing is evicted there until they can (the table is throttled).`,
  );
  const reason = 'the table is throttled';
  assert.deepEqual(story.unknown, [
    { what: 'rules', reason },
    { what: 'whether a relay is connected to the cluster', reason },
  ]);
});

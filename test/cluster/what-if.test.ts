import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { askWhatIf } from '#shared/operations/ask/what-if.ts';
import type { ContextFleet } from '#shared/operations/fleet/fleet.ts';
import { liveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { systemClock } from '#shared/time/clock.ts';
import { loadContexts } from '#test/world/load-contexts.ts';
import { Account, MIN_PERMISSIONS } from './rig/account.ts';
import { fileStage } from './rig/file-stage.ts';
import { CONTEXT } from './rig/stage.ts';

const stage = fileStage('bare');

const CLUSTER = clusterName('real');

/** Returns a fleet of one cluster that is read with the permissions of the connection. */
const fleetBy = (connection: Connection): ContextFleet => ({
  kind: 'context',
  where: 'a test',
  clusters: async () => [CLUSTER],
  manages: async () => true,
  cluster: async () => liveCluster(connection, systemClock),
  close: () => undefined,
});

describe('forecast of a taint on a real API server', () => {
  /** Three pods: two of a Deployment with a budget, and a bare pod. */
  let node: string;
  before(async () => {
    const { cluster } = stage();
    const { api, namespace } = cluster;
    node = await cluster.addNode('what-if');
    const labels = { app: 'what-if' };
    const spec = {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'busybox' }] } },
    };
    // The objects that the controllers of a Deployment create, which may not run here.
    const apps = `/apis/apps/v1/namespaces/${namespace}`;
    const owned = async (kind: string, plural: string, name: string, owner?: object) => {
      const ownerReferences = owner ? [owner] : [];
      const made = await api.create(`${apps}/${plural}`, {
        metadata: { name, labels, ownerReferences },
        spec,
      });
      const status = { replicas: 2, readyReplicas: 2, availableReplicas: 2 };
      await api.patchStatus(`${apps}/${plural}/${name}`, status);
      const { uid } = (made as { metadata: { uid: string } }).metadata;
      return { apiVersion: 'apps/v1', kind, name, uid, controller: true };
    };
    const deployment = await owned('Deployment', 'deployments', 'what-if');
    const replicaSet = await owned('ReplicaSet', 'replicasets', 'what-if-1', deployment);
    for (const name of ['what-if-1-a', 'what-if-1-b']) {
      await cluster.addPod(node, name, { labels });
      await api.patch(`/api/v1/namespaces/${namespace}/pods/${name}`, {
        metadata: { ownerReferences: [replicaSet] },
      });
    }
    await cluster.addPod(node, 'bare');
  });
  after(async () => {
    const { api, namespace } = stage().cluster;
    await api.remove(`/apis/apps/v1/namespaces/${namespace}/deployments/what-if`);
  });

  const preview = (connection: Connection = stage().cluster.connection) =>
    askWhatIf(
      fleetBy(connection),
      {
        cluster: CLUSTER,
        taint: { key: 'maintenance', effect: 'NoExecute' },
        nodes: { names: [node] },
        matching: { comparisonOperators: false },
      },
      { clock: systemClock, progress: () => undefined },
    );

  /** Returns a connection with these permissions only. */
  async function limitedTo(name: string, permissions: typeof MIN_PERMISSIONS): Promise<Connection> {
    const { cluster } = stage();
    const account = await Account.create(cluster, name, permissions);
    const kubeconfig = await stage().writeKubeconfig(name, cluster.connection, account.token);
    const [context] = loadContexts({ kubeconfig, contexts: [CONTEXT] });
    assert.ok(context);
    return context.connection;
  }

  const allowedNow = async () => {
    const { api, namespace } = stage().cluster;
    const budget = await api.read(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/what-if`);
    return (budget as { status: { disruptionsAllowed: number } }).status.disruptionsAllowed;
  };

  test('reports that each pod may be evicted alone but not both, and spends no budget', async () => {
    const { cluster } = stage();
    await cluster.setBudget('what-if', 2, 1);
    const { budgets, breaks, workloads, unknown } = await preview();
    assert.deepEqual(budgets, [
      {
        namespace: cluster.namespace,
        name: 'what-if',
        allowed: 1,
        evicted: 2,
        together: 2,
        blocked: 0,
        source: 'eviction-api',
        breaks: true,
        heeded: false,
      },
    ]);
    assert.deepEqual(
      workloads.map(({ kind, name, now, replicas }) => [kind, name, now, replicas?.ready]),
      [
        ['Deployment', 'what-if', 2, 2],
        ['Pod', 'bare', 1, undefined],
      ],
    );
    assert.deepEqual(
      breaks.map(({ kind }) => kind).filter((kind) => kind !== 'guard'),
      ['budget', 'emptied', 'bare-pod'],
    );
    assert.deepEqual(unknown, []);
    assert.equal(await allowedNow(), 1);
    const pods = [...cluster.witness.pods.values()].filter(({ name }) => name.startsWith('what-if'));
    assert.deepEqual(
      pods.map(({ evictedAt, disruption }) => [evictedAt, disruption]),
      [
        [undefined, undefined],
        [undefined, undefined],
      ],
    );
  });

  test("reports a budget that allows no evictions with the API server's reason", async () => {
    await stage().cluster.setBudget('what-if', 2, 2);
    const [budget] = (await preview()).budgets;
    assert.deepEqual([budget?.blocked, budget?.allowed, budget?.breaks], [2, 0, true]);
    assert.match(budget?.reason ?? '', /needs 2 healthy pods and has 2 currently/);
  });

  test('finds budgets by dry-run evictions for a user who cannot read budgets', async () => {
    await stage().cluster.setBudget('what-if', 2, 2);
    const permissions = [...MIN_PERMISSIONS, { resource: 'pods/eviction', verbs: ['create'] }];
    const { budgets, unknown } = await preview(await limitedTo('asker', permissions));
    assert.deepEqual(
      budgets.map(({ name, blocked, source, breaks }) => [name, blocked, source, breaks]),
      [[undefined, 2, 'eviction-api', true]],
    );
    assert.equal(unknown.length, 2);
    for (const kind of ['poddisruptionbudgets', 'replicasets'])
      assert.match(unknown.join('\n'), new RegExp(`403.*${kind}`));
  });

  test("reports missing permissions, and names controllers only as the pods' owner references do", async () => {
    const { budgets, unknown, workloads } = await preview(await limitedTo('reader', MIN_PERMISSIONS));
    assert.deepEqual(budgets, []);
    assert.match(unknown.join('\n'), /403.*pods\/eviction/);
    assert.deepEqual(
      workloads.map(({ kind }) => kind),
      ['Pod', 'ReplicaSet'],
    );
  });
});

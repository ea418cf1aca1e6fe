import { type NodeName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { projectNodeLease } from '#shared/kubernetes/node-lease.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type BudgetedCluster, evictionContract } from '#test/contracts/eviction-contract.ts';
import { kubernetesContract, type NewPod } from '#test/contracts/kubernetes-contract.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

/** The namespace of the test's pods. */
const NAMESPACE = 'default';

async function open(): Promise<BudgetedCluster & { readonly cluster: FakeCluster }> {
  const cluster = new FakeCluster(systemClock, { stamps: true });
  const touch = async (name: NodeName) => {
    const node = cluster.liveNodes.get(name);
    if (node) cluster.putNode(node);
  };
  const createPod = async (
    name: string,
    { node, tolerations = [], owner }: NewPod,
    labels?: Readonly<Record<string, string>>,
  ) => {
    cluster.putPod({
      uid: podUid(`uid-of-${name}`),
      namespace: NAMESPACE,
      name,
      node,
      tolerations,
      podSince: Math.floor(Date.now() / 1000) * 1000,
      terminating: false,
      disrupted: false,
      ...(labels ? { labels } : {}),
      ...(owner ? { owner } : {}),
    });
  };
  return {
    cluster,
    api: cluster,
    watchSeconds: 1,
    namespace: NAMESPACE,
    createNode: async (name, taints = []) => {
      cluster.putNode({ name, taints });
    },
    setTaints: async (name, taints) => {
      cluster.putNode({ name, taints });
    },
    label: touch,
    heartbeat: touch,
    deleteNode: async (name) => {
      cluster.removeNode(name);
    },
    createPod,
    createDeployment: async (name, replicas) => {
      cluster.replicas.set(`${NAMESPACE}/Deployment/${name}`, replicas);
    },
    runPod: (name, node, app) => createPod(name, { node: nodeName(node) }, { app }),
    setBudget: async (name, app, minAvailable) => {
      cluster.budgets.set(name, { app, allowed: 1 - minAvailable });
    },
    touchPod: async (name) => {
      const pod = cluster.livePods.get(`${NAMESPACE}/${name}`);
      if (pod) cluster.putPod(pod);
    },
    putTakeover: async (keys, lapseSeconds) => {
      cluster.putTakeover(keys, lapseSeconds * 1000);
      return true;
    },
    putNodeLease: async (name, spec) => {
      const { asOf: _asOf, ...lease } = projectNodeLease({ spec }, 0);
      cluster.nodeLeases.set(name, lease);
      return true;
    },
    eventsAbout: async (name) =>
      cluster.events.filter(({ pod }) => pod.name === name).map(({ message }) => message),
    close: async () => undefined,
  };
}

kubernetesContract('FakeCluster', open, async ({ cluster }) => {
  const { resourceVersion } = await cluster.nodes.list({ limit: 1, signal: new AbortController().signal });
  cluster.forgetHistory();
  return resourceVersion;
});

evictionContract('FakeCluster', open);

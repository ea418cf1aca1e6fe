import { Account, MIN_PERMISSIONS } from './account.ts';
import { ControllerManager } from './controller-manager.ts';
import { Gate } from './gate.ts';
import type { KubeconfigEntry } from './kubeconfig.ts';
import { Scheduler, SUITE_SCHEDULER } from './scheduler.ts';
import { type ClusterVariable, TestCluster } from './test-cluster.ts';
import { tolerates } from './tolerations.ts';
import { until } from './until.ts';
import type { WatchedTaint } from './watched.ts';
import type { PodLife } from './witness.ts';

const ZONES = ['a', 'b', 'c'] as const;
const NODES_OF_ZONE = 10;
const PODS_OF_NODE = 10;
const PODS = ZONES.length * NODES_OF_ZONE * PODS_OF_NODE;
/** Deployments by their shares of all pods, and the least available pods that their budgets demand. */
const DEPLOYMENTS = [
  { app: 'web', replicas: PODS * 0.4, minAvailable: '80%' },
  { app: 'api', replicas: PODS * 0.4, minAvailable: '50%' },
  { app: 'cache', replicas: PODS * 0.2 },
] as const;
/** The keys of the taints of nodes that are down. */
const DOWN = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const;
/** Seconds for which pods tolerate that their node is down. */
export const TOLERATED_SECONDS = 3;

/**
 * A cluster with thirty nodes in three zones and three hundred pods of Deployments, which real controllers replace and
 * {@link Scheduler} binds. Its clients reach the API server through a gate.
 */
export class BusySite {
  readonly cluster: TestCluster;
  readonly gate: Gate;
  readonly #account: Account;
  readonly #controllers: ControllerManager;
  readonly #scheduler: Scheduler;
  readonly #nodes: ReadonlyMap<string, string>;

  private constructor(
    cluster: TestCluster,
    gate: Gate,
    account: Account,
    controllers: ControllerManager,
    scheduler: Scheduler,
    nodes: ReadonlyMap<string, string>,
  ) {
    this.cluster = cluster;
    this.gate = gate;
    this.#account = account;
    this.#controllers = controllers;
    this.#scheduler = scheduler;
    this.#nodes = nodes;
  }

  static async open(
    variable: ClusterVariable,
    run: string,
    closing: AsyncDisposableStack,
  ): Promise<BusySite> {
    const cluster = await TestCluster.open(variable, run);
    closing.defer(() => cluster.close());
    const permissions = [...MIN_PERMISSIONS, { resource: 'pods/eviction', verbs: ['create'] }];
    const account = await Account.create(cluster, 'service', permissions);
    const gate = await Gate.open(cluster.connection);
    closing.defer(() => gate.close());
    const named = Array.from({ length: ZONES.length * NODES_OF_ZONE }, (_, index) => index).map(
      async (index) => {
        const zone = ZONES[index % ZONES.length] ?? 'a';
        return [await cluster.addNode(`n${index}`, [], zone), zone] as const;
      },
    );
    const nodes = new Map(await Promise.all(named));
    const scheduler = new Scheduler(cluster);
    closing.defer(() => scheduler.stop());
    const controllers = await ControllerManager.replacing(variable);
    closing.defer(() => controllers.stop());
    const site = new BusySite(cluster, gate, account, controllers, scheduler, nodes);
    // Before the controllers stop, they would create pods anew; after that nobody deletes those of a Deployment.
    closing.defer(() => site.#removeDeployments());
    for (const deployment of DEPLOYMENTS) await site.#deploy(deployment);
    return site;
  }

  /** Returns an entry of a kubeconfig by which the service's account reaches the cluster through the gate. */
  entry(context: string): KubeconfigEntry {
    return { context, connection: this.gate.connection, token: this.#account.token };
  }

  /** Returns an entry under another address: that of the API server itself. */
  directEntry(context: string): KubeconfigEntry {
    return { ...this.entry(context), connection: this.cluster.connection };
  }

  get nodes(): readonly string[] {
    return [...this.#nodes.keys()];
  }

  /** Returns the nodes of these zones. */
  zones(...names: readonly (typeof ZONES)[number][]): readonly string[] {
    return [...this.#nodes].flatMap(([node, zone]) => (names.some((name) => name === zone) ? [node] : []));
  }

  /** Returns the pods that run on these nodes now, by default on all. */
  podsOn(nodes: readonly string[] = this.nodes): readonly PodLife[] {
    const on = new Set(nodes);
    return [...this.cluster.witness.pods.values()].filter(
      ({ node, runningAt, evictedAt }) => on.has(node) && runningAt !== undefined && evictedAt === undefined,
    );
  }

  /** Gives nodes the NoExecute taint of `kubectl taint nodes … KEY=VALUE:NoExecute`, all at once. */
  async taint(nodes: readonly string[], key: string, value?: string): Promise<void> {
    await Promise.all(nodes.map((node) => this.cluster.taint(node, { key, ...(value ? { value } : {}) })));
  }

  async untaint(nodes: readonly string[], ...keys: readonly string[]): Promise<void> {
    await Promise.all(nodes.map((node) => this.cluster.untaint(node, ...keys)));
  }

  /** Makes nodes report that they are not ready, with the taint that the node controller then adds. */
  async failNodes(nodes: readonly string[]): Promise<void> {
    await Promise.all(nodes.map((node) => this.cluster.kubelet.failNode(node)));
    await this.taint(nodes, DOWN[0]);
  }

  /** Makes failed nodes report that they are ready, without the taint. */
  async reviveNodes(nodes: readonly string[]): Promise<void> {
    for (const node of nodes) this.cluster.kubelet.addNode(node);
    await this.untaint(nodes, ...DOWN);
  }

  /** Restores the first state: no taints, and the same number of running pods on each node. */
  async calm(): Promise<void> {
    const { witness } = this.cluster;
    const tainted = this.nodes.filter((node) => this.#taints(node).length > 0);
    for (const node of this.nodes) this.cluster.kubelet.addNode(node);
    await this.untaint(tainted);
    await until('all pods run', () => this.#deployed().length === PODS);
    for (const node of this.nodes) {
      const excess = this.#deployed([node]).slice(PODS_OF_NODE);
      await Promise.all(excess.map((pod) => this.cluster.deletePod(pod)));
    }
    await until('all nodes have the same number of pods', () =>
      this.nodes.every((node) => this.#deployed([node]).length === PODS_OF_NODE),
    );
    witness.check();
  }

  /** Throws when the suite's own part of this cluster failed. */
  check(): void {
    this.cluster.check();
    this.#controllers.check();
    this.#scheduler.check();
  }

  #taints(node: string): readonly WatchedTaint[] {
    return this.cluster.witness.nodes.get(node)?.at(-1)?.taints ?? [];
  }

  #deployed(nodes?: readonly string[]): readonly PodLife[] {
    return this.podsOn(nodes).filter(({ name }) => DEPLOYMENTS.some(({ app }) => name.startsWith(`${app}-`)));
  }

  async #deploy({ app, replicas, minAvailable }: (typeof DEPLOYMENTS)[number] & { minAvailable?: string }) {
    const { api, namespace } = this.cluster;
    const selector = { matchLabels: { app } };
    const spec = {
      schedulerName: SUITE_SCHEDULER,
      automountServiceAccountToken: false,
      tolerations: DOWN.map((key) => tolerates(key, TOLERATED_SECONDS)),
      containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }],
    };
    await api.create(this.#path('apps', 'deployments'), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace },
      spec: { replicas, selector, template: { metadata: { labels: { app } }, spec } },
    });
    if (minAvailable === undefined) return;
    await api.create(this.#path('policy', 'poddisruptionbudgets'), {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: app, namespace },
      spec: { minAvailable, selector },
    });
  }

  async #removeDeployments(): Promise<void> {
    const { api } = this.cluster;
    await api.removeAll(this.#path('policy', 'poddisruptionbudgets'));
    await api.removeAll(this.#path('apps', 'deployments'));
    await api.removeAll(this.#path('apps', 'replicasets'));
  }

  #path(group: 'apps' | 'policy', resource: string): string {
    return `/apis/${group}/v1/namespaces/${this.cluster.namespace}/${resource}`;
  }
}

import { randomBytes } from 'node:crypto';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { loadContexts } from '#test/world/load-contexts.ts';
import { AdminApi } from './admin-api.ts';
import { COMES_BACK, Kubelet } from './kubelet.ts';
import { until } from './until.ts';
import { WatchedNode, WatchedPod, type WatchedTaint, type WatchedToleration } from './watched.ts';
import { type NodeMoment, type PodLife, Witness } from './witness.ts';

/** Keeps a real scheduler's pods off the suite's nodes; it evicts no pods. */
const KEEP_OUT: WatchedTaint = { key: 'taintward.dev/suite', effect: 'NoSchedule' };
const SUITE_LABEL = 'taintward.dev/suite';

/**
 * The time at which something was requested from the API server, and the time at which the witness saw it. The change
 * happened between the two.
 */
export interface Span {
  readonly requestedAt: number;
  readonly seenAt: number;
}

export interface PodSpec {
  readonly tolerations?: readonly WatchedToleration[];
  readonly labels?: Readonly<Record<string, string>>;
  /** Re-created under its name whenever it is deleted. */
  readonly comesBack?: boolean;
  /**
   * The node that is the pod's controller: one of the suite's, because any other controller would re-create its pods.
   */
  readonly owner?: string;
}

export type ClusterVariable = 'KUBECONFIG' | 'KUBECONFIG_2';

/**
 * Returns a connection to the cluster of the current context of the kubeconfig that an environment variable names. When
 * the variable is not set, it throws, so that tests fail and are never skipped.
 */
export function connectionTo(variable: ClusterVariable): Connection {
  const kubeconfig = process.env[variable];
  if (!kubeconfig) {
    throw new Error(
      `${variable} is not set: let it name the kubeconfig of a disposable cluster without the taint-eviction-controller.`,
    );
  }
  const [context] = loadContexts({ kubeconfig, contexts: [] });
  if (!context) throw new Error(`${variable} names a kubeconfig without a current context.`);
  return context.connection;
}

/** Returns a name that no other run uses, for all objects of this run. */
export const runName = (): string => `tw-${randomBytes(3).toString('hex')}`;

/** A corner of a disposable cluster: the suite's own nodes and namespace, a witness and a kubelet. */
export class TestCluster {
  readonly connection: Connection;
  readonly api: AdminApi;
  /** The prefix of all names in this run, and the name of the namespace. */
  readonly run: string;
  readonly witness = new Witness();
  readonly kubelet: Kubelet;
  readonly #kubeletApi: AdminApi;
  readonly #watchApi: AdminApi;
  readonly #stopping = new AbortController();

  private constructor(connection: Connection, run: string) {
    this.connection = connection;
    this.run = run;
    // Three clients keep the test and the watches from waiting behind thousands of pods that are created and deleted.
    this.api = new AdminApi(connection);
    this.#kubeletApi = new AdminApi(connection);
    this.#watchApi = new AdminApi(connection);
    this.kubelet = new Kubelet(this.#kubeletApi, run);
  }

  /** Opens the cluster that {@link connectionTo} finds. */
  static async open(variable: ClusterVariable, run: string): Promise<TestCluster> {
    const cluster = new TestCluster(connectionTo(variable), run);
    try {
      await cluster.#prepare();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get namespace(): string {
    return this.run;
  }

  /** Returns a node's full name. */
  nodeName(name: string): string {
    return `${this.run}-${name}`;
  }

  /** Creates a ready node; returns its full name. */
  async addNode(name: string, taints: readonly WatchedTaint[] = [], zone?: string): Promise<string> {
    const node = this.nodeName(name);
    const zoneLabel = zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone };
    const capacity = { cpu: '64', memory: '256Gi', pods: '250' };
    await this.api.create('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: node,
        labels: { 'kubernetes.io/hostname': node, ...zoneLabel, [SUITE_LABEL]: this.run },
      },
      spec: { taints: [KEEP_OUT, ...taints] },
      status: {
        capacity,
        allocatable: capacity,
        conditions: [{ type: 'Ready', status: 'True', reason: 'Suite' }],
      },
    });
    this.kubelet.addNode(node);
    return node;
  }

  /** Creates a pod that is bound to a node. Resolves when the pod runs. */
  async addPod(node: string, name: string, spec: PodSpec = {}): Promise<PodLife> {
    const uid = await this.createPod(name, { ...spec, node });
    return until(`pod ${name} runs`, () => {
      const pod = this.witness.pods.get(uid);
      return pod?.runningAt !== undefined && pod;
    });
  }

  /** Creates a pod, bound to a node or for {@link bindPod} to bind; returns its UID. */
  async createPod(
    name: string,
    { node, tolerations = [], labels = {}, comesBack, owner }: PodSpec & { readonly node?: string },
  ): Promise<string> {
    const created = await this.api.create(`/api/v1/namespaces/${this.namespace}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        labels: { ...labels, ...(comesBack ? COMES_BACK : {}) },
        ...(owner === undefined ? {} : { ownerReferences: [await this.#controller(owner)] }),
      },
      spec: {
        ...(node === undefined ? { schedulerName: SUITE_LABEL } : { nodeName: node }),
        tolerations,
        automountServiceAccountToken: false,
        containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }],
      },
    });
    return WatchedPod.parse(created).metadata.uid;
  }

  async #controller(node: string): Promise<object> {
    const { metadata } = WatchedPod.pick({ metadata: true }).parse(
      await this.api.read(`/api/v1/nodes/${node}`),
    );
    return { apiVersion: 'v1', kind: 'Node', name: node, uid: metadata.uid, controller: true };
  }

  /** Binds a pod to a node, as a scheduler does. */
  async bindPod(name: string, node: string): Promise<void> {
    await this.api.create(`${this.podPath(name)}/binding`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name },
      target: { apiVersion: 'v1', kind: 'Node', name: node },
    });
  }

  /** Replaces a node's NoExecute taints without reading them, and adds labels. */
  async setTaints(
    node: string,
    taints: readonly Omit<WatchedTaint, 'effect'>[],
    labels: PodSpec['labels'] = {},
  ): Promise<void> {
    const set = taints.map((taint) => ({ ...taint, effect: 'NoExecute' }));
    await this.api.patch(`/api/v1/nodes/${node}`, {
      metadata: { labels },
      spec: { taints: [KEEP_OUT, ...set] },
    });
  }

  /** Adds NoExecute taints in one update. */
  taint(
    node: string,
    ...taints: readonly { readonly key: string; readonly value?: string }[]
  ): Promise<Span> {
    const added = taints.map((taint) => ({ ...taint, effect: 'NoExecute' }));
    const replaced = ({ key, effect }: WatchedTaint) =>
      added.some((taint) => taint.key === key && taint.effect === effect);
    return this.#changeTaints(node, (present) => [...present.filter((taint) => !replaced(taint)), ...added]);
  }

  /** Removes taints by their keys, or all NoExecute taints. */
  untaint(node: string, ...keys: readonly string[]): Promise<Span> {
    const goes = ({ key, effect }: WatchedTaint) =>
      effect === 'NoExecute' && (keys.length === 0 || keys.includes(key));
    return this.#changeTaints(node, (present) => present.filter((taint) => !goes(taint)));
  }

  /** Changes a running pod's tolerations. The API server allows only additions and changed `tolerationSeconds`. */
  async tolerate(
    pod: Pick<PodLife, 'name'>,
    change: (present: readonly WatchedToleration[]) => readonly WatchedToleration[],
  ): Promise<void> {
    const path = this.podPath(pod.name);
    await this.#changing(path, async () => {
      const { metadata, spec } = WatchedPod.parse(await this.api.read(path));
      const { resourceVersion } = metadata;
      await this.api.patch(path, {
        metadata: { resourceVersion },
        spec: { tolerations: change(spec.tolerations) },
      });
    });
  }

  /** Deletes a pod immediately, as any user can. */
  async deletePod(pod: PodLife): Promise<void> {
    await this.api.remove(this.podPath(pod.name), { gracePeriodSeconds: 0, preconditions: { uid: pod.uid } });
  }

  async deleteNode(node: string): Promise<void> {
    this.kubelet.removeNode(node);
    await this.api.remove(`/api/v1/nodes/${node}`);
    await until(`node ${node} is seen deleted`, () => this.#lastMoment(node)?.deleted);
  }

  /** Sets a disruption budget for `pods` running pods with a label `app`. */
  async setBudget(app: string, pods: number, minAvailable: number): Promise<void> {
    const budgets = `/apis/policy/v1/namespaces/${this.namespace}/poddisruptionbudgets`;
    const spec = { minAvailable, selector: { matchLabels: { app } } };
    try {
      await this.api.create(budgets, { metadata: { name: app }, spec });
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error;
      await this.api.patch(`${budgets}/${app}`, { spec });
    }
    const { metadata } = WatchedNode.pick({ metadata: true }).parse(await this.api.read(`${budgets}/${app}`));
    // Write the status as the disruption controller does, because the cluster may have none.
    const status = {
      observedGeneration: metadata.generation,
      currentHealthy: pods,
      desiredHealthy: minAvailable,
      expectedPods: pods,
      disruptionsAllowed: Math.max(0, pods - minAvailable),
    };
    await this.api.patch(`${budgets}/${app}/status`, { status });
  }

  podPath(name: string): string {
    return `/api/v1/namespaces/${this.namespace}/pods/${name}`;
  }

  /** Throws when the suite itself lost something; its observations are then invalid. */
  check(): void {
    this.witness.check();
    this.kubelet.check();
  }

  /** Removes all objects that were created here. */
  async close(): Promise<void> {
    this.kubelet.stop();
    this.#stopping.abort();
    const mine = { labelSelector: `${SUITE_LABEL}=${this.run}` };
    await this.api.removeAll(`/api/v1/namespaces/${this.namespace}/pods`, { gracePeriodSeconds: 0 });
    await this.api.removeAll('/api/v1/nodes', {}, mine);
    for (const kind of ['clusterrolebindings', 'clusterroles']) {
      await this.api.remove(`/apis/rbac.authorization.k8s.io/v1/${kind}`, {}, mine);
    }
    await this.api.remove(`/api/v1/namespaces/${this.namespace}`);
    for (const api of [this.api, this.#kubeletApi, this.#watchApi]) api.close();
  }

  /** Labels that mark cluster-wide objects as created here. */
  get labels(): Readonly<Record<string, string>> {
    return { [SUITE_LABEL]: this.run };
  }

  async #prepare(): Promise<void> {
    const metadata = { name: this.namespace };
    await this.api.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
    await this.#ensureDefaultAccount();
    await this.witness.start(
      this.#watchApi,
      { namespace: this.namespace, nodeSelector: `${SUITE_LABEL}=${this.run}` },
      (change, pod) => this.kubelet.receive(change, pod),
      this.#stopping.signal,
    );
  }

  /**
   * The API server rejects pods until the namespace has this account; the controller that creates it may be slow or
   * absent.
   */
  async #ensureDefaultAccount(): Promise<void> {
    try {
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
      await this.api.create(`/api/v1/namespaces/${this.namespace}/serviceaccounts`, account);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error;
    }
  }

  async #changeTaints(
    node: string,
    change: (present: readonly WatchedTaint[]) => readonly WatchedTaint[],
  ): Promise<Span> {
    const path = `/api/v1/nodes/${node}`;
    const requestedAt = Date.now();
    let wanted = '';
    await this.#changing(path, async () => {
      const { metadata, spec } = WatchedNode.parse(await this.api.read(path));
      const taints = change(spec.taints);
      const { resourceVersion } = metadata;
      wanted = taintList(taints);
      await this.api.patch(path, { metadata: { resourceVersion }, spec: { taints } });
    });
    const moment = await until(`the change of ${node}'s taints is seen`, () =>
      this.witness.nodes
        .get(node)
        ?.find(({ at, taints }) => at >= requestedAt && taintList(taints) === wanted),
    );
    return { requestedAt, seenAt: moment.at };
  }

  /** Retries when the object changed between read and write, and when the server was too busy to answer. */
  async #changing(what: string, attempt: () => Promise<void>): Promise<void> {
    await until(`${what} stands still for a change`, async () => {
      try {
        await attempt();
        return true;
      } catch (error) {
        if (error instanceof ApiError && [0, 409].includes(error.status)) return false;
        throw error;
      }
    });
  }

  #lastMoment(node: string): NodeMoment | undefined {
    return this.witness.nodes.get(node)?.at(-1);
  }
}

const taintList = (taints: readonly WatchedTaint[]): string =>
  taints
    .filter(({ effect }) => effect === 'NoExecute')
    .map(({ key, value = '' }) => `${key}=${value}`)
    .sort()
    .join();

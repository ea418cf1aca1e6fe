import type { NodeName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { Call, Verb } from '#shared/kubernetes/http/call.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { Transport } from '#shared/kubernetes/http/transport.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { TAKEOVER_CRD, takeoverLive } from '#shared/operations/takeover/at-nodes.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import { eventually } from './eventually.ts';
import type { BudgetedCluster } from './eviction-contract.ts';
import type { NewPod } from './kubernetes-contract.ts';

const MERGE = 'application/merge-patch+json';
const STRATEGIC_MERGE = 'application/strategic-merge-patch+json';

/** An API server under contract, with a namespace and nodes of its own, and an administrator's permissions. */
export class RestCluster implements BudgetedCluster {
  readonly api: RestApi;
  readonly namespace: string;
  readonly watchSeconds: number;
  readonly #transport: Transport;
  readonly #nodes: NodeName[] = [];
  readonly #leases: NodeName[] = [];
  #changes = 0;

  private constructor(connection: Connection, namespace: string, watchSeconds: number) {
    this.watchSeconds = watchSeconds;
    this.api = new RestApi(connection);
    this.#transport = new Transport(connection);
    this.namespace = namespace;
  }

  /** `namespace`: a unique name; `watchSeconds`: see the contract. */
  static async open(connection: Connection, namespace: string, watchSeconds: number): Promise<RestCluster> {
    const cluster = new RestCluster(connection, namespace, watchSeconds);
    await cluster.#call('create', '/api/v1/namespaces', { body: { metadata: { name: namespace } } });
    const account = { body: { metadata: { name: 'default' } } };
    // The account exists already, or the server does not know the kind.
    await cluster
      .#call('create', `/api/v1/namespaces/${namespace}/serviceaccounts`, account)
      .catch(allowed(404, 409));
    return cluster;
  }

  async createNode(name: NodeName, taints: readonly LiveTaint[] = []): Promise<void> {
    this.#nodes.push(name);
    // Every node has this label. The server does not track owners again for an object none of whose fields has an owner
    // any more.
    const metadata = { name, labels: { 'kubernetes.io/hostname': name } };
    const spec = { taints: taints.map(taintJson) };
    await this.#call('create', '/api/v1/nodes', { body: { kind: 'Node', apiVersion: 'v1', metadata, spec } });
  }

  async setTaints(node: NodeName, taints: readonly LiveTaint[], manager: string): Promise<void> {
    await this.#call('patch', nodePath(node), {
      query: { fieldManager: manager },
      body: { spec: { taints: taints.map(taintJson) } },
      contentType: MERGE,
    });
  }

  async label(node: NodeName): Promise<void> {
    const body = { metadata: { labels: { change: this.#nextChange() } } };
    await this.#call('patch', nodePath(node), { body, contentType: MERGE });
  }

  async heartbeat(node: NodeName): Promise<void> {
    const condition = { type: 'Ready', status: 'True', reason: `Heartbeat${this.#nextChange()}` };
    await this.#call('patch', `${nodePath(node)}/status`, {
      query: { fieldManager: 'kubelet' },
      body: { status: { conditions: [condition] } },
      contentType: STRATEGIC_MERGE,
    });
  }

  async deleteNode(node: NodeName): Promise<void> {
    await this.#call('delete', nodePath(node)).catch(allowed(404));
  }

  async createDeployment(name: string, replicas: number): Promise<void> {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'pause' }] } };
    const spec = { replicas, selector: { matchLabels: labels }, template };
    const path = `/apis/apps/v1/namespaces/${this.namespace}/deployments`;
    await this.#call('create', path, { body: { metadata: { name }, spec } });
  }

  async createPod(
    name: string,
    { node, tolerations = [], owner }: NewPod,
    labels: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const controller = owner && {
      ...owner,
      apiVersion: 'v1',
      uid: await this.#uidOf(owner.name),
      controller: true,
    };
    await this.#call('create', this.#podsPath, {
      body: {
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: { name, labels, ...(controller ? { ownerReferences: [controller] } : {}) },
        spec: {
          nodeName: node,
          tolerations: tolerations.map(({ tolerationSeconds, ...toleration }) => ({
            ...toleration,
            ...(tolerationSeconds === undefined ? {} : { tolerationSeconds: Number(tolerationSeconds) }),
          })),
          automountServiceAccountToken: false,
          containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }],
        },
      },
    });
  }

  async runPod(name: string, node: NodeName, app: string): Promise<void> {
    await this.createPod(name, { node }, { app });
    // The Eviction API evicts pods that do not run regardless of budgets.
    await this.#call('patch', `${this.#podsPath}/${name}/status`, {
      body: { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
      contentType: STRATEGIC_MERGE,
    });
  }

  async setBudget(name: string, app: string, minAvailable: 0 | 1): Promise<void> {
    const budgets = `/apis/policy/v1/namespaces/${this.namespace}/poddisruptionbudgets`;
    const spec = { minAvailable, selector: { matchLabels: { app } } };
    const made = await this.#call('create', budgets, { body: { metadata: { name }, spec } })
      .catch(allowed(409))
      .then(
        (created) =>
          created ?? this.#call('patch', `${budgets}/${name}`, { body: { spec }, contentType: MERGE }),
      );
    // Write the status as the disruption controller does, because the cluster may have none.
    const status = {
      observedGeneration: fieldsOf(fieldsOf(made)['metadata'])['generation'],
      currentHealthy: 1,
      desiredHealthy: minAvailable,
      expectedPods: 1,
      disruptionsAllowed: 1 - minAvailable,
    };
    await this.#call('patch', `${budgets}/${name}/status`, { body: { status }, contentType: MERGE });
  }

  async touchPod(name: string): Promise<void> {
    const body = { metadata: { annotations: { change: this.#nextChange() } } };
    await this.#call('patch', `${this.#podsPath}/${name}`, { body, contentType: MERGE });
  }

  /** Creates the objects of `taintward takeover apply`. */
  async putTakeover(keys: readonly string[], lapseSeconds: number): Promise<boolean> {
    const defined = await this.#call('create', CRDS, { body: TAKEOVER_CRD }).catch(allowed(404));
    if (defined === undefined) return false;
    await eventually(async () => {
      await this.#call('create', TAKEOVERS, { body: takeoverLive({ keys, lapseSeconds }) });
    });
    return true;
  }

  async putNodeLease(node: NodeName, spec: object): Promise<boolean> {
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: node }, spec };
    const made = await this.#call('create', NODE_LEASES, { body }).catch(allowed(404));
    if (made !== undefined) this.#leases.push(node);
    return made !== undefined;
  }

  async eventsAbout(name: string): Promise<readonly string[]> {
    const list = await this.#call('list', `/api/v1/namespaces/${this.namespace}/events`);
    return itemsOf(fieldsOf(list)['items'])
      .map(fieldsOf)
      .filter(({ involvedObject }) => fieldsOf(involvedObject)['name'] === name)
      .map(({ message }) => textOf(message));
  }

  async close(): Promise<void> {
    const grace = { gracePeriodSeconds: '0' };
    const pods = await this.#call('list', this.#podsPath);
    for (const pod of itemsOf(fieldsOf(pods)['items'])) {
      const name = textOf(fieldsOf(fieldsOf(pod)['metadata'])['name']);
      await this.#call('delete', `${this.#podsPath}/${name}`, { query: grace }).catch(allowed(404));
    }
    for (const node of this.#nodes) await this.deleteNode(node);
    for (const node of this.#leases) await this.#call('delete', `${NODE_LEASES}/${node}`).catch(allowed(404));
    await this.#call('delete', `${CRDS}/${TAKEOVER_CRD.metadata.name}`).catch(allowed(404));
    // A simulated server keeps its namespaces.
    await this.#call('delete', `/api/v1/namespaces/${this.namespace}`).catch(allowed(405));
    this.#transport.close();
    this.api.close();
  }

  get #podsPath(): string {
    return `/api/v1/namespaces/${this.namespace}/pods`;
  }

  async #uidOf(node: string): Promise<string> {
    const { metadata } = fieldsOf(await this.#call('get', `/api/v1/nodes/${node}`));
    return textOf(fieldsOf(metadata)['uid']);
  }

  #nextChange(): string {
    this.#changes += 1;
    return String(this.#changes);
  }

  #call(verb: Verb, path: string, more: Partial<Call> = {}): Promise<unknown> {
    return this.#transport.read({ verb, resource: path, path, ...more });
  }
}

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const NODE_LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const TAKEOVERS = '/apis/taintward.dev/v1/takeovers';

const nodePath = (node: NodeName): string => `/api/v1/nodes/${node}`;

const taintJson = ({ timeAdded, ...taint }: LiveTaint): object => ({
  ...taint,
  ...(timeAdded === undefined ? {} : { timeAdded: new Date(timeAdded).toISOString() }),
});

/** Ignores errors with these statuses. */
const allowed =
  (...statuses: readonly number[]) =>
  (error: unknown): void => {
    if (!(error instanceof ApiError && statuses.includes(error.status))) throw error;
  };

import pMap from 'p-map';
import { defined } from '#shared/defined.ts';
import type { ClusterUids, NodeName, PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { SkewRange } from '#shared/eviction/skew.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import { parsedJson } from '#shared/text/parsed-json.ts';
import { type Clock, systemClock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { disruptionPatch, eventBody, type PodEvent } from './announcement.ts';
import type { DeletePreconditions, KubernetesApi, LiveNode, LivePod, Resource, Takeover } from './api.ts';
import { ApiError } from './http/api-error.ts';
import { type Fields, fieldsOf, itemsOf, textOf } from './http/api-json.ts';
import { trimNode, trimPod } from './http/bulk.ts';
import { type AnswerKind, type Call, callText } from './http/call.ts';
import type { Connection } from './http/connection.ts';
import { blockedBy } from './http/eviction-refusal.ts';
import { Transport } from './http/transport.ts';
import { Marker, type Rival } from './marker.ts';
import { NODE_LEASE_NAMESPACE, projectNodeLease } from './node-lease.ts';
import { type PermissionReview, unlessDenied } from './permissions.ts';
import { projectNode, projectPod } from './project.ts';
import { projectReplicas, replicasCall, type WorkloadRef } from './replicas.ts';
import { RestResource } from './rest-resource.ts';
import { projectTakeover, renewalPatch, TAKEOVER_NAME, TAKEOVER_PATH, withheldPatch } from './takeover.ts';
import { PROOF_NODE } from './takeover-proof.ts';

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/pods';
const NODE_LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NODE_LEASE_NAMESPACE}/leases`;
/** Up to this many pods are read one by one; for more, one list of their node's pods costs less. */
const FEW_PODS = 3;
/** Parallel reads of one node's pods, if listing them costs too much. */
const PARALLEL_READS = 16;
const TAKEOVER = { resource: 'takeovers.taintward.dev', object: TAKEOVER_NAME, path: TAKEOVER_PATH };
const VERSION: Call = { verb: 'get', resource: '/version', path: '/version', answer: 'short' };
const KUBE_SYSTEM: Call = {
  verb: 'get',
  resource: 'namespaces',
  object: 'kube-system',
  path: '/api/v1/namespaces/kube-system',
};
/** Few, but not all of them are replaced between two reads. */
const FIRST_NODES: Call = { verb: 'list', resource: 'nodes', path: NODES, query: { limit: '10' } };
const AUTHORIZATION = 'authorization.k8s.io/v1';

/**
 * A few calls over `node:http2` and `node:https`, not a generated client: int64s survive, a quiet watch is not cut,
 * unused responses are not parsed, and a function's bundle stays small.
 */
export class RestApi implements KubernetesApi, PermissionReview {
  readonly nodes: Resource<LiveNode>;
  readonly pods: Resource<LivePod>;
  readonly #transport: Transport;
  readonly #marker: Marker | undefined;
  readonly #mayAct: () => boolean;
  /** By the version that the last ping found; `undefined`: the server did not answer yet. */
  #cachesLists: boolean | undefined;
  #firstPing: Promise<void> | undefined;

  /**
   * `installation` is the unique name of the installation that evicts by these calls; absent for clients that only read.
   * `mayAct`: pods are changed only while it returns true.
   */
  constructor(
    connection: Connection,
    clock: Clock = systemClock,
    installation?: string,
    mayAct: () => boolean = () => true,
  ) {
    this.#transport = new Transport(connection, clock);
    this.#mayAct = mayAct;
    this.#marker = installation === undefined ? undefined : new Marker(installation, clock.now());
    this.nodes = new RestResource(this.#transport, 'nodes', NODES, {
      project: projectNode,
      trim: trimNode,
      keeps: ({ taints }) => taints.length,
    });
    this.pods = new RestResource(this.#transport, 'pods', PODS, {
      project: (json) => {
        const pod = projectPod(json);
        // The managed fields of other pods were cut out, and few of them are marked.
        if (pod.disrupted && pod.terminating) this.#marker?.read(json, this.skewMs);
        return pod;
      },
      trim: trimPod,
      keeps: ({ tolerations, labels = {}, annotations = {}, leaving }) =>
        tolerations.length +
        Object.keys(labels).length +
        Object.keys(annotations).length +
        (leaving?.finalizers.length ?? 0),
    });
  }

  get host(): string {
    return this.#transport.host;
  }

  get skewMs(): number | undefined {
    return this.#transport.skewMs;
  }

  get skews(): readonly SkewRange[] {
    return this.#transport.skews;
  }

  get breakerOpen(): boolean {
    return this.#transport.breakerOpen;
  }

  answeredElsewhere(at: EpochMs): void {
    this.#transport.answeredElsewhere(at);
  }

  takeRival(): string | undefined {
    return this.#marker?.takeRival();
  }

  get lastRival(): Rival | undefined {
    return this.#marker?.lastRival;
  }

  async uids(): Promise<ClusterUids> {
    const [[system], nodes] = await Promise.all([
      this.#transport.read(KUBE_SYSTEM).then((json) => [uidOf(json)], nothingIfDenied),
      this.#transport.readItems(FIRST_NODES, uidOf).then(({ items }) => items, nothingIfDenied),
    ]);
    return { ...(system ? { system } : {}), nodes: nodes.filter(Boolean) };
  }

  async getNode(name: NodeName): Promise<LiveNode | undefined> {
    const path = `${NODES}/${encodeURIComponent(name)}`;
    const json = await this.#find({ verb: 'get', resource: 'nodes', object: name, path });
    return json === undefined ? undefined : projectNode(json);
  }

  async getNodeLease(name: NodeName): Promise<NodeLease | undefined> {
    const path = `${NODE_LEASES}/${encodeURIComponent(name)}`;
    const json = await this.#find({
      verb: 'get',
      resource: 'leases',
      object: `${NODE_LEASE_NAMESPACE}/${name}`,
      path,
    });
    return json === undefined ? undefined : projectNodeLease(json, this.#transport.serverTime);
  }

  async getReplicas(workload: WorkloadRef): Promise<number | undefined> {
    const call = replicasCall(workload);
    return call && projectReplicas(workload, await this.#find(call));
  }

  async getPod(pod: PodRef): Promise<LivePod | undefined> {
    const json = await this.#find({ verb: 'get', ...partsOf(pod) });
    return json === undefined ? undefined : this.#livePod(json);
  }

  async podsOnNode(node: NodeName, due: readonly PodRef[]): Promise<readonly LivePod[]> {
    if (due.length <= FEW_PODS || !(await this.#listsFromCache())) {
      const found = await pMap(due, (pod) => this.getPod(pod), { concurrency: PARALLEL_READS });
      return found.filter((pod) => pod !== undefined);
    }
    // One response instead of pages: a kubelet runs at most a few hundred pods.
    const call: Call = {
      verb: 'list',
      resource: 'pods',
      object: `on ${node}`,
      path: PODS,
      query: { fieldSelector: `spec.nodeName=${node}` },
    };
    return (await this.#transport.readItems(call, (pod) => this.#livePod(pod))).items;
  }

  async markDisrupted(
    pod: PodRef & Pick<LivePod, 'generation'>,
    uid: PodUid,
    now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod> {
    try {
      const call = this.#permitted({
        verb: 'patch',
        ...partsOf(pod, '/status'),
        ...(this.#marker ? { query: { fieldManager: this.#marker.manager } } : {}),
        body: disruptionPatch(uid, pod.generation ?? 0, now),
        contentType: 'application/strategic-merge-patch+json',
        ...defined({ allowed }),
      });
      return this.#livePod(await this.#transport.read(call));
    } catch (error) {
      // To the server, another pod's UID is a change of an immutable field.
      if (!(error instanceof ApiError && error.status === 422 && error.message.includes('metadata.uid'))) {
        throw error;
      }
      throw new ApiError(error.message, 409, 'Conflict', undefined, { cause: error });
    }
  }

  async deletePod(pod: PodRef, preconditions: DeletePreconditions, notAfter?: EpochMs): Promise<void> {
    const call = this.#permitted({
      verb: 'delete',
      ...partsOf(pod),
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions },
      ...(notAfter === undefined ? {} : { notAfter, inHurry: true }),
    });
    await this.#transport.perform(call);
  }

  async evictPod(
    pod: PodRef,
    preconditions: DeletePreconditions,
    notAfter?: EpochMs,
  ): Promise<EvictionAnswer> {
    const { namespace, name } = pod;
    try {
      const call = this.#permitted({
        verb: 'create',
        ...partsOf(pod, '/eviction'),
        answer: 'short',
        body: {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { namespace, name },
          deleteOptions: { preconditions },
        },
        ...(notAfter === undefined ? {} : { notAfter, inHurry: true }),
      });
      await this.#transport.perform(call);
      return { kind: 'evicted' };
    } catch (error) {
      const answer = error instanceof ApiError ? blockedBy(error) : undefined;
      if (answer) return answer;
      throw error;
    }
  }

  /** Returns a call that changes a pod. Throws `ApiError` if this process may not act now. */
  #permitted(call: Call): Call {
    if (this.#mayAct()) return call;
    throw new ApiError(`Did not ${callText(call)}: this replica doesn't hold the lease.`, 0);
  }

  async createEvent(event: PodEvent, now: EpochMs): Promise<void> {
    try {
      await this.#transport.perform({
        verb: 'create',
        resource: 'events',
        object: `in ${event.pod.namespace}`,
        path: `/api/v1/namespaces/${encodeURIComponent(event.pod.namespace)}/events`,
        answer: 'short',
        body: eventBody(event, now),
      });
    } catch (error) {
      if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
    }
  }

  async getTakeover(): Promise<Takeover | undefined> {
    // The permission is granted together with the takeover itself.
    const json = await unlessDenied(this.#find({ ...TAKEOVER, verb: 'get' }));
    return json === undefined ? undefined : projectTakeover(json);
  }

  async renewTakeover(takeover: Takeover, at: EpochMs): Promise<void> {
    await this.#patchTakeover(renewalPatch(takeover, at));
  }

  async withholdTakeover(takeover: Takeover, reason: string): Promise<void> {
    await this.#patchTakeover(withheldPatch(takeover, reason));
  }

  async #patchTakeover(body: object): Promise<void> {
    const contentType = 'application/merge-patch+json';
    await this.#transport.perform({ ...TAKEOVER, verb: 'patch', body, contentType });
  }

  async tryTaints(taints: readonly LiveTaint[]): Promise<readonly LiveTaint[]> {
    // Server-side apply is used because RBAC then checks the name of the new object, unlike for a POST.
    const node = await this.#transport.read({
      verb: 'patch',
      resource: 'nodes',
      object: PROOF_NODE,
      path: `${NODES}/${PROOF_NODE}`,
      query: { dryRun: 'All', fieldManager: PROOF_NODE, force: 'true' },
      body: {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: PROOF_NODE },
        spec: { taints: taints.map(taintJson) },
      },
      contentType: 'application/apply-patch+yaml',
    });
    return projectNode(node).taints;
  }

  async allowed({ verb, resource, ...scope }: Permission): Promise<boolean> {
    const [kind, subresource = ''] = resource.split('/');
    const spec = { resourceAttributes: { verb, resource: kind, subresource, ...scope } };
    return (await this.#review('SelfSubjectAccessReview', spec, 'short'))['allowed'] === true;
  }

  async ping(): Promise<void> {
    try {
      this.#cachesLists = cachesLists(parsedJson(await this.#transport.readText(VERSION)));
    } catch (error) {
      if (!(error instanceof ApiError) || error.unanswered) throw error;
      this.#cachesLists ??= false;
    }
  }

  async lacking<R extends Permission>(rights: readonly R[]): Promise<readonly R[]> {
    // The rules of a namespace include those of all namespaces. In this one, nobody grants us more.
    const review = this.#review('SelfSubjectRulesReview', { namespace: NODE_LEASE_NAMESPACE }, 'object');
    const rules = await review.then(({ resourceRules }) => itemsOf(resourceRules), nothingIfDenied);
    const unlisted = rights.filter((right) => !rules.some((rule) => grants(rule, right)));
    // A webhook of the API server may grant more, but lists nothing.
    const granted = await pMap(unlisted, ({ verb, resource }) => this.allowed({ verb, resource }));
    return unlisted.filter((_, index) => !granted[index]);
  }

  async #review(kind: string, spec: object, answer: AnswerKind): Promise<Fields> {
    const resource = `${kind.toLowerCase()}s`;
    const path = `/apis/${AUTHORIZATION}/${resource}`;
    const call = { resource, path, answer, body: { apiVersion: AUTHORIZATION, kind, spec } };
    return fieldsOf(fieldsOf(await this.#transport.read({ verb: 'create', ...call }))['status']);
  }

  close(): void {
    this.#transport.close();
  }

  #livePod(json: unknown): LivePod {
    this.#marker?.read(json, this.skewMs);
    return projectPod(json);
  }

  /** Reports whether the server lists one node's pods without a scan of etcd. With a relay, a ping precedes all evictions. */
  async #listsFromCache(): Promise<boolean> {
    if (this.#cachesLists === undefined) {
      // A function's passes over several nodes share one request.
      this.#firstPing ??= this.ping()
        .catch(() => undefined)
        .finally(() => {
          this.#firstPing = undefined;
        });
      await this.#firstPing;
    }
    return this.#cachesLists === true;
  }

  async #find(call: Call): Promise<unknown> {
    try {
      return await this.#transport.read(call);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }
}

/** Kubernetes 1.31 or later (`ConsistentListFromCache`). A managed provider may report `31+`. */
function cachesLists(version: unknown): boolean {
  const { major, minor } = fieldsOf(version);
  const [first, second] = [Number.parseInt(textOf(major), 10), Number.parseInt(textOf(minor), 10)];
  return first > 1 || (first === 1 && second >= 31);
}

const uidOf = (json: unknown): string => textOf(fieldsOf(fieldsOf(json)['metadata'])['uid']);

/** Reports whether a rule grants a permission of the core group, for objects of all names. */
function grants(rule: unknown, { verb, resource }: Permission): boolean {
  const { verbs, apiGroups, resources, resourceNames } = fieldsOf(rule);
  const has = (names: unknown, name: string) => itemsOf(names).some((each) => each === '*' || each === name);
  return (
    has(verbs, verb) && has(apiGroups, '') && has(resources, resource) && itemsOf(resourceNames).length === 0
  );
}

function nothingIfDenied(error: unknown): readonly never[] {
  if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return [];
  throw error;
}

const taintJson = ({ key, value, effect, timeAdded }: LiveTaint): object => ({
  key,
  effect,
  ...defined({ value }),
  ...(timeAdded === undefined ? {} : { timeAdded: new Date(timeAdded).toISOString() }),
});

/** Returns the parts of a call by which it names a pod, or a subresource of the pod. */
const partsOf = (
  { namespace, name }: PodRef,
  subresource = '',
): Pick<Call, 'resource' | 'object' | 'path'> => ({
  resource: `pods${subresource}`,
  object: `${namespace}/${name}`,
  path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}${subresource}`,
});

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '#shared/time/clock.ts';
import { admissions } from './admission.ts';
import { withOwner } from './field-owners.ts';
import { type Change, encodeContinue, History, parseContinue } from './history.ts';
import {
  type ApiObject,
  type Drafts,
  type EpochMs,
  KINDS,
  keyOf,
  kubernetesTime,
  type ObjectRef,
  type Objects,
  objectSchemas,
  type PodObject,
  parseDraft,
  type ResourceName,
  refOf,
  type Selector,
} from './kinds.ts';
import {
  checkPreconditions,
  countsGenerations,
  generatedName,
  markedDeleted,
  nameCauses,
  nextGeneration,
  type Preconditions,
  podGraceSeconds,
  serverMetadata,
  versioned,
} from './metadata.ts';
import { alreadyExists, badRequest, conflict, invalid, notFound, tooLargeVersion } from './status.ts';

/** The number of changes over which a watch can resume; a demo makes a few hundred an hour. */
const HISTORY_LIMIT = 5000;

/** All objects, as of one version. */
export interface ClusterState {
  readonly version: number;
  readonly objects: readonly { readonly resource: ResourceName; readonly object: ApiObject }[];
}

export interface ObjectStoreOptions {
  readonly clock: Clock;
  /** The initial objects; absent: none. */
  readonly state?: ClusterState;
  /** Saves each change before it becomes visible; if it throws, the change has not happened. */
  readonly save?: (change: Change) => void;
  readonly historyLimit?: number;
}

export interface ListQuery {
  /** "": in every namespace. */
  readonly namespace: string;
  readonly selects: Selector;
  readonly limit?: number;
  readonly continue?: string;
}

export interface ListResult {
  readonly items: readonly ApiObject[];
  /** The version that all pages of one list show. */
  readonly version: number;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export interface WatchQuery {
  readonly namespace: string;
  readonly selects: Selector;
  /** The version after which changes are sent. */
  readonly version: number;
}

/** The actor of a change, and whether it is a dry run. */
export interface Origin {
  /** The owner of the changed fields from now on: see `field-owners.ts`. */
  readonly manager?: string;
  /** The server itself makes the change, so `managedFields` do not record it. */
  readonly isOwn?: boolean;
  /** Performs the request without storing the result. */
  readonly dryRun?: boolean;
}

export interface DeleteRequest {
  readonly dryRun?: boolean;
  readonly preconditions?: Preconditions;
  /** The grace period of a pod; absent: the pod's own. 0 removes the pod immediately. */
  readonly gracePeriodSeconds?: number;
}

export interface WatchedChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: ApiObject;
}

/**
 * The objects of the simulated cluster, with an API server's rules for changes. All objects share one increasing version; updates
 * are optimistic and pass admission; pods are deleted gracefully, and watches resume. Every error is a `StatusError` in the real
 * server's words. The store lives in one thread and every method is one transaction.
 */
export class ObjectStore {
  readonly #clock: Clock;
  readonly #save: (change: Change) => void;
  readonly #objects: { readonly [R in ResourceName]: Map<string, Objects[R]> } = {
    nodes: new Map(),
    pods: new Map(),
    events: new Map(),
    namespaces: new Map(),
    deployments: new Map(),
    replicasets: new Map(),
    statefulsets: new Map(),
    daemonsets: new Map(),
    poddisruptionbudgets: new Map(),
  };
  readonly #history: History;
  readonly #listeners = new Set<(change: Change) => void>();

  constructor({ clock, state, save = () => {}, historyLimit = HISTORY_LIMIT }: ObjectStoreOptions) {
    this.#clock = clock;
    this.#save = save;
    this.#history = new History(historyLimit, state?.version ?? 0);
    for (const { resource, object } of state?.objects ?? []) this.#keep(resource, object);
  }

  /** The version of the latest change. */
  get version(): number {
    return this.#history.latest;
  }

  now(): EpochMs {
    return this.#clock.now();
  }

  find<R extends ResourceName>(resource: R, ref: ObjectRef): Objects[R] | undefined {
    return this.#objects[resource].get(keyOf(ref));
  }

  /** Returns an object. Throws 404 when there is none. */
  get<R extends ResourceName>(resource: R, ref: ObjectRef): Objects[R] {
    const object = this.find(resource, ref);
    if (object === undefined) throw notFound(resource, ref.name);
    return object;
  }

  /** Returns all objects of a kind, in no order. */
  all<R extends ResourceName>(resource: R): readonly Objects[R][] {
    return [...this.#objects[resource].values()];
  }

  /**
   * Returns one page, ordered by namespace and name. All pages of a list show the cluster as of the first page. Throws 410 when
   * the history no longer reaches that version.
   */
  list(resource: ResourceName, query: ListQuery): ListResult {
    const from = query.continue === undefined ? undefined : parseContinue(query.continue);
    const version = from?.version ?? this.version;
    const selected = [...this.#history.asOf(version, resource, this.#objects[resource])]
      .filter(
        ([key, object]) =>
          isIn(query.namespace, object) && query.selects(object) && key > (from?.after ?? ''),
      )
      .sort(([a], [b]) => (a < b ? -1 : 1));
    const page = selected.slice(0, query.limit);
    const last = page.at(-1);
    const items = page.map(([, object]) => object);
    if (last === undefined || page.length === selected.length) return { items, version };
    return {
      items,
      version,
      continue: encodeContinue({ version, after: last[0] }),
      remainingItemCount: selected.length - page.length,
    };
  }

  /** Throws 504, as the real server does, for a version that is not reached yet. */
  mustHaveReached(version: number): void {
    if (version > this.version) throw tooLargeVersion(version, this.version);
  }

  /**
   * Calls `listener` for every change after `query.version`: immediately for past changes, later for new ones. An object that
   * starts or stops matching the selector is reported as added or deleted. Returns a function that ends the watch. Throws 410 for
   * a version that the history no longer remembers or that this cluster never had.
   */
  watch(resource: ResourceName, query: WatchQuery, listener: (change: WatchedChange) => void): () => void {
    const selects = (object: ApiObject | undefined): object is ApiObject =>
      object !== undefined && isIn(query.namespace, object) && query.selects(object);
    const notify = ({ resource: changed, type, object, previous }: Change): void => {
      if (changed !== resource) return;
      const was = selects(previous);
      const isSelected = type !== 'DELETED' && selects(object);
      if (isSelected) listener({ type: was ? 'MODIFIED' : 'ADDED', object });
      else if (was)
        listener({ type: 'DELETED', object: versioned(previous, object.metadata.resourceVersion) });
    };
    for (const change of this.#history.after(query.version)) notify(change);
    return this.subscribe(notify);
  }

  /** Calls `listener` after every change of any object, in order. Returns a function that ends the subscription. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Adds an object. Throws 409 when its name is taken, 422 when it is not acceptable, and 404 without its namespace. */
  create<R extends ResourceName>(
    resource: R,
    namespace: string,
    body: unknown,
    { manager = '', dryRun = false }: Origin = {},
  ): Objects[R] {
    const draft = parseDraft(resource, body);
    const { generateName, name = generateName ? generatedName(generateName) : '' } = draft.metadata;
    refuseOtherNamespace(draft, namespace);
    const faults = nameCauses(name);
    if (faults.length > 0) throw invalid(KINDS[resource], name, faults);
    if (namespace !== '') this.get('namespaces', { namespace: '', name: namespace });
    if (this.find(resource, { namespace, name }) !== undefined) throw alreadyExists(resource, name);
    const metadata = { ...draft.metadata, name, ...(namespace === '' ? {} : { namespace }) };
    const admitted = admissions[resource].create({ ...draft, metadata });
    const made = objectSchemas[resource].parse({
      ...admitted,
      metadata: {
        ...admitted.metadata,
        uid: randomUUID(),
        resourceVersion: '',
        creationTimestamp: kubernetesTime(this.#clock.now()),
        ...(countsGenerations(resource) ? { generation: 1 } : {}),
      },
    });
    const object = withOwner(resource, undefined, made, manager, this.#clock.now());
    return dryRun ? object : this.#commit('ADDED', resource, object);
  }

  /**
   * Replaces an object, or only its status, by the result of `change`. Throws 409 when the result names another version than the
   * current one, and 422 when it names another uid or is not acceptable. A result that changes nothing creates no version.
   */
  update<R extends ResourceName>(
    resource: R,
    ref: ObjectRef,
    part: 'main' | 'status',
    change: (current: Objects[R]) => unknown,
    { manager = '', isOwn = false, dryRun = false }: Origin = {},
  ): Objects[R] {
    const current = this.get(resource, ref);
    const next = this.#changed(resource, current, part, change(current));
    if (isDeepStrictEqual(next, current)) return current;
    const owned = isOwn ? next : withOwner(resource, current, next, manager, this.#clock.now());
    const counted = nextGeneration(resource, current, owned);
    return dryRun ? counted : this.#commit('MODIFIED', resource, counted);
  }

  /** Returns the object after a client replaced it, or its status, but for its version and owner. */
  #changed<R extends ResourceName>(
    resource: R,
    current: Objects[R],
    part: 'main' | 'status',
    body: unknown,
  ): Objects[R] {
    const draft = parseDraft(resource, body);
    const ref = refOf(current);
    const kind = KINDS[resource];
    const { name = '', uid, resourceVersion } = draft.metadata;
    refuseOtherNamespace(draft, ref.namespace);
    if (name !== ref.name) {
      throw badRequest(`the name of the object (${name}) does not match the name on the URL (${ref.name})`);
    }
    if (resourceVersion && resourceVersion !== current.metadata.resourceVersion) {
      const why =
        'the object has been modified; please apply your changes to the latest version and try again';
      throw conflict(resource, name, why);
    }
    if (uid && uid !== current.metadata.uid) {
      const message = `Invalid value: "${uid}": field is immutable`;
      throw invalid(kind, name, [{ reason: 'FieldValueInvalid', message, field: 'metadata.uid' }]);
    }
    const metadata = { ...draft.metadata, ...serverMetadata(current) };
    const next = objectSchemas[resource].parse(
      part === 'status'
        ? { ...current, metadata, status: draft['status'] }
        : { ...draft, metadata, ...('status' in current ? { status: current['status'] } : {}) },
    );
    return part === 'status' ? next : admissions[resource].update(current, next);
  }

  /** Binds a pod to a node, as a scheduler does. Throws 409 when the pod is already bound or terminating. */
  bind(ref: ObjectRef, node: string): PodObject {
    const pod = this.get('pods', ref);
    if (pod.spec.nodeName) {
      throw conflict(
        'pods/binding',
        ref.name,
        `pod ${ref.name} is already assigned to node "${pod.spec.nodeName}"`,
      );
    }
    if (pod.metadata.deletionTimestamp !== undefined) {
      throw conflict(
        'pods/binding',
        ref.name,
        `pod ${ref.name} is being deleted, cannot be assigned to a host`,
      );
    }
    const scheduled = {
      type: 'PodScheduled',
      status: 'True',
      lastTransitionTime: kubernetesTime(this.#clock.now()),
    };
    const others = (pod.status.conditions ?? []).filter(({ type }) => type !== 'PodScheduled');
    return this.#commit('MODIFIED', 'pods', {
      ...pod,
      spec: { ...pod.spec, nodeName: node },
      status: { ...pod.status, conditions: [...others, scheduled] },
    });
  }

  /**
   * Deletes an object. A pod that runs on a node is only marked; its kubelet finishes it within its grace period. A second
   * request only shortens that period. Throws 409 when a precondition fails. Returns the last state, and whether the object is
   * deleted.
   */
  delete<R extends ResourceName>(
    resource: R,
    ref: ObjectRef,
    { preconditions = {}, gracePeriodSeconds, dryRun = false }: DeleteRequest = {},
  ): { readonly object: Objects[R]; readonly gone: boolean } {
    const current = this.get(resource, ref);
    checkPreconditions(current, preconditions);
    const graceSeconds = current.kind === 'Pod' ? podGraceSeconds(current, gracePeriodSeconds) : 0;
    if (dryRun) return { object: current, gone: graceSeconds === 0 };
    if (graceSeconds === 0) return { object: this.#commit('DELETED', resource, current), gone: true };
    const marked = markedDeleted(current, graceSeconds, this.#clock.now());
    if (marked === current) return { object: current, gone: false };
    return { object: this.#commit('MODIFIED', resource, marked), gone: false };
  }

  #commit<R extends ResourceName>(type: Change['type'], resource: R, unversioned: Objects[R]): Objects[R] {
    const version = this.version + 1;
    const object = objectSchemas[resource].parse(versioned(unversioned, String(version)));
    const key = keyOf(refOf(object));
    const change = { version, type, resource, object, previous: this.#objects[resource].get(key) };
    this.#save(change);
    if (type === 'DELETED') this.#objects[resource].delete(key);
    else this.#objects[resource].set(key, object);
    this.#history.add(change);
    for (const listener of [...this.#listeners]) listener(change);
    return object;
  }

  #keep<R extends ResourceName>(resource: R, object: ApiObject): void {
    this.#objects[resource].set(keyOf(refOf(object)), objectSchemas[resource].parse(object));
  }
}

/** Throws 400 for an object of another namespace than the request's. */
function refuseOtherNamespace({ metadata }: Drafts[ResourceName], namespace: string): void {
  if (metadata.namespace && metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

const isIn = (namespace: string, { metadata }: ApiObject): boolean =>
  namespace === '' || metadata.namespace === namespace;

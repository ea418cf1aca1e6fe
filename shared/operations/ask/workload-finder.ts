import pMap from 'p-map';
import type { PodUid } from '#shared/eviction/identity.ts';
import type { ForecastPod } from '#shared/explain/forecast.ts';
import type { Job } from '#shared/explain/job.ts';
import type { Findings, Replicas } from '#shared/explain/what-if.ts';
import { type Workload, workloadText } from '#shared/explain/workload.ts';
import { controllerOf } from '#shared/kubernetes/controller-of.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import { FleetError } from '../fleet/fleet.ts';
import { numberOf, projectJob } from './job.ts';

type Json = Readonly<Record<string, unknown>>;

/** Collections of pods and of Kubernetes' controllers, by the group and kind of an owner reference. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  'apps/ReplicaSet': '/apis/apps/v1/namespaces/*/replicasets',
  'apps/Deployment': '/apis/apps/v1/namespaces/*/deployments',
  'apps/StatefulSet': '/apis/apps/v1/namespaces/*/statefulsets',
  'apps/DaemonSet': '/apis/apps/v1/namespaces/*/daemonsets',
  'batch/Job': '/apis/batch/v1/namespaces/*/jobs',
  'batch/CronJob': '/apis/batch/v1/namespaces/*/cronjobs',
  '/Pod': '/api/v1/namespaces/*/pods',
  '/ReplicationController': '/api/v1/namespaces/*/replicationcontrollers',
};
/** Returns the path of a pod, or of an object of Kubernetes' controllers; `undefined`: its kind is another one. */
export function workloadPath({ namespace, kind, name }: Workload): string | undefined {
  const [, collection] = Object.entries(COLLECTIONS).find(([key]) => key.endsWith(`/${kind}`)) ?? [];
  return (
    collection && `${collection.replace('*', encodeURIComponent(namespace))}/${encodeURIComponent(name)}`
  );
}

/** Owners above a pod. Kubernetes' own workloads need at most two: a ReplicaSet and its Deployment. */
const DEEPEST = 4;
const PARALLEL_PODS = 8;

/** A pod and its JSON. Only the owner references of the JSON are read. */
export interface OwnedPod {
  readonly pod: ForecastPod;
  readonly json: unknown;
}

/**
 * The workload of each pod, by UID, if it has one, and Jobs by {@link workloadText}. Rejects with `FleetError` if the
 * caller may not read owners, and with `ApiError` if the API server is unreachable.
 */
export async function ownersOf(
  objects: ClusterObjects,
  pods: readonly OwnedPod[],
): Promise<Pick<Findings, 'workloads' | 'jobs'>> {
  const finder = new WorkloadFinder(objects);
  const workloads = await finder.ofEach(pods);
  const [unread] = finder.unknown;
  if (unread === undefined) return { workloads, jobs: finder.jobs };
  throw new FleetError(unread);
}

/** Follows owner references to the last known owner. Each is read once; an unreadable one counts as its reference. */
export class WorkloadFinder {
  readonly #objects: ClusterObjects;
  readonly #read = new Map<string, Promise<Json | undefined>>();
  readonly #replicas = new Map<string, Replicas>();
  readonly #jobs = new Map<string, Job>();
  /** Replicas of the workloads found so far that Kubernetes' own controllers run, by {@link workloadText}. */
  readonly replicas: ReadonlyMap<string, Replicas> = this.#replicas;
  /** Jobs found so far, by {@link workloadText}. */
  readonly jobs: ReadonlyMap<string, Job> = this.#jobs;
  readonly #unknown = new Map<string, string>();

  constructor(objects: ClusterObjects) {
    this.#objects = objects;
  }

  /** Owners that could not be read so far, one sentence for each kind. */
  get unknown(): readonly string[] {
    return [...this.#unknown.values()];
  }

  /** Pods without a workload are missing. Rejects with `ApiError` if the API server is unreachable. */
  async ofEach(pods: readonly OwnedPod[]): Promise<ReadonlyMap<PodUid, Workload>> {
    const workloads = new Map<PodUid, Workload>();
    const find = async ({ pod, json }: OwnedPod) => {
      const { namespace, ownerReferences } = fieldsOf(fieldsOf(json)['metadata']);
      const workload = await this.#lastOwner(textOf(namespace), ownerReferences, DEEPEST);
      if (workload) workloads.set(pod.uid, workload);
    };
    await pMap(pods, find, { concurrency: PARALLEL_PODS });
    return workloads;
  }

  async #lastOwner(
    namespace: string,
    ownerReferences: unknown,
    depth: number,
  ): Promise<Workload | undefined> {
    const owner = controllerOf(ownerReferences);
    if (!owner || depth === 0) return undefined;
    const [kind, name] = [textOf(owner['kind']), textOf(owner['name'])];
    // The version follows the last slash. The core group has neither a slash nor a name.
    const group = textOf(owner['apiVersion']).replace(/\/?[^/]*$/, '');
    const workload = { namespace, kind, name };
    const collection = COLLECTIONS[`${group}/${kind}`];
    const json = collection && (await this.#get(`${collection.replace('*', namespace)}/${name}`, kind));
    if (!json) return workload;
    if (collection === COLLECTIONS['batch/Job']) this.#jobs.set(workloadText(workload), projectJob(json));
    const behind = await this.#lastOwner(namespace, fieldsOf(json['metadata'])['ownerReferences'], depth - 1);
    if (behind) return behind;
    const replicas = replicasOf(kind, json);
    if (replicas) this.#replicas.set(workloadText(workload), replicas);
    return workload;
  }

  /** `undefined`: it doesn't exist, or may not be read. */
  #get(path: string, kind: string): Promise<Json | undefined> {
    const known = this.#read.get(path);
    if (known) return known;
    const reading = this.#objects.get(path).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      const lost = kind === 'Job' ? 'whether these evictions fail them' : 'the ready replicas';
      const why = `Some ${kind}s cannot be read, so the owners of their pods and ${lost} are unknown: ${error.message}`;
      if (!this.#unknown.has(kind)) this.#unknown.set(kind, why);
      return undefined;
    });
    this.#read.set(path, reading);
    return reading;
  }
}

/** `undefined`: its kind keeps no number of pods ready. */
function replicasOf(kind: string, { spec, status }: Json): Replicas | undefined {
  const { replicas } = fieldsOf(spec);
  const { readyReplicas, numberReady, desiredNumberScheduled } = fieldsOf(status);
  switch (kind) {
    case 'DaemonSet':
      return { desired: numberOf(desiredNumberScheduled, 0), ready: numberOf(numberReady, 0) };
    case 'Deployment':
    case 'ReplicaSet':
    case 'ReplicationController':
    case 'StatefulSet':
      return { desired: numberOf(replicas, 1), ready: numberOf(readyReplicas, 0) };
    default:
      return undefined;
  }
}

import { type ClusterName, type ClusterUids, isSameCluster } from '#shared/eviction/identity.ts';
import { PROBE_NODE } from '#shared/eviction/probe.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import {
  type Need,
  OBSERVE_PERMISSIONS,
  type PermissionReview,
  preflight,
} from '#shared/kubernetes/permissions.ts';
import type { Fault } from '#shared/state/fault.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import { ClusterFaults } from '../watch/cluster-faults.ts';
import type { ClusterState } from './probe-server.ts';

/** Delays before a cluster is tried again: one that an operator has to fix, and one that recovers by itself. */
const RETRY: Readonly<Record<Trouble['kind'], Backoff>> = {
  'access-denied': { firstMs: 2_000, longestMs: 60_000 },
  unreachable: { firstMs: 1_000, longestMs: 10_000 },
};
/** Maximum time that a start waits for slow clusters, to compare them. */
export const START_CHECK_MS = 3_000;
export const LOG_AGAIN_MS = 10 * 60_000;

/** No cluster can be managed until an operator fixes the access; the message has a line for each reason. */
export class ClustersRejectedError extends Error {
  override readonly name = 'ClustersRejectedError';
}

export interface ChosenCluster {
  readonly name: ClusterName;
  /** The calls reject while the cluster can't be reached, for whatever reason. */
  readonly api: KubernetesApi & PermissionReview;
  /** Makes `api` use the current kubeconfig. Throws `KubeconfigError` if the kubeconfig is unusable. */
  readAccess(): void;
}

/** Reason why a cluster can't be managed: its access must be fixed (`access-denied`), or it doesn't answer. */
interface Trouble {
  readonly kind: 'access-denied' | 'unreachable';
  readonly error: Error;
}

type Take = (name: ClusterName, api: KubernetesApi) => void;

export interface ManagedClustersDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly permissions: (cluster: ClusterName) => Promise<readonly Need[]>;
}

/** The chosen clusters. Each is tried until its credentials have all permissions; none waits for another. */
export class ManagedClusters {
  readonly #clusters: readonly ChosenCluster[];
  readonly #deps: ManagedClustersDeps;
  readonly #verdicts: ReadonlyMap<ClusterName, Promise<Trouble | undefined>>;
  readonly #states = new Map<ClusterName, ClusterState>();
  readonly #troubles = new Map<ClusterName, string>();
  readonly #faults = new Map<ClusterName, ClusterFaults>();

  private constructor(clusters: readonly ChosenCluster[], deps: ManagedClustersDeps) {
    this.#clusters = clusters;
    this.#deps = deps;
    for (const { name } of clusters) this.#states.set(name, { kind: 'syncing' });
    this.#verdicts = new Map(clusters.map((cluster) => [cluster.name, this.#check(cluster)]));
  }

  /**
   * Tries every cluster once. Resolves as soon as one can be managed, or may be once it answers. Rejects with
   * `ClustersRejectedError` when the access of all must be fixed.
   */
  static async open(chosen: readonly ChosenCluster[], deps: ManagedClustersDeps): Promise<ManagedClusters> {
    const clusters = new ManagedClusters(chosen, deps);
    const hopes = [...clusters.#verdicts].map(async ([name, verdict]) => {
      const trouble = await verdict;
      if (trouble?.kind === 'access-denied') throw new ClustersRejectedError(troubleText(name, trouble));
    });
    try {
      await Promise.any(hopes);
    } catch (error) {
      const reasons = (error as AggregateError).errors.map(({ message }) => message);
      throw new ClustersRejectedError([...new Set(reasons)].join('\n'));
    }
    await clusters.#refuseTwins();
    return clusters;
  }

  /** Rejects if two names are one cluster. A cluster that answers later is compared by its relay. */
  async #refuseTwins(): Promise<void> {
    if (this.#clusters.length === 1) return;
    const found: { readonly name: ClusterName; readonly uids: ClusterUids }[] = [];
    const reads = this.#clusters.map(async ({ name, api }) => {
      if (!(await this.#verdicts.get(name))) found.push({ name, uids: await api.uids() });
    });
    await endsWithin(START_CHECK_MS, Promise.allSettled(reads));
    for (const [index, { name, uids }] of found.entries()) {
      const twin = found.slice(index + 1).find((other) => isSameCluster(uids, other.uids));
      if (!twin) continue;
      throw new ClustersRejectedError(
        `Contexts ${name} and ${twin.name} are the same cluster: name only one of them.`,
      );
    }
  }

  /** The APIs of all clusters, including unreachable ones: work there is retried until it succeeds. */
  get apis(): ReadonlyMap<ClusterName, KubernetesApi & PermissionReview> {
    return new Map(this.#clusters.map(({ name, api }) => [name, api]));
  }

  /** The states of clusters not in service: `access-denied`, `disconnected`, or `syncing` before the first check. */
  get states(): ReadonlyMap<ClusterName, ClusterState> {
    return this.#states;
  }

  /** The last reason why each of those clusters is not in service; one sentence each. */
  get troubles(): ReadonlyMap<ClusterName, string> {
    return this.#troubles;
  }

  /** The same reasons as faults, as a lease holds them. */
  get faults(): ReadonlyMap<ClusterName, readonly Fault[]> {
    return new Map([...this.#faults].map(([name, { list }]) => [name, list]));
  }

  /**
   * Calls `take` once for each cluster that can be managed, until `signal` aborts; `refused` for each that can't at
   * first.
   */
  admit(take: Take, signal: AbortSignal, refused: (name: ClusterName) => void = () => undefined): void {
    for (const cluster of this.#clusters) void this.#admit(cluster, { take, refused }, signal);
  }

  close(): void {
    for (const { api } of this.#clusters) api.close();
  }

  async #admit(
    cluster: ChosenCluster,
    { take, refused }: { readonly take: Take; readonly refused: (name: ClusterName) => void },
    signal: AbortSignal,
  ): Promise<void> {
    const complain = this.#complainer(cluster.name);
    let trouble = await this.#verdicts.get(cluster.name);
    for (let failures = 1; trouble && !signal.aborted; failures++) {
      this.#see(cluster.name, trouble);
      if (failures === 1) refused(cluster.name);
      complain(trouble);
      await pause(backoffMs(failures, RETRY[trouble.kind]), signal);
      if (!signal.aborted) trouble = await this.#check(cluster);
    }
    if (signal.aborted) return;
    this.#states.delete(cluster.name);
    this.#troubles.delete(cluster.name);
    this.#faults.delete(cluster.name);
    take(cluster.name, cluster.api);
  }

  async #check({ name, api, readAccess }: ChosenCluster): Promise<Trouble | undefined> {
    try {
      readAccess();
      // While the rules can't be read, no pod is evicted.
      const permissions = await this.#deps.permissions(name).catch(() => OBSERVE_PERMISSIONS);
      const error = await preflight(api, permissions);
      if (!error) return undefined;
      // Credentials that may not even read a node have no access at all.
      await api.getNode(PROBE_NODE);
      this.#deps.log.warn('cluster.permissions-unverified', { cluster: name, error });
      return undefined;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { kind: isRefusal(error) ? 'access-denied' : 'unreachable', error };
    }
  }

  #see(cluster: ClusterName, { kind, error }: Trouble): void {
    this.#troubles.set(cluster, error.message);
    const faults = this.#faults.get(cluster) ?? new ClusterFaults(this.#deps.clock);
    faults.begin({ type: 'list-failing' }, error);
    this.#faults.set(cluster, faults);
    if (kind === 'access-denied') this.#states.set(cluster, { kind });
    else if (this.#states.get(cluster)?.kind !== 'disconnected') {
      this.#states.set(cluster, { kind: 'disconnected', since: this.#deps.clock.now() });
    }
  }

  #complainer(cluster: ClusterName): (trouble: Trouble) => void {
    const { clock, log } = this.#deps;
    let last: { readonly message: string; readonly age: Age } | undefined;
    return ({ kind, error }) => {
      if (last?.message === error.message && last.age.atLeastMs < LOG_AGAIN_MS) return;
      last = { message: error.message, age: new Age(clock) };
      const event = kind === 'unreachable' ? 'cluster.unreachable' : 'cluster.access-denied';
      log.warn(event, { cluster, error });
    };
  }
}

/** Unavailable credentials are the cause of the error of a call that could not be sent. */
function isRefusal(error: Error): boolean {
  if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return true;
  return error instanceof KubeconfigError || error.cause instanceof KubeconfigError;
}

/** The errors of a kubeconfig name the context themselves. */
const troubleText = (name: ClusterName, { error }: Trouble): string =>
  error instanceof KubeconfigError ? error.message : `cluster ${name}: ${error.message}`;

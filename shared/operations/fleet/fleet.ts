import pMap from 'p-map';
import type { AccessAnswer, AccessQuestion } from '#shared/access/access-check.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { History } from '#shared/state/history.ts';
import type { Leases } from '#shared/state/lease.ts';
import type { Operator } from '#shared/state/operator.ts';
import { type ClusterRegistry, clusterNameSchema } from '#shared/state/registry.ts';
import type { RulesStore, StoredRules } from '#shared/state/rules-store.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { Store } from '#shared/state/store.ts';
import type { Account } from './account.ts';
import type { DeadLetterBox } from './dead-letters.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { ServiceView } from './service-view.ts';

const PARALLEL_READS = 16;

/** The request is not possible in this fleet. The message is one sentence that says how to proceed. */
export class FleetError extends Error {
  override readonly name: string = 'FleetError';
}

/** The arguments select no action or no cluster. */
export class UsageError extends FleetError {
  override readonly name = 'UsageError';
}

/** Clusters whose API servers can be asked, with the caller's permissions. */
export interface Clusters {
  /** For people: "table taintward". */
  readonly where: string;
  region?(): Promise<string>;
  /** True if nobody specified it, and its process does not run: its state may be outdated. */
  readonly isAbandoned?: boolean;
  /** Returns the names of all clusters. The list may be slightly outdated. */
  clusters(): Promise<readonly ClusterName[]>;
  manages(cluster: ClusterName): Promise<boolean>;
  /** Rejects with `FleetError` if there is no access. The caller closes the connection. */
  cluster(name: ClusterName): Promise<LiveCluster>;
  /** Called when nothing of it is in use. */
  close(): void;
}

/** A cluster of a kubeconfig. Only its API server is known. */
export interface ContextFleet extends Clusters {
  readonly kind: 'context';
}

export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

/** All clusters' state: in a deployment's table, an `npm start`'s state directory, or a cluster. */
export interface Fleet extends Clusters {
  readonly kind: 'deployed' | 'local' | 'in-cluster';
  readonly rulesStore: RulesStore;
  readonly store: Store;
  readonly history: History;
  /** The holders of leases, and the evicted pods that relays reported as stuck terminating. */
  readonly leases: Pick<Leases, 'read' | 'stuck'>;
  /** Absent if clusters are selected otherwise, as by `npm start`. */
  readonly registry?: ClusterRegistry;
  /** By its queue. Absent if the fleet has no agents. Rejects with `FleetError`. */
  hasAgent?(agent: string): Promise<boolean>;
  /**
   * Asks `evict` whether it can work in a cluster, registered or not. Absent: no `evict`. Rejects with `FleetError`.
   */
  checkAccess?(question: AccessQuestion['checkAccess']): Promise<AccessAnswer>;
  /** Identity of the service in its own cluster. Absent: it runs as a user or as an AWS identity. */
  readonly serviceAccount?: ServiceAccount;
  /** Absent: a service without queues, whose store contains the failed evictions. */
  readonly deadLetters?: DeadLetterBox;
  /** AWS account of the deployment. Absent: an `npm start` has no account. */
  readonly account?: Account;
  /** Returns the approximate number of messages in each queue. `undefined`: no running process has it. */
  backlog(): Promise<ReadonlyMap<string, number> | undefined>;
  /** `undefined`: no process runs. Rejects with `FleetError` if the process runs but doesn't respond. */
  service(): Promise<ServiceView | undefined>;
  /** A new link to the console; `undefined`: none is served, or no process runs. Absent: no process could serve one. */
  consoleLink?(): Promise<string | undefined>;
  /** Acts are recorded with the identity of this process's user. */
  operator(): Promise<Operator>;
  /** Sends to `evictions-due` and to agents' queues. The group of a message is its cluster. */
  dueQueue(): Promise<QueueSender>;
}

/** Rejects with `FleetError` if there is none. */
export async function clusterNamed(name: string, fleet: Clusters): Promise<ClusterName> {
  const { data } = clusterNameSchema.safeParse(name);
  if (data !== undefined && (await fleet.manages(data))) return data;
  const clusters = await fleet.clusters();
  if (isContext(fleet)) {
    throw new FleetError(
      `Cluster "${name}" not found: with --context alone, only ${clusters.join()} is known. To examine a cluster of a fleet by that context, also specify --table NAME or --state-dir DIR.`,
    );
  }
  const known = clusters.length === 0 ? 'No clusters are managed' : `Specify one of: ${clusters.join(', ')}`;
  throw new FleetError(`Cluster "${name}" not found. ${known}.`);
}

const isContext = (fleet: Clusters | ContextFleet): fleet is ContextFleet =>
  'kind' in fleet && fleet.kind === 'context';

/** The named cluster, or the only one. Rejects with `FleetError` if there are several or none. */
export async function theCluster(name: string | undefined, fleet: Clusters): Promise<ClusterName> {
  if (name !== undefined) return clusterNamed(name, fleet);
  const [only, ...more] = await fleet.clusters();
  if (only === undefined) throw new FleetError(`No clusters are managed by ${fleet.where}.`);
  if (more.length === 0) return only;
  throw new UsageError(`Missing cluster name. Specify one of: ${[only, ...more].join(', ')}.`);
}

/** The named clusters, or all. Rejects with `FleetError` if neither or both are specified. */
export async function clustersNamed(
  names: readonly string[],
  all: boolean,
  fleet: Clusters,
): Promise<readonly ClusterName[]> {
  if (all === names.length > 0) throw new UsageError('Specify either cluster names or --all.');
  return all ? fleet.clusters() : Promise.all(names.map((name) => clusterNamed(name, fleet)));
}

/** The named cluster, or all. Rejects with `FleetError` if there is none of that name. */
export const clusterOrAll = async (
  name: string | undefined,
  fleet: Clusters,
): Promise<readonly ClusterName[]> =>
  name === undefined ? fleet.clusters() : [await clusterNamed(name, fleet)];

/** Rejects with `StoreError` if any cannot be read, because the caller must not miss one. */
export async function storedRulesNow(
  clusters: readonly ClusterName[],
  { rulesStore }: Pick<Fleet, 'rulesStore'>,
): Promise<ReadonlyMap<ClusterName, StoredRules>> {
  const read = async (cluster: ClusterName) => [cluster, await rulesStore.read(cluster)] as const;
  return new Map(await pMap(clusters, read, { concurrency: PARALLEL_READS }));
}

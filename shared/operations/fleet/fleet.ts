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

/** Clusters that are read at a time. */
const PARALLEL_READS = 16;

/** What an operator asks of a fleet cannot be had there; the message is one sentence that says what to do. */
export class FleetError extends Error {
  override readonly name: string = 'FleetError';
}

/** The arguments do not say what is to be done, or to which cluster. */
export class UsageError extends FleetError {
  override readonly name = 'UsageError';
}

/** Clusters whose API servers can be asked, with the rights of whoever asks. */
export interface Clusters {
  /** For people: "table taintward". */
  readonly where: string;
  /** All of them, by name; may lag behind by a moment. */
  clusters(): Promise<readonly ClusterName[]>;
  /** Whether a cluster is one of them, as of now. */
  manages(cluster: ClusterName): Promise<boolean>;
  /** What a cluster's API server says. Rejects with `FleetError` when there is no way to it; the caller closes it. */
  cluster(name: ClusterName): Promise<LiveCluster>;
  /** Ends what it holds open, once nobody uses anything of it any more. */
  close(): void;
}

/** A cluster of a kubeconfig, of which nothing is known but what its API server says. */
export interface ContextFleet extends Clusters {
  readonly kind: 'context';
}

/** Who a service is in its cluster. */
export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

/** What is known of all clusters: in the table of a deployment, in the state directory of an `npm start`, or in the cluster itself. */
export interface Fleet extends Clusters {
  readonly kind: 'deployed' | 'local' | 'in-cluster';
  readonly rulesStore: RulesStore;
  readonly store: Store;
  readonly history: History;
  /** Of it, who speaks for clusters, and what relays said of evicted pods that do not leave. */
  readonly leases: Pick<Leases, 'look' | 'stuck'>;
  /** Absent where clusters are chosen otherwise: at an `npm start`. */
  readonly registry?: ClusterRegistry;
  /** Whether there is an agent of that ID, by its queue; absent where there are none. Rejects with `FleetError`. */
  hasAgent?(agent: string): Promise<boolean>;
  /** Whether the deployed `evict` could work in a cluster that is to be registered; absent where there is none. */
  checkAccess?(cluster: AccessQuestion['checkAccess']): Promise<AccessAnswer>;
  /** Puts all that a restored table holds, but leases, over what is in this one; returns how many items. Absent where there is none. */
  restoreFrom?(table: string): Promise<number>;
  /** As whom the service works in its own cluster; absent: as whoever runs it, or as an identity of AWS. */
  readonly serviceAccount?: ServiceAccount;
  readonly deadLetters: DeadLetterBox;
  /** Where it is deployed; absent: an `npm start` is in no account. */
  readonly account?: Account;
  /** How many messages each queue holds, about; `undefined`: nobody runs who could say it. */
  backlog(): Promise<ReadonlyMap<string, number> | undefined>;
  /** What the one process says of itself that runs this fleet; `undefined`: none does. Rejects with `FleetError` when it lives and does not answer. */
  service(): Promise<ServiceView | undefined>;
  /**
   * A new link to the console that this process serves itself; `undefined`: it serves none, or none runs. Absent where no process
   * could.
   */
  consoleLink?(): Promise<string | undefined>;
  /** For words that are noted as those of who runs this process. */
  operator(): Promise<Operator>;
  /** To `evictions-due`, and to the queues of agents: a message's group is its cluster. */
  dueQueue(): Promise<QueueSender>;
}

/** The cluster of that name. Rejects with `FleetError` when there is none. */
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

/** The cluster that a command names, or the only one. Rejects with `FleetError` when there are several, or none. */
export async function theCluster(name: string | undefined, fleet: Clusters): Promise<ClusterName> {
  if (name !== undefined) return clusterNamed(name, fleet);
  const [only, ...more] = await fleet.clusters();
  if (only === undefined) throw new FleetError(`No clusters are managed by ${fleet.where}.`);
  if (more.length === 0) return only;
  throw new UsageError(`Missing cluster name. Specify one of: ${[only, ...more].join(', ')}.`);
}

/** The clusters that a command names, or all. Rejects with `FleetError` when it does neither or both. */
export async function clustersNamed(
  names: readonly string[],
  all: boolean,
  fleet: Clusters,
): Promise<readonly ClusterName[]> {
  if (all === names.length > 0) throw new UsageError('Specify either cluster names or --all.');
  return all ? fleet.clusters() : Promise.all(names.map((name) => clusterNamed(name, fleet)));
}

/** The cluster that a command may name, or all. Rejects with `FleetError` when there is none of that name. */
export const clusterOrAll = async (
  name: string | undefined,
  fleet: Clusters,
): Promise<readonly ClusterName[]> =>
  name === undefined ? fleet.clusters() : [await clusterNamed(name, fleet)];

/** What governs these clusters now. Rejects with `StoreError` for one that cannot be read: who asks must not miss it. */
export async function storedRulesNow(
  clusters: readonly ClusterName[],
  { rulesStore }: Pick<Fleet, 'rulesStore'>,
): Promise<ReadonlyMap<ClusterName, StoredRules>> {
  const read = async (cluster: ClusterName) => [cluster, await rulesStore.read(cluster)] as const;
  return new Map(await pMap(clusters, read, { concurrency: PARALLEL_READS }));
}

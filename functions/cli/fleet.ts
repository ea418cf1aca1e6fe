import pMap from 'p-map';
import type { Leases } from '#shared/clusters/lease.ts';
import type { Operator } from '#shared/clusters/operator.ts';
import { clusterNameSchema } from '#shared/clusters/registry.ts';
import type { Rulebook, Rulings } from '#shared/clusters/rulebook.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import type { Store } from '#shared/store/store.ts';
import { CliError } from './command.ts';

/** Clusters that are read at a time. */
const PARALLEL_READS = 16;

/** What is known of all clusters: in the table of a deployment, or in the state directory of an `npm start`. */
export interface Fleet {
  readonly rulebook: Rulebook;
  readonly store: Store;
  /** Of it, what relays said of evicted pods that do not leave. */
  readonly leases: Pick<Leases, 'stuck'>;
  /** Those that are managed, by name; may lag behind by a moment. */
  clusters(): Promise<readonly ClusterName[]>;
  /** Whether a cluster is one of them, as of now. */
  manages(cluster: ClusterName): Promise<boolean>;
  /** For words that are noted as those of who runs this process. */
  operator(): Promise<Operator>;
  /** To `evictions-due`. */
  dueQueue(): Promise<QueueSender>;
}

/** Where a fleet is: `state`, a directory, goes before `table`. */
export interface FleetOptions {
  readonly table: string;
  readonly state?: string;
}

/** The cluster of that name. Rejects with `CliError` when there is none. */
export async function clusterNamed(name: string, fleet: Fleet): Promise<ClusterName> {
  const { data } = clusterNameSchema.safeParse(name);
  if (data !== undefined && (await fleet.manages(data))) return data;
  const clusters = await fleet.clusters();
  const known = clusters.length === 0 ? 'none is managed here' : `there are ${clusters.join(', ')}`;
  throw new CliError(`There is no cluster ${name}: ${known}.`);
}

/** The clusters that a command names, or all. Rejects with `CliError` when it does neither or both. */
export async function clustersNamed(
  names: readonly string[],
  all: boolean,
  fleet: Fleet,
): Promise<readonly ClusterName[]> {
  if (all === names.length > 0) throw new CliError('Name clusters, or say --all for all of them.');
  return all ? fleet.clusters() : Promise.all(names.map((name) => clusterNamed(name, fleet)));
}

/** The cluster that a command may name, or all. Rejects with `CliError` when there is none of that name. */
export const clusterOrAll = async (
  name: string | undefined,
  fleet: Fleet,
): Promise<readonly ClusterName[]> =>
  name === undefined ? fleet.clusters() : [await clusterNamed(name, fleet)];

/** What governs these clusters now. Rejects with `StoreError` for one that cannot be read: who asks must not miss it. */
export async function rulingsNow(
  clusters: readonly ClusterName[],
  { rulebook }: Fleet,
): Promise<ReadonlyMap<ClusterName, Rulings>> {
  const read = async (cluster: ClusterName) => [cluster, await rulebook.read(cluster)] as const;
  return new Map(await pMap(clusters, read, { concurrency: PARALLEL_READS }));
}

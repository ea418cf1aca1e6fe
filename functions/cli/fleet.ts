import type { Operator } from '#shared/clusters/operator.ts';
import { clusterNameSchema } from '#shared/clusters/registry.ts';
import type { Rulebook } from '#shared/clusters/rulebook.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Store } from '#shared/store/store.ts';
import { CliError } from './command.ts';

/** What is known of all clusters: in the table of a deployment, or in the state directory of an `npm start`. */
export interface Fleet {
  readonly rulebook: Rulebook;
  readonly store: Store;
  /** Those that are managed, by name. */
  clusters(): Promise<readonly ClusterName[]>;
  /** For words that are noted as those of who runs this process. */
  operator(): Promise<Operator>;
}

/** Where a fleet is: `state`, a directory, goes before `table`. */
export interface FleetOptions {
  readonly table: string;
  readonly state?: string;
}

/** The cluster of that name. Throws `CliError` when there is none. */
export function clusterNamed(name: string, clusters: readonly ClusterName[]): ClusterName {
  const { data } = clusterNameSchema.safeParse(name);
  if (data !== undefined && clusters.includes(data)) return data;
  const known = clusters.length === 0 ? 'none is managed here' : `there are ${clusters.join(', ')}`;
  throw new CliError(`There is no cluster ${name}: ${known}.`);
}

/** The clusters that a command names, or all. Throws `CliError` when it does neither or both. */
export function clustersNamed(
  names: readonly string[],
  all: boolean,
  clusters: readonly ClusterName[],
): readonly ClusterName[] {
  if (all === names.length > 0) throw new CliError('Name clusters, or say --all for all of them.');
  return all ? clusters : names.map((name) => clusterNamed(name, clusters));
}

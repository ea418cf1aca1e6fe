import type { ClusterName } from '#shared/eviction/identity.ts';
import type { History, HistoryQuery } from '#shared/state/history.ts';
import type { RulesStore } from '#shared/state/rules-store.ts';
import { type AuditOutput, auditOutput, type EntryOutput, entryOutput } from './output-records.ts';

/** Something that happened to one pod's eviction; or to all of a cluster, or of all clusters: what the audit holds. */
export type Happening =
  | { readonly of: 'pod'; readonly entry: EntryOutput }
  | { readonly of: 'cluster'; readonly entry: AuditOutput };

/** Where that stands. */
export interface Memory {
  readonly history: Pick<History, 'entries'>;
  readonly rulesStore: Pick<RulesStore, 'audit'>;
}

/**
 * What happened in these clusters, the oldest first: to pods, and between that to their clusters. Who asks for a node, a namespace or
 * a pod is told of pods alone. Rejects with `StoreError`.
 */
export async function happened(
  { history, rulesStore }: Memory,
  clusters: readonly ClusterName[],
  about: Omit<HistoryQuery, 'cluster'>,
  /** Called before each cluster is read. */
  reading: (cluster: ClusterName, index: number) => void = () => undefined,
): Promise<readonly Happening[]> {
  const { node, namespace, pod, from, to } = about;
  const found: Happening[] = [];
  for (const [index, cluster] of clusters.entries()) {
    reading(cluster, index);
    for await (const entry of history.entries({ cluster, ...about }))
      found.push({ of: 'pod', entry: entryOutput(entry) });
  }
  if (node === undefined && namespace === undefined && pod === undefined) {
    const [only, ...more] = clusters;
    const which = only !== undefined && more.length === 0 ? { cluster: only } : {};
    for (const entry of await rulesStore.audit({ ...which, from, to: to + 1 })) {
      if (entry.cluster === undefined || clusters.includes(entry.cluster))
        found.push({ of: 'cluster', entry: auditOutput(entry) });
    }
  }
  // Those of one moment in the order in which they happened, what changed the rules before what came of that.
  return found.reverse().sort((a, b) => a.entry.at - b.entry.at);
}

import type { ClusterName } from '#shared/eviction/identity.ts';
import type { History, HistoryEntry, HistoryQuery } from '#shared/state/history.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Fleet } from '../fleet/fleet.ts';

/** An event of one pod's eviction, or an entry of the audit log about one or all clusters. */
export type Happening =
  | { readonly of: 'pod'; readonly entry: HistoryEntry }
  | { readonly of: 'cluster'; readonly entry: AuditEntry };

/**
 * Events of pods and audit entries, oldest first. Queries for a node, namespace, or pod return only events of pods.
 * Rejects with `StoreError`.
 */
export async function happened(
  { history, rulesStore }: Pick<Fleet, 'history' | 'rulesStore'>,
  clusters: readonly ClusterName[],
  about: Omit<HistoryQuery, 'cluster'>,
  /** Called before each cluster is read. */
  reading: (cluster: ClusterName, index: number) => void,
): Promise<readonly Happening[]> {
  const { node, namespace, pod, from, to } = about;
  const found: Happening[] = [];
  for (const [index, cluster] of clusters.entries()) {
    reading(cluster, index);
    for await (const entry of history.entries({ cluster, ...about })) found.push({ of: 'pod', entry });
  }
  if (node === undefined && namespace === undefined && pod === undefined) {
    const [only, ...more] = clusters;
    const which = only !== undefined && more.length === 0 ? { cluster: only } : {};
    for (const entry of await rulesStore.audit({ ...which, from, to: to + 1 })) {
      if (entry.cluster === undefined || clusters.includes(entry.cluster))
        found.push({ of: 'cluster', entry });
    }
  }
  // Events of the same time keep their order, and changes of the rules precede their effects.
  return found.reverse().sort((a, b) => a.entry.at - b.entry.at);
}

const MAX_ENTRIES = 50;

/** Allows for clock skew between machines. */
const AHEAD_MS = 60_000;

/** Returns the newest entries of the whole history, oldest first. Rejects with `StoreError`. */
export async function recentHistory(
  history: History,
  about: Omit<HistoryQuery, 'from' | 'to'>,
  now: EpochMs,
): Promise<readonly HistoryEntry[]> {
  const found: HistoryEntry[] = [];
  const query = { ...about, from: 0, to: now + AHEAD_MS };
  for await (const entry of history.entries(query)) {
    found.push(entry);
    if (found.length === MAX_ENTRIES) break;
  }
  return found.reverse();
}

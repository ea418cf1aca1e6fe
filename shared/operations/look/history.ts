import type { ClusterName } from '#shared/eviction/identity.ts';
import type { History, HistoryEntry, HistoryQuery } from '#shared/state/history.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { taintText } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Fleet } from '../fleet/fleet.ts';

/** An event of one pod's eviction, or an entry of the audit log about one or all clusters. */
export type Happening =
  | { readonly of: 'pod'; readonly entry: HistoryEntry }
  | { readonly of: 'cluster'; readonly entry: AuditEntry };

/** A taint that nodes of a cluster got within the same minute, and that caused evictions. */
export interface Tainted {
  readonly of: 'taint';
  readonly entry: {
    readonly at: EpochMs;
    readonly cluster: ClusterName;
    readonly taint: string;
    readonly nodes: number;
  };
}

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
  const found: HistoryEntry[] = [];
  for (const [index, cluster] of clusters.entries()) {
    reading(cluster, index);
    for await (const entry of history.entries({ cluster, ...about })) found.push(entry);
  }
  return merged(found, await actsOn(rulesStore, clusters, about));
}

/** Returns the audit entries about these clusters, the newest first; none about a node, a namespace, or a pod. */
export async function actsOn(
  rulesStore: Fleet['rulesStore'],
  clusters: readonly ClusterName[],
  { node, namespace, pod, from, to }: Omit<HistoryQuery, 'cluster'>,
): Promise<readonly AuditEntry[]> {
  if (node !== undefined || namespace !== undefined || pod !== undefined) return [];
  const [only, ...more] = clusters;
  const which = only !== undefined && more.length === 0 ? { cluster: only } : {};
  const found = await rulesStore.audit({ ...which, from, to: to + 1 });
  return found.filter(({ cluster }) => cluster === undefined || clusters.includes(cluster));
}

/** Merges events of pods and audit entries, each the newest first, into one order, the oldest first. */
export function merged(pods: readonly HistoryEntry[], acts: readonly AuditEntry[]): readonly Happening[] {
  const found: readonly Happening[] = [
    ...pods.map((entry) => ({ of: 'pod', entry }) as const),
    ...acts.map((entry) => ({ of: 'cluster', entry }) as const),
  ];
  // Events of the same time keep their order, and changes of the rules precede their effects.
  return found.toReversed().sort((a, b) => a.entry.at - b.entry.at);
}

const MINUTE_MS = 60_000;

/** Returns the taints that caused events of pods. */
export function taintsOf(pods: readonly HistoryEntry[]): readonly Tainted[] {
  const causes = pods.flatMap(({ cluster, node, causes: ofPod }) =>
    ofPod.map(({ taint, since: at }) => ({ cluster, node, taint: taintText(taint), at })),
  );
  const groups = Map.groupBy(causes, ({ cluster, taint, at }) =>
    [cluster, taint, Math.floor(at / MINUTE_MS)].join(),
  );
  return [...groups.values()].flatMap((group) => {
    const [first, ...others] = group.sort((a, b) => a.at - b.at);
    if (!first) return [];
    const { node, ...entry } = first;
    const nodes = new Set([node, ...others.map((each) => each.node)]).size;
    return { of: 'taint', entry: { ...entry, nodes } };
  });
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

import { type ClusterName, type NodeName, nodeKey } from '#shared/eviction/identity.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import {
  entriesOf,
  type GonePod,
  type History,
  type HistoryEntry,
  type HistoryItem,
  type HistoryQuery,
  nodesWithEvictions,
  type RecentEvictions,
} from '#shared/state/history.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { GonePods } from './gone-pods.ts';
import type { KubernetesStore } from './kubernetes-store.ts';
import { distinct, historyOf, type KeptNode, labelsOf } from './node-eviction.ts';

export interface KubernetesHistoryOptions {
  readonly store: Pick<KubernetesStore, 'all' | 'allOf'>;
  /** The ConfigMaps of Taintward's namespace. */
  readonly configMaps: Objects;
}

/** The history in the nodes' objects, as much as they can hold. A busy node's history covers less than its days. */
export class KubernetesHistory implements History, RecentEvictions {
  readonly #store: Pick<KubernetesStore, 'all' | 'allOf'>;
  readonly #configMaps: Objects;

  constructor({ store, configMaps }: KubernetesHistoryOptions) {
    this.#store = store;
    this.#configMaps = configMaps;
  }

  async *entries(query: HistoryQuery): AsyncIterable<HistoryEntry> {
    const kept = await this.#kept(query.cluster, query.node);
    const scheduled = kept.flatMap(({ ref, scheduled: records }) =>
      records.map((record) => ({ ref, record })),
    );
    const gone = (await this.#gone(query.cluster).list()).filter(({ at }) => at >= query.from);
    yield* entriesOf(
      { scheduled: each(scheduled), items: each(itemsOf(kept, query.from)), gone: each(gone) },
      query,
    );
  }

  async noteGone(cluster: ClusterName, pods: readonly GonePod[]): Promise<void> {
    await this.#gone(cluster).add(pods);
  }

  async nodesEvictedFrom(cluster: ClusterName, from: EpochMs): Promise<ReadonlySet<NodeName>> {
    return nodesWithEvictions(each(itemsOf(await this.#kept(cluster), from)));
  }

  async #kept(cluster: ClusterName, node?: NodeName): Promise<readonly KeptNode[]> {
    if (node !== undefined) return this.#store.allOf({ cluster, node });
    const kept = await Array.fromAsync(this.#store.all(labelsOf(cluster)));
    return kept.filter(({ ref }) => ref.cluster === cluster);
  }

  #gone(cluster: ClusterName): GonePods {
    return new GonePods(this.#configMaps, cluster);
  }
}

/**
 * Returns the history since `from`, the newest first. Tombstones in objects beside a node's own are not part of it.
 * Data is written twice if a process is killed between two writes, but is returned once.
 */
const itemsOf = (kept: readonly KeptNode[], from: EpochMs): readonly HistoryItem[] =>
  [...Map.groupBy(kept, ({ ref }) => nodeKey(ref)).values()]
    .flatMap(([first, ...others]) =>
      first
        ? distinct([first, ...others].flatMap(historyOf)).map((moment) => ({ ref: first.ref, ...moment }))
        : [],
    )
    .filter(({ at }) => at >= from)
    .sort((a, b) => b.at - a.at);

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}

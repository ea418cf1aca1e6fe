import * as z from 'zod';
import { type ClusterName, type NodeName, nodeKey, podUid } from '#shared/eviction/identity.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import {
  entriesOf,
  type GonePod,
  type History,
  type HistoryItem,
  nodesWithEvictions,
} from '#shared/state/history.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { KubernetesStore } from './kubernetes-store.ts';
import { clusterKey, distinct, historyOf, type KeptNode, labelsOf } from './node-eviction.ts';
import { PackedList, pack } from './packed.ts';

/** Maximum of remembered pods that were removed. 5,000 take some 200 kB, and a ConfigMap holds 1 MiB. */
export const MAX_GONE = 5_000;

const goneSchema = z.array(z.object({ uid: z.string().transform(podUid), at: z.int() }));

/** In a ConfigMap, because the relay that records removals does not know the pods' nodes. */
export const gonePods = (configMaps: Objects, cluster: ClusterName): PackedList<GonePod> =>
  new PackedList({
    objects: configMaps,
    schema: goneSchema,
    name: `taintward-gone-${clusterKey(cluster)}`,
    key: 'pods',
  });

/** The history in the nodes' objects, as much as they can hold. A busy node's history covers less than its days. */
export function kubernetesHistory(
  store: Pick<KubernetesStore, 'all' | 'allOf'>,
  configMaps: Objects,
): History {
  const keptIn = async (cluster: ClusterName, node?: NodeName): Promise<readonly KeptNode[]> => {
    if (node !== undefined) return store.allOf({ cluster, node });
    const kept = await Array.fromAsync(store.all(labelsOf(cluster)));
    return kept.filter(({ ref }) => ref.cluster === cluster);
  };
  return {
    async *entries(query) {
      const kept = await keptIn(query.cluster, query.node);
      const scheduled = kept.flatMap(({ ref, scheduled: all }) => all.map((record) => ({ ref, record })));
      const gone = (await gonePods(configMaps, query.cluster).read()).filter(({ at }) => at >= query.from);
      yield* entriesOf({ scheduled, items: itemsOf(kept, query.from), gone }, query);
    },

    async noteGone(cluster, pods) {
      if (pods.length === 0) return;
      await gonePods(configMaps, cluster).change((known) => pack([...known, ...pods].slice(-MAX_GONE)));
    },

    async nodesEvictedFrom(cluster, from) {
      return nodesWithEvictions(itemsOf(await keptIn(cluster), from));
    },
  };
}

/** History since `from`, the newest first. Writes interrupted between two objects are returned once. */
const itemsOf = (kept: readonly KeptNode[], from: EpochMs): readonly HistoryItem[] =>
  [...Map.groupBy(kept, ({ ref }) => nodeKey(ref)).values()]
    .flatMap(([first, ...others]) =>
      first
        ? distinct([first, ...others].flatMap(historyOf)).map((moment) => ({ ref: first.ref, ...moment }))
        : [],
    )
    .filter(({ at }) => at >= from)
    .sort((a, b) => b.at - a.at);

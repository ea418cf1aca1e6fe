import { defined } from '#shared/defined.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { actsOn, merged, taintsOf } from '#shared/operations/look/history.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { HistoryPage, HistoryQuestion } from './api.ts';

const DAY_MS = 24 * 3_600_000;

/** Events of pods, the newest first, between the taints that caused them and the acts of operators. */
export async function historyPage(
  fleet: Pick<Fleet, 'history' | 'rulesStore' | 'clusters'>,
  { cluster, event, from, to, limit, ...about }: HistoryQuestion,
  now: EpochMs,
): Promise<HistoryPage> {
  const query = { ...defined(about), from: from ?? now - DAY_MS, to: to ?? now };
  const clusters = cluster === undefined ? await fleet.clusters() : [cluster];
  const found: HistoryEntry[] = [];
  for (const name of clusters) {
    let taken = 0;
    for await (const entry of fleet.history.entries({ cluster: name, ...query })) {
      if (event !== undefined && entry.event !== event) continue;
      found.push(entry);
      // One entry beyond the limit shows that there are more.
      if (++taken > limit) break;
    }
  }
  // Entries of the same time keep the order in which they were recorded.
  if (clusters.length > 1) found.sort((a, b) => b.at - a.at);
  const [pods, more] = [found.slice(0, limit), found.length > limit];
  if (event !== undefined) return { entries: pods.map((entry) => ({ of: 'pod', entry })), more };
  // Acts before the oldest shown event would have a gap after them.
  const since = (more && pods.at(-1)?.at) || query.from;
  const acts = await actsOn(fleet.rulesStore, clusters, { ...query, from: since });
  const all = [...taintsOf(pods), ...merged(pods, acts)].toReversed();
  return { entries: all.sort((a, b) => b.entry.at - a.entry.at), more };
}

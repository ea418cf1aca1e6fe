import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { drainsOnRelease } from '#shared/eviction/records.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import { countsOf, nextOf } from '#shared/operations/look/pending-state.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { NodeRow, PendingPage, PendingQuery, StuckRow, Timeline, TimelineKind } from './api.ts';
import type { Seen } from './fleet-view.ts';

const MINUTE_MS = 60_000;
const MINUTES = 60;

/** Earliest deadline first. */
export function pendingPage({ version, at, pending }: Seen, query: PendingQuery): PendingPage {
  const rows = pending
    .map(({ row }) => row)
    .filter(
      ([, cluster, , , , , state]) =>
        (query.cluster ?? cluster) === cluster && (query.state ?? state) === state,
    );
  return { version, at, total: rows.length, rows: rows.slice(0, query.limit) };
}

export function timelineOf({ at, clusters, pending }: Seen, only: ClusterName | undefined): Timeline {
  const policies = new Map(
    clusters.map(({ cluster, storedRules }) => [cluster, storedRules?.orders.policy?.read ?? DEFAULT_POLICY]),
  );
  const from = at - (at % MINUTE_MS);
  const minutes = Array.from(
    { length: MINUTES },
    (): Record<TimelineKind, number> => ({ evict: 0, held: 0, observed: 0 }),
  );
  let later = 0;
  const freeAt = new Map<ClusterName, EpochMs>();
  for (const { cluster, state, record, gates } of pending) {
    if ((only ?? cluster) !== cluster || record.gaveUpAt !== undefined) continue;
    const [gate] = gates;
    // A held pod is shown when it is due, not when its hold ends.
    const own = gate ? record.dueAt : (momentOf(record, state) ?? record.dueAt);
    const { mode, evictionRate, releaseRate } = policies.get(cluster) ?? DEFAULT_POLICY;
    const rate = drainsOnRelease(record) ? Math.min(releaseRate, evictionRate ?? releaseRate) : evictionRate;
    const moment = gate || rate === undefined ? own : Math.max(own, at, freeAt.get(cluster) ?? 0);
    // The next turn that a pod has is not its eviction: all pods before it have theirs first.
    if (!gate && rate !== undefined) freeAt.set(cluster, moment + 1000 / rate);
    const minute = minutes[Math.floor((Math.max(moment, at) - from) / MINUTE_MS)];
    if (!minute) later++;
    else if (gate && gate.kind !== 'observe') minute.held++;
    else minute[mode === 'observe' ? 'observed' : 'evict']++;
  }
  return { at, from, minutes, later };
}

export function nodesOf(seen: Seen, only: ClusterName | undefined): readonly NodeRow[] {
  const pending = Map.groupBy(seen.pending, ({ cluster, node }) => `${cluster}#${node}`);
  return seen.clusters
    .filter(({ cluster }) => (only ?? cluster) === cluster)
    .flatMap(({ cluster, tainted = [] }) =>
      tainted.map(({ node, state: { taints, deletedAt, outage, retry = outage } }) => {
        const rows = pending.get(`${cluster}#${node}`) ?? [];
        return {
          cluster,
          node,
          taints,
          pending: rows.length,
          held: countsOf(rows, seen.at).held,
          ...defined({ nextAt: nextOf(rows, seen.at), deletedAt }),
          ...(retry ? { retry: { error: retry.error, nextTryAt: retry.nextTryAt } } : {}),
        };
      }),
    );
}

export const stuckOf = ({ clusters }: Seen, only: ClusterName | undefined): readonly StuckRow[] =>
  clusters
    .filter(({ cluster }) => (only ?? cluster) === cluster)
    .flatMap(({ cluster, stuck = [] }) => stuck.map((pod) => ({ cluster, ...pod })));

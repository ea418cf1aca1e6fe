import { hearingOf, latenessOf, needsOf } from '#functions/operator/needs.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { isOn, modeOf } from '#shared/eviction/in-force.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import {
  type ClusterStatus,
  type FleetStatus,
  type NodeRow,
  type PendingPage,
  type PendingQuery,
  type PendingRow,
  type PendingStanding,
  STANDINGS,
  type StuckRow,
  type Timeline,
  type TimelineKind,
} from './api.ts';
import type { ClusterSeen, PendingSeen, Seen } from './fleet-view.ts';
import { brakeThen } from './standing.ts';

const MINUTE_MS = 60_000;
const MINUTES = 60;

/** How the fleet does, and what of it needs somebody. */
export function statusOf(seen: Seen): FleetStatus {
  const pending = Map.groupBy(seen.pending, ({ cluster }) => cluster);
  const clusters = seen.clusters.map((each) => clusterStatus(each, pending.get(each.cluster) ?? [], seen.at));
  const { at, fleetStop } = seen;
  const stopped = fleetStop && isOn(fleetStop.until, at) ? { stop: fleetStop } : {};
  const facts = clusters.map((each) => ({ ...each, gaveUp: each.standings['gave-up'] }));
  return {
    at,
    needs: needsOf({ at, clusters: facts, ...stopped }),
    ...(stopped.stop ? { fleetStop: stopped.stop } : {}),
    clusters,
  };
}

function clusterStatus(seen: ClusterSeen, pending: readonly PendingSeen[], at: EpochMs): ClusterStatus {
  const { cluster, error, rulings, rules, lease, service, builtIn, tainted, stuck } = seen;
  const heardAt = service?.heardAt ?? lease?.heardAt;
  const breakerOpen = service?.breakerOpen ?? lease?.breakerOpen;
  const policy = rules?.policy ?? DEFAULT_POLICY;
  const { pausedUntil } = policy;
  const standings = Object.fromEntries(STANDINGS.map((each) => [each, 0])) as Record<PendingStanding, number>;
  for (const { row } of pending) standings[row[6]]++;
  const next = Math.min(...pending.map(({ record }) => record.fireAt).filter((fireAt) => fireAt > at));
  const { stop, holds = [] } = rulings?.orders ?? {};
  return {
    cluster,
    ...(error === undefined ? {} : { error }),
    mode: modeOf(policy, at),
    ...(pausedUntil !== undefined && isOn(pausedUntil, at) ? { pausedUntil } : {}),
    policyRevision: rules?.policyRevision ?? 0,
    ...(stop && isOn(stop.until, at) ? { stop } : {}),
    holds: holds.filter(({ until }) => isOn(until, at)),
    trips: rules?.trips ?? [],
    builtIn,
    ...(service ? { service } : {}),
    ...(lease?.holder === undefined ? {} : { holder: lease.holder }),
    ...(heardAt === undefined ? {} : { heardAt }),
    ...(breakerOpen === undefined ? {} : { breakerOpen }),
    hearing: hearingOf(heardAt, at),
    ...(lease?.nodes === undefined ? {} : { nodes: lease.nodes }),
    tainted: tainted.length,
    pending: pending.length,
    standings,
    stuck: stuck.length,
    lateMs: latenessOf(pending, at),
    ...(next === Infinity ? {} : { nextAt: next }),
  };
}

/** A page of what is pending. */
export function pendingPage(seen: Seen, query: PendingQuery): PendingPage {
  const { offset, limit, sort, order } = query;
  const rows = seen.pending.map(({ row }) => row).filter((row) => isAsked(row, query));
  // They are in the order of their moments already.
  if (sort !== 'due') rows.sort((a, b) => compare(a[SORTED_BY[sort]], b[SORTED_BY[sort]]));
  if (order === 'down') rows.reverse();
  const { version, at } = seen;
  return { version, at, total: rows.length, rows: rows.slice(offset, offset + limit) };
}

const SORTED_BY = { cluster: 1, node: 2, pod: 4, standing: 6 } as const;

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function isAsked(row: PendingRow, { cluster, node, namespace, standing, search }: PendingQuery): boolean {
  const [, ofCluster, onNode, inNamespace, pod, , stands] = row;
  return (
    (cluster ?? ofCluster) === ofCluster &&
    (node ?? onNode) === onNode &&
    (namespace ?? inNamespace) === inNamespace &&
    (standing ?? stands) === stands &&
    (!search || [pod, onNode, inNamespace].some((name) => name.includes(search)))
  );
}

/** What goes in the next hour, as rules are now. */
export function timelineOf({ at, clusters, pending }: Seen, only: ClusterName | undefined): Timeline {
  const rules = new Map(clusters.map((each) => [each.cluster, each.rules]));
  const from = at - (at % MINUTE_MS);
  const minutes = Array.from(
    { length: MINUTES },
    (): Record<TimelineKind, number> => ({ goes: 0, held: 0, observed: 0 }),
  );
  let [held, later] = [0, 0];
  for (const { cluster, node, state, record } of pending) {
    if ((only ?? cluster) !== cluster) continue;
    const moment = momentOf(record, state);
    const ruled = rules.get(cluster);
    if (record.held || moment === undefined || !ruled) {
      held++;
      continue;
    }
    const minute = minutes[Math.floor((Math.max(moment, at) - from) / MINUTE_MS)];
    if (!minute) later++;
    else minute[kindOf(brakeThen(record, node, ruled, Math.max(moment, at))?.kind)]++;
  }
  return { at, from, minutes, held, later };
}

const kindOf = (brake: string | undefined): TimelineKind =>
  brake === undefined ? 'goes' : brake === 'observe' ? 'observed' : 'held';

/** The tainted nodes, and what is pending on them. */
export function nodesOf(seen: Seen, only: ClusterName | undefined): readonly NodeRow[] {
  const pending = Map.groupBy(seen.pending, ({ cluster, node }) => `${cluster}#${node}`);
  return seen.clusters
    .filter(({ cluster }) => (only ?? cluster) === cluster)
    .flatMap(({ cluster, tainted }) =>
      tainted.map(({ node, state: { taints, deletedAt, retry } }) => {
        const rows = pending.get(`${cluster}#${node}`) ?? [];
        const next = Math.min(
          ...rows.map(({ record }) => record.fireAt).filter((fireAt) => fireAt > seen.at),
        );
        return {
          cluster,
          node,
          taints,
          pending: rows.length,
          held: rows.filter(({ record }) => record.held).length,
          ...(next === Infinity ? {} : { nextAt: next }),
          ...(deletedAt === undefined ? {} : { deletedAt }),
          ...(retry ? { retry: { error: retry.error, nextTryAt: retry.nextTryAt } } : {}),
        };
      }),
    );
}

/** Evicted pods that do not leave. */
export const stuckOf = ({ clusters }: Seen, only: ClusterName | undefined): readonly StuckRow[] =>
  clusters
    .filter(({ cluster }) => (only ?? cluster) === cluster)
    .flatMap(({ cluster, stuck }) => stuck.map((pod) => ({ cluster, ...pod })));

import { tripText } from '#shared/eviction/guard.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import { durationText } from '#shared/time/duration.ts';
import {
  type ClusterStatus,
  type FleetStatus,
  type Need,
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

/** A relay says what it hears every few seconds: who was not heard of for so long is not heard. */
const DEAF_MS = 60_000;
/** What is due for longer and held by nothing is late. */
const LATE_MS = 60_000;
const MINUTE_MS = 60_000;
const MINUTES = 60;

/** How the fleet does, and what of it needs somebody. */
export function statusOf(seen: Seen): FleetStatus {
  const pending = Map.groupBy(seen.pending, ({ cluster }) => cluster);
  const clusters = seen.clusters.map((each) => clusterStatus(each, pending.get(each.cluster) ?? [], seen.at));
  const { at, fleetStop } = seen;
  return {
    at,
    needs: [
      ...clusters.flatMap((each) => needsOf(each, at)),
      ...(fleetStop
        ? [
            {
              kind: 'stopped' as const,
              since: fleetStop.at,
              text: `All clusters are stopped by ${fleetStop.who}: ${fleetStop.why}.`,
            },
          ]
        : []),
    ].sort((a, b) => URGENCY.indexOf(a.kind) - URGENCY.indexOf(b.kind)),
    ...(fleetStop ? { fleetStop } : {}),
    clusters,
  };
}

/** The most urgent first. */
const URGENCY: readonly Need['kind'][] = [
  'unreadable',
  'guard-tripped',
  'deaf',
  'late',
  'given-up',
  'stuck',
  'stopped',
];

function clusterStatus(seen: ClusterSeen, pending: readonly PendingSeen[], at: EpochMs): ClusterStatus {
  const { cluster, error, rulings, rules, lease, builtIn, tainted, stuck } = seen;
  const policy = rules?.policy ?? DEFAULT_POLICY;
  const standings = Object.fromEntries(STANDINGS.map((each) => [each, 0])) as Record<PendingStanding, number>;
  for (const { row } of pending) standings[row[6]]++;
  const moments = pending
    .map(({ record }) => momentOf(record, undefined))
    .filter((each) => each !== undefined);
  const next = Math.min(...pending.map(({ record }) => record.fireAt).filter((fireAt) => fireAt > at));
  const { stop, holds = [] } = rulings?.orders ?? {};
  return {
    cluster,
    ...(error === undefined ? {} : { error }),
    mode: policy.mode === 'paused' && at >= (policy.pausedUntil ?? Infinity) ? 'enforce' : policy.mode,
    ...(policy.pausedUntil === undefined ? {} : { pausedUntil: policy.pausedUntil }),
    policyRevision: rules?.policyRevision ?? 0,
    ...(stop && at < (stop.until ?? Infinity) ? { stop } : {}),
    holds: holds.filter(({ until = Infinity }) => at < until),
    trips: rules?.trips ?? [],
    builtIn,
    ...(lease?.heardAt === undefined ? {} : { heardAt: lease.heardAt }),
    hearing: lease?.heardAt === undefined ? 'never' : at - lease.heardAt < DEAF_MS ? 'live' : 'deaf',
    ...(lease?.nodes === undefined ? {} : { nodes: lease.nodes }),
    tainted: tainted.length,
    pending: pending.length,
    standings,
    stuck: stuck.length,
    lateMs: at - moments.reduce((least, moment) => Math.min(least, moment), at),
    ...(next === Infinity ? {} : { nextAt: next }),
  };
}

function needsOf(status: ClusterStatus, at: EpochMs): readonly Need[] {
  const { cluster, error, trips, heardAt, hearing, stuck, standings, stop, lateMs } = status;
  const need = (kind: Need['kind'], text: string, since?: EpochMs): Need => ({
    kind,
    cluster,
    ...(since === undefined ? {} : { since }),
    text,
  });
  const needs: Need[] = trips.map((trip) =>
    need('guard-tripped', `The guard holds evictions: ${tripText(trip)}.`, trip.trippedAt),
  );
  if (error !== undefined) needs.push(need('unreadable', error));
  if (hearing === 'deaf') {
    const text = 'No relay has heard from its API server lately: what changes there is not noticed.';
    needs.push(need('deaf', text, heardAt));
  }
  if (lateMs >= LATE_MS) {
    needs.push(need('late', `An eviction is late by ${durationText(lateMs)}.`, at - lateMs));
  }
  const givenUp = standings['gave-up'];
  if (givenUp > 0) {
    needs.push(
      need(
        'given-up',
        `${givenUp === 1 ? 'An eviction was' : `${givenUp} evictions were`} given up: look why, and retry.`,
      ),
    );
  }
  if (stuck > 0) {
    needs.push(
      need('stuck', `${stuck === 1 ? 'An evicted pod does' : `${stuck} evicted pods do`} not leave.`),
    );
  }
  if (stop) needs.push(need('stopped', `Stopped by ${stop.who}: ${stop.why}.`, stop.at));
  return needs;
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

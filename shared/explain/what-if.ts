import { defined } from '#shared/defined.ts';
import type { ClusterGate, EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { clusterGate } from '#shared/eviction/gate.ts';
import { type GuardCounts, reportOf, reviewGuard, type TripReport } from '#shared/eviction/guard.ts';
import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { ReleasedTrip, Rules } from '#shared/eviction/policy.ts';
import type { Partition } from '#shared/eviction/records.ts';
import type { LiveTaint, Taint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Budget, budgetsOf } from './budgets.ts';
import { type Forecast, type ForecastPod, forecastPod } from './forecast.ts';
import { failsJob, type Job, type JobOutcome, jobOutcome } from './job.ts';
import { type Workload, workloadText } from './workload.ts';

/** Pods that are evicted within this time count as evicted together: a replacement is hardly ready sooner. */
export const TOGETHER_MS = 60_000;

export interface NodeToTaint {
  readonly zone?: string;
  /** Taints of all effects. */
  readonly taints: readonly LiveTaint[];
  readonly partition: Partition;
}

export interface PodThere extends ForecastPod {
  readonly node: NodeName;
  /** The pod counts as ready for its workload and for its budgets. */
  readonly ready: boolean;
  /** The pod has succeeded or failed, so its eviction breaks nothing. Absent: no. */
  readonly finished?: true;
  /** Earlier failures of the pod's index in its Job. */
  readonly indexFailures: number;
}

export interface Situation {
  readonly now: EpochMs;
  readonly taint: Taint;
  readonly nodes: readonly NodeToTaint[];
  readonly pods: readonly PodThere[];
  readonly rules: Rules;
  /** Counts of the whole cluster, with the taint on these nodes. */
  readonly counts: GuardCounts;
  readonly released: readonly ReleasedTrip[];
}

/** Number of pods that a workload wants, and that are ready in the whole cluster. */
export interface Replicas {
  readonly desired: number;
  readonly ready: number;
}

/** The Eviction API's response about one pod, as if the pod were evicted alone. */
export type Answer =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'blocked'; readonly reason: string }
  /** The API could not be called. */
  | { readonly kind: 'unknown'; readonly why: string };

export interface Findings {
  /** Workloads by the pods' UIDs; a pod that is missing is its own workload. */
  readonly workloads: ReadonlyMap<PodUid, Workload>;
  /** Replicas by {@link workloadText}; those of a missing workload are unknown. */
  readonly replicas: ReadonlyMap<string, Replicas>;
  /** Jobs by {@link workloadText}; those that are missing can't be read. */
  readonly jobs: ReadonlyMap<string, Job>;
  readonly budgets: ReadonlyMap<string, readonly Budget[]>;
  /** Responses about the pods for which the API was called. */
  readonly answers: ReadonlyMap<PodUid, Answer>;
}

/** Why pods would not be evicted, in one word; `hold`: the hold's ID. */
export interface Stay {
  readonly cause:
    | 'hold'
    | 'excluded'
    | 'node-alive'
    | 'recreated'
    | 'tolerated'
    | 'untainted'
    | 'terminating'
    | 'failed'
    | 'unknown';
  readonly hold?: string;
}

export interface WorkloadForecast extends Workload {
  readonly pods: number;
  readonly now: number;
  /** Number of pods that are evicted later, and the first and last time. */
  readonly later: { readonly pods: number; readonly firstAt?: EpochMs; readonly lastAt?: EpochMs };
  readonly keep: readonly (Stay & { readonly pods: number })[];
  readonly replicas?: Replicas;
  /** Maximum number of ready pods that are evicted together. */
  readonly together: number;
}

export interface BudgetForecast {
  readonly namespace: string;
  /** Absent: the budgets of the namespace can't be read, but the Eviction API was called. */
  readonly name?: string;
  /** Healthy pods that may be evicted now. */
  readonly allowed?: number;
  /** Number of the budget's pods that would be evicted. */
  readonly evicted: number;
  /** Maximum number of these that are ready and are evicted together. */
  readonly together: number;
  /** Number of these that the Eviction API would block, each requested alone. */
  readonly blocked: number;
  readonly reason?: string;
  /** `eviction-api` answered for each pod alone. `status`: computed, because the API could not be called (`error`). */
  readonly source: 'eviction-api' | 'status';
  readonly error?: string;
  /** More pods are evicted together than the budget allows, or a pod is evicted that the Eviction API would block. */
  readonly breaks: boolean;
  /** Policy respects the budget (method `evict`): blocked evictions wait for it. */
  readonly heeded: boolean;
}

export type Break =
  | { readonly kind: 'guard'; readonly trip: TripReport }
  | { readonly kind: 'budget'; readonly budget: BudgetForecast }
  /** All ready pods of the workload are evicted together. */
  | { readonly kind: 'emptied'; readonly workload: WorkloadForecast }
  | { readonly kind: 'job'; readonly job: Workload; readonly outcome: JobOutcome }
  /** Nobody recreates the pod. */
  | { readonly kind: 'bare-pod'; readonly namespace: string; readonly name: string; readonly at: EpochMs };

export interface PodForecast {
  readonly namespace: string;
  readonly name: string;
  readonly uid: PodUid;
  readonly node: NodeName;
  readonly workload: Workload;
  readonly outcome: Forecast;
}

/** The forecast of a taint on some nodes. Counts are of pods on these nodes; times are epoch ms. */
export interface WhatIf {
  readonly at: EpochMs;
  readonly taint: Taint;
  readonly nodes: readonly NodeName[];
  readonly pods: number;
  readonly now: number;
  readonly later: number;
  readonly keep: number;
  /** Number of evicted mirror pods. The kubelet continues to run their static pods, and recreates them. */
  readonly mirrors: number;
  /** Number of evicted pods that the guard would hold first. */
  readonly guarded: number;
  /** The gate of all evictions now. The forecast applies once it is open. */
  readonly gate?: ClusterGate;
  readonly guard: GuardForecast;
  readonly pace: Pace;
  readonly breaks: readonly Break[];
  readonly workloads: readonly WorkloadForecast[];
  readonly budgets: readonly BudgetForecast[];
  readonly each: readonly PodForecast[];
}

export interface GuardForecast {
  /** Trips that the taint causes; with `dryRun`, the guard would only log them. */
  readonly trips: readonly TripReport[];
  readonly dryRun: boolean;
  /** Trips that already exist. */
  readonly existing: readonly TripReport[];
}

export interface Pace {
  /** Pods per second; absent: no limit. */
  readonly evictionRate?: number;
  /** When the last pod is evicted, by the rate; absent: none is. */
  readonly lastAt?: EpochMs;
  /** Pods per second that are evicted when held pods are released: the lower of both rates. */
  readonly releaseRate: number;
  /** How long a release of all these pods would take, in ms. */
  readonly releaseMs: number;
}

export interface Forecasts {
  readonly pods: ReadonlyMap<PodUid, Forecast>;
  /** Pods that the guard would hold first. */
  readonly guarded: ReadonlySet<PodUid>;
  readonly guard: GuardForecast;
}

/**
 * Forecasts pods of nodes that get a taint now. Observe mode, stops, and the guard don't count: one command
 * ends each. Holds and exclusions do.
 */
export function forecastsOf({ now, taint, nodes, pods, rules, counts, released }: Situation): Forecasts {
  const { dryRun } = rules.policy.guard;
  const review = reviewGuard(rules.policy.guard, counts, { trips: rules.trips, released, episodes: [] }, now);
  const free: Rules = { ...rules, policy: { ...rules.policy, mode: 'enforce' }, stops: [], trips: [] };
  const byNode = Map.groupBy(pods, ({ node }) => node);
  const forecasts = new Map<PodUid, Forecast>();
  const guarded = new Set<PodUid>();
  for (const { partition, taints, zone } of nodes) {
    // Budgets are judged apart.
    const node = { now, partition, live: { taints: withTaint(taints, taint), zone }, budgets: [] };
    const freely = forecastPod({ ...node, rules: free });
    const underGuard = forecastPod({ ...node, rules: { ...free, trips: review.trips } });
    for (const pod of byNode.get(partition.ref.node) ?? []) {
      forecasts.set(pod.uid, freely.forecastOf(pod));
      const forecast = review.trips.length > 0 ? underGuard.forecastOf(pod) : undefined;
      if (forecast?.kind === 'held' && forecast.by.kind === 'guard') guarded.add(pod.uid);
    }
  }
  const trips = (dryRun ? review.wouldTrip : review.added).map((trip) => reportOf(trip));
  const existing = review.trips.filter((trip) => !review.added.includes(trip)).map((trip) => reportOf(trip));
  return { pods: forecasts, guarded, guard: { trips, dryRun, existing } };
}

/** A taint with the same key and effect is replaced, as by `kubectl taint --overwrite`. */
export const withTaint = (taints: readonly LiveTaint[], taint: Taint): readonly LiveTaint[] => [
  ...taints.filter(({ key, effect }) => key !== taint.key || effect !== taint.effect),
  taint,
];

/** The pods for which to call the Eviction API: they would be evicted and have a budget, or may have one. */
export const podsToAsk = (
  { pods }: Situation,
  forecasts: Forecasts,
  budgets: Findings['budgets'],
): readonly PodThere[] =>
  pods.filter((pod) => {
    const known = budgetsOfPod(pod, budgets);
    return forecasts.pods.get(pod.uid)?.kind === 'evict' && (known === undefined || known.length > 0);
  });

export function whatIf(situation: Situation, forecasts: Forecasts, findings: Findings): WhatIf {
  const { now, taint, nodes, pods, rules } = situation;
  const { guard, guarded } = forecasts;
  const pod = pods.map((pod): JudgedPod => {
    const forecast = forecasts.pods.get(pod.uid);
    if (!forecast) throw new Error(`pod ${pod.namespace}/${pod.name} is on none of the nodes`);
    const { namespace, name, uid } = pod;
    return { pod, forecast, workload: findings.workloads.get(uid) ?? { namespace, kind: 'Pod', name } };
  });
  const going = pod.filter(isGoing);
  const gone = going.filter(({ forecast }) => forecast.at <= now).length;
  const workloads = Map.groupBy(pod, ({ workload }) => workloadText(workload))
    .entries()
    .map(([text, its]) => workloadForecast(its, findings.replicas.get(text), now))
    .toArray()
    .sort((a, b) => (workloadText(a) < workloadText(b) ? -1 : 1));
  const budgets = budgetForecasts(going, findings);
  const gate = clusterGate(rules, now);
  return {
    at: now,
    taint,
    nodes: nodes.map(({ partition }) => partition.ref.node),
    pods: pod.length,
    now: gone,
    later: going.length - gone,
    keep: pod.length - going.length,
    mirrors: going.filter(({ workload }) => workload.kind === 'Node').length,
    guarded: guarded.size,
    ...defined({ gate }),
    guard,
    pace: paceOf(going, rules),
    breaks: [
      ...(guard.dryRun ? [] : guard.trips.map((trip): Break => ({ kind: 'guard', trip }))),
      ...budgets.filter(({ breaks }) => breaks).map((budget): Break => ({ kind: 'budget', budget })),
      ...workloads.filter(isEmptied).map((workload): Break => ({ kind: 'emptied', workload })),
      ...failedJobs(going, findings.jobs),
      ...going
        .filter(({ workload, pod: { finished } }) => workload.kind === 'Pod' && !finished)
        .map(
          ({ pod: { namespace, name }, forecast: { at } }): Break => ({
            kind: 'bare-pod',
            namespace,
            name,
            at,
          }),
        ),
    ],
    workloads,
    budgets,
    each: pod.map(({ pod: { namespace, name, uid, node }, workload, forecast }) => ({
      namespace,
      name,
      uid,
      node,
      workload,
      outcome: forecast,
    })),
  };
}

interface JudgedPod {
  readonly pod: PodThere;
  readonly workload: Workload;
  readonly forecast: Forecast;
}

type Going = JudgedPod & { readonly forecast: Extract<Forecast, { kind: 'evict' }> };

const isGoing = (pod: JudgedPod): pod is Going => pod.forecast.kind === 'evict';

function paceOf(going: readonly Going[], { policy: { evictionRate, ...policy } }: Rules): Pace {
  const lastAt = lastOf(going, evictionRate);
  const releaseRate = Math.min(policy.releaseRate, evictionRate ?? policy.releaseRate);
  return {
    ...defined({ evictionRate, lastAt }),
    releaseRate,
    releaseMs: Math.floor((Math.max(0, going.length - 1) / releaseRate) * 1000),
  };
}

function lastOf(going: readonly Going[], evictionRate: number | undefined): EpochMs | undefined {
  const sorted = going.map(({ forecast }) => forecast).sort((a, b) => a.at - b.at);
  const last = sorted.at(-1)?.at;
  if (evictionRate === undefined || last === undefined) return last;
  const limited = sorted.filter(({ pacedBy }) => pacedBy === 'evictionRate');
  let freeAt = Number.NEGATIVE_INFINITY;
  for (const [at, forecasts] of Map.groupBy(limited, (forecast) => forecast.at)) {
    freeAt = Math.max(freeAt, at);
    freeAt += Math.ceil((forecasts.length * 1000) / evictionRate);
  }
  return Math.max(last, freeAt);
}

function workloadForecast(
  its: readonly JudgedPod[],
  replicas: Replicas | undefined,
  now: EpochMs,
): WorkloadForecast {
  const [first] = its;
  if (!first) throw new Error('a workload has pods here');
  const going = its.filter(isGoing);
  const later = going.map(({ forecast }) => forecast.at).filter((at) => at > now);
  const stays = Map.groupBy(
    its.flatMap(({ forecast }) => stayOf(forecast) ?? []),
    stayKey,
  );
  return {
    ...first.workload,
    pods: its.length,
    now: going.length - later.length,
    later: {
      pods: later.length,
      ...(later.length > 0 ? { firstAt: Math.min(...later), lastAt: Math.max(...later) } : {}),
    },
    keep: [...stays.values()].flatMap((alike) =>
      alike.slice(0, 1).map((stay) => ({ ...stay, pods: alike.length })),
    ),
    ...defined({ replicas }),
    together: mostReadyTogether(going),
  };
}

/** Gates that are not the end of a forecast, because they open by themselves, or because {@link forecastsOf} removes them. */
type PassingGate = Extract<EvictionGate['kind'], 'observe' | 'stopped' | 'guard' | 'workload-limit'>;

function stayOf(forecast: Forecast): Stay | undefined {
  switch (forecast.kind) {
    case 'evict':
      return undefined;
    case 'held':
      if (forecast.by.kind === 'hold') return { cause: 'hold', hold: forecast.by.id };
      if (forecast.by.kind === 'node-alive' || forecast.by.kind === 'recreated')
        return { cause: forecast.by.kind };
      forecast.by.kind satisfies 'excluded' | PassingGate;
      return { cause: 'excluded' };
    case 'keep':
      return {
        cause: forecast.cause === 'tolerated' || forecast.cause === 'untainted' ? forecast.cause : 'unknown',
      };
    case 'terminating':
    case 'failed':
      return { cause: forecast.kind };
    case 'blocked':
      return { cause: 'unknown' };
    default:
      return forecast satisfies never;
  }
}

const stayKey = ({ cause, hold = '' }: Stay): string => `${cause} ${hold}`;

/** Kinds of workloads that need not always have a ready pod. */
const NEVER_EMPTIED: readonly string[] = ['Job', 'CronJob', 'Pod', 'Node'];

const isEmptied = ({ kind, replicas, together }: WorkloadForecast): boolean =>
  !NEVER_EMPTIED.includes(kind) && replicas !== undefined && together > 0 && together >= replicas.ready;

/** A Job has already counted its finished pods. */
function failedJobs(going: readonly Going[], jobs: Findings['jobs']): readonly Break[] {
  const running = going.flatMap(({ pod: { namespace, owner, finished, indexFailures } }) =>
    owner?.kind === 'Job' && !finished ? [{ job: { namespace, ...owner }, indexFailures }] : [],
  );
  return [...Map.groupBy(running, ({ job }) => workloadText(job))].flatMap(([text, pods]) => {
    const failures = pods.map(({ indexFailures }) => indexFailures);
    const outcome = jobOutcome(jobs.get(text), failures);
    const [first] = failsJob(outcome) ? pods : [];
    return first ? [{ kind: 'job', job: first.job, outcome } as const] : [];
  });
}

/** If budgets can't be read, only the pods that the Eviction API would block are known to have one. */
function budgetForecasts(going: readonly Going[], { budgets, answers }: Findings): readonly BudgetForecast[] {
  const read = [...budgets].flatMap(([namespace, ofNamespace]) =>
    ofNamespace.flatMap((budget) => {
      const its = going.filter(({ pod }) => budgetsOfPod(pod, budgets)?.includes(budget));
      const { name, allowed } = budget;
      return its.length === 0 ? [] : [budgetForecast(its, answers, { namespace, name, allowed })];
    }),
  );
  const blocked = going.filter(
    ({ pod }) => !budgets.has(pod.namespace) && answers.get(pod.uid)?.kind === 'blocked',
  );
  const unread = Map.groupBy(blocked, ({ pod }) => pod.namespace);
  return [...read, ...[...unread].map(([namespace, its]) => budgetForecast(its, answers, { namespace }))];
}

function budgetForecast(
  going: readonly Going[],
  answers: Findings['answers'],
  known: Pick<BudgetForecast, 'namespace' | 'name' | 'allowed'>,
): BudgetForecast {
  const together = mostReadyTogether(going);
  const answered = going.map((each) => ({ ...each, answer: answers.get(each.pod.uid) }));
  const why = answered.flatMap(({ answer }) => (answer?.kind === 'unknown' ? [answer.why] : [])).at(0);
  const blocked = answered.flatMap(({ pod, forecast, answer }) =>
    answer?.kind === 'blocked' ? [{ pod, forecast, reason: answer.reason }] : [],
  );
  const [first] = blocked;
  return {
    ...known,
    evicted: going.length,
    together,
    blocked: blocked.length,
    ...(first ? { reason: first.reason } : {}),
    ...(why === undefined ? { source: 'eviction-api' } : { source: 'status', error: why }),
    breaks:
      together > (known.allowed ?? Number.POSITIVE_INFINITY) ||
      // Deleting a pod that is not ready disrupts nothing.
      blocked.some(({ pod, forecast }) => pod.ready || forecast.by === 'evict'),
    heeded: going.every(({ forecast }) => forecast.by === 'evict'),
  };
}

/** Returns the budgets of a pod; `undefined`: they can't be read. */
function budgetsOfPod(
  { namespace, labels = {} }: PodThere,
  budgets: Findings['budgets'],
): readonly Budget[] | undefined {
  const ofNamespace = budgets.get(namespace);
  return ofNamespace && budgetsOf(ofNamespace, labels);
}

function mostReadyTogether(going: readonly Going[]): number {
  const moments = going.filter(({ pod }) => pod.ready).map(({ forecast }) => forecast.at);
  const sorted = moments.sort((a, b) => a - b);
  let [most, from] = [0, 0];
  for (const [index, at] of sorted.entries()) {
    while (at - (sorted[from] ?? at) > TOGETHER_MS) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
}

import type { ClusterGate } from '#shared/eviction/eviction-gate.ts';
import { clusterGate } from '#shared/eviction/gate.ts';
import { type GuardCounts, reportOf, reviewGuard, type TripReport } from '#shared/eviction/guard.ts';
import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { ReleasedTrip, Rules } from '#shared/eviction/policy.ts';
import type { Partition } from '#shared/eviction/records.ts';
import type { LiveTaint, Taint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Budget, budgetsOf } from './budgets.ts';
import { type AskedPod, type Forecast, forecastPod } from './forecast.ts';
import { type Workload, workloadText } from './workload.ts';

/** Pods that go within so long of each other go together: a replacement is hardly ready sooner. */
export const TOGETHER_MS = 60_000;

/** A node that is to be tainted, as it is. */
export interface NodeToTaint {
  readonly zone?: string;
  /** All effects. */
  readonly taints: readonly LiveTaint[];
  /** What is stored of it. */
  readonly partition: Partition;
}

/** A pod of one of these nodes. */
export interface PodThere extends AskedPod {
  readonly node: NodeName;
  /** It stands in what is ready of its workload, and in what its budgets count. */
  readonly ready: boolean;
}

/** What it takes to say which pods would go. */
export interface Situation {
  readonly now: EpochMs;
  readonly taint: Taint;
  readonly nodes: readonly NodeToTaint[];
  readonly pods: readonly PodThere[];
  readonly rules: Rules;
  /** Of the whole cluster, with the taint on these nodes. */
  readonly counts: GuardCounts;
  readonly released: readonly ReleasedTrip[];
}

/** How many pods a workload wants, and has ready in the whole cluster. */
export interface Replicas {
  readonly desired: number;
  readonly ready: number;
}

/** What the Eviction API said of one pod, had it been evicted alone. */
export type Answer =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'blocked'; readonly reason: string }
  /** It could not be asked. */
  | { readonly kind: 'unknown'; readonly why: string };

/** What was found out beside the situation itself. */
export interface Findings {
  /** By the pods' UIDs; a pod that is not named is its own. */
  readonly workloads: ReadonlyMap<PodUid, Workload>;
  /** By {@link workloadText}; what is not named is not known. */
  readonly replicas: ReadonlyMap<string, Replicas>;
  /** By namespace; of one that is missing they cannot be read. */
  readonly budgets: ReadonlyMap<string, readonly Budget[]>;
  /** Of those of the pods that were asked for. */
  readonly answers: ReadonlyMap<PodUid, Answer>;
}

/** Why pods would not go, in a word; `hold` with what holds them. */
export interface Stay {
  readonly cause:
    | 'hold'
    | 'excluded'
    | 'node-alive'
    | 'tolerated'
    | 'untainted'
    | 'terminating'
    | 'failed'
    | 'unknown';
  readonly hold?: string;
}

/** What would become of the pods of a workload that are on the nodes. */
export interface WorkloadForecast extends Workload {
  readonly pods: number;
  readonly now: number;
  /** How many go later, and when the first and the last of these. */
  readonly later: { readonly pods: number; readonly firstAt?: EpochMs; readonly lastAt?: EpochMs };
  readonly keep: readonly (Stay & { readonly pods: number })[];
  readonly replicas?: Replicas;
  /** The most of its ready pods that go together. */
  readonly together: number;
}

/** What would become of a budget. */
export interface BudgetForecast {
  readonly namespace: string;
  /** Absent: the budgets of the namespace cannot be read; the Eviction API was asked all the same. */
  readonly name?: string;
  /** Healthy pods that may go now. */
  readonly allowed?: number;
  /** Of its pods, those that would go. */
  readonly evicted: number;
  /** The most ready ones of these that go together. */
  readonly together: number;
  /** Those of them that the Eviction API would not let go, each asked alone. */
  readonly blocked: number;
  /** What it said of the first of these. */
  readonly reason?: string;
  /** `asked`: the Eviction API said so of each pod alone; `computed`: by the budget's status only, `why` the API could not be asked. */
  readonly source: 'eviction-api' | 'status';
  readonly error?: string;
  /** More go together than it allows, or one that may not go. */
  readonly breaks: boolean;
  /** It is heeded (method `evict`): what it forbids waits for it. */
  readonly heeded: boolean;
}

/** What a taint would break. */
export type Break =
  | { readonly kind: 'guard'; readonly trip: TripReport }
  | { readonly kind: 'budget'; readonly budget: BudgetForecast }
  /** All of its ready pods go together. */
  | { readonly kind: 'emptied'; readonly workload: WorkloadForecast }
  /** Nobody makes it anew. */
  | { readonly kind: 'bare-pod'; readonly namespace: string; readonly name: string; readonly at: EpochMs };

/** One pod, for those who want to know of each. */
export interface PodForecast {
  readonly namespace: string;
  readonly name: string;
  readonly uid: PodUid;
  readonly node: NodeName;
  readonly workload: Workload;
  readonly outcome: Forecast;
}

/** What would happen if some nodes had a taint. Counts are of pods on these nodes; times are epoch ms. */
export interface WhatIf {
  readonly at: EpochMs;
  readonly taint: Taint;
  readonly nodes: readonly NodeName[];
  readonly pods: number;
  readonly now: number;
  readonly later: number;
  readonly keep: number;
  /** Of those that go, those that the guard would hold before. */
  readonly guarded: number;
  /** What forbids every eviction now; what is said here is what follows once it does no more. */
  readonly gate?: ClusterGate;
  readonly guard: GuardForecast;
  readonly pace: Pace;
  readonly breaks: readonly Break[];
  readonly workloads: readonly WorkloadForecast[];
  readonly budgets: readonly BudgetForecast[];
  readonly each: readonly PodForecast[];
}

/** What the guard would say. */
export interface GuardForecast {
  /** Those that the taint trips; in `shadow` it would only tell of them. */
  readonly trips: readonly TripReport[];
  readonly dryRun: boolean;
  /** Those that stand already. */
  readonly standing: readonly TripReport[];
}

/** How long it takes. */
export interface Pace {
  /** Pods per second; absent: no limit. */
  readonly evictionRate?: number;
  /** When the last pod has gone, by the rate; absent: none goes. */
  readonly lastAt?: EpochMs;
  /** Pods per second that go when what was held is let go. */
  readonly releaseRate: number;
  /** So long that takes for all that go, had they been held. */
  readonly releaseMs: number;
}

/** What would become of each pod. */
export interface Forecasts {
  readonly pods: ReadonlyMap<PodUid, Forecast>;
  /** Those that the guard would hold before. */
  readonly guarded: ReadonlySet<PodUid>;
  readonly guard: GuardForecast;
}

/**
 * Foresees the pods of nodes that get a taint now. Observing, stops, pauses and the guard are left out, for each ends by one
 * word, and then all goes as it is said here; holds and exclusions count.
 */
export function forecastsOf({ now, taint, nodes, pods, rules, counts, released }: Situation): Forecasts {
  const { shadow } = rules.policy.guard;
  const review = reviewGuard(rules.policy.guard, counts, { trips: rules.trips, released, episodes: [] }, now);
  const { pausedUntil: _pausedUntil, ...policy } = rules.policy;
  const free: Rules = { ...rules, policy: { ...policy, mode: 'enforce' }, stops: [], trips: [] };
  const byNode = Map.groupBy(pods, ({ node }) => node);
  const forecasts = new Map<PodUid, Forecast>();
  const guarded = new Set<PodUid>();
  for (const { partition, taints, zone } of nodes) {
    const live = { taints: withTaint(taints, taint), zone };
    const freely = forecastPod({ now, partition, live, rules: free });
    const underGuard = forecastPod({ now, partition, live, rules: { ...free, trips: review.trips } });
    for (const pod of byNode.get(partition.ref.node) ?? []) {
      forecasts.set(pod.uid, freely.fateOf(pod));
      const forecast = review.trips.length > 0 ? underGuard.fateOf(pod) : undefined;
      if (forecast?.kind === 'held' && forecast.by.kind === 'guard') guarded.add(pod.uid);
    }
  }
  const trips = (shadow ? review.wouldTrip : review.added).map(reportOf);
  const standing = review.trips.filter((trip) => !review.added.includes(trip)).map(reportOf);
  return { pods: forecasts, guarded, guard: { trips, dryRun: shadow, standing } };
}

/** A node's taints with one more; one of its key and effect is replaced, as `kubectl taint --overwrite` does. */
export const withTaint = (taints: readonly LiveTaint[], taint: Taint): readonly LiveTaint[] => [
  ...taints.filter(({ key, effect }) => key !== taint.key || effect !== taint.effect),
  taint,
];

/** The pods that would go and have a budget, or may have one: those to ask the Eviction API for. */
export const podsToAsk = (
  { pods }: Situation,
  forecasts: Forecasts,
  budgets: Findings['budgets'],
): readonly PodThere[] =>
  pods.filter((pod) => {
    const known = budgetsOfPod(pod, budgets);
    return forecasts.pods.get(pod.uid)?.kind === 'evict' && (known === undefined || known.length > 0);
  });

/** Says what would happen, by all that was found out. */
export function whatIf(situation: Situation, forecasts: Forecasts, findings: Findings): WhatIf {
  const { now, taint, nodes, pods, rules } = situation;
  const { guard, guarded } = forecasts;
  const told = pods.map((pod): Told => {
    const forecast = forecasts.pods.get(pod.uid);
    if (!forecast) throw new Error(`pod ${pod.namespace}/${pod.name} is on none of the nodes`);
    const { namespace, name, uid } = pod;
    return { pod, forecast, workload: findings.workloads.get(uid) ?? { namespace, kind: 'Pod', name } };
  });
  const going = told.filter(isGoing);
  const gone = going.filter(({ forecast }) => forecast.at <= now).length;
  const workloads = Map.groupBy(told, ({ workload }) => workloadText(workload))
    .entries()
    .map(([text, its]) => workloadFate(its, findings.replicas.get(text), now))
    .toArray()
    .sort((a, b) => (workloadText(a) < workloadText(b) ? -1 : 1));
  const budgets = budgetFates(going, findings);
  const gate = clusterGate(rules, now);
  return {
    at: now,
    taint,
    nodes: nodes.map(({ partition }) => partition.ref.node),
    pods: told.length,
    now: gone,
    later: going.length - gone,
    keep: told.length - going.length,
    guarded: guarded.size,
    ...(gate ? { gate: gate } : {}),
    guard,
    pace: paceOf(going, rules),
    breaks: [
      ...(guard.dryRun ? [] : guard.trips.map((trip): Break => ({ kind: 'guard', trip }))),
      ...budgets.filter(({ breaks }) => breaks).map((budget): Break => ({ kind: 'budget', budget })),
      ...workloads.filter(isEmptied).map((workload): Break => ({ kind: 'emptied', workload })),
      ...going
        .filter(({ workload }) => workload.kind === 'Pod')
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
    each: told.map(({ pod: { namespace, name, uid, node }, workload, forecast }) => ({
      ...{ namespace, name, uid, node, workload, outcome: forecast },
    })),
  };
}

/** A pod, and what would become of it. */
interface Told {
  readonly pod: PodThere;
  readonly workload: Workload;
  readonly forecast: Forecast;
}

type Going = Told & { readonly forecast: Extract<Forecast, { kind: 'evict' }> };

const isGoing = (told: Told): told is Going => told.forecast.kind === 'evict';

function paceOf(going: readonly Going[], { policy: { rate, drain } }: Rules): Pace {
  const lastAt = lastOf(going, rate);
  return {
    ...(rate === undefined ? {} : { evictionRate: rate }),
    ...(lastAt === undefined ? {} : { lastAt }),
    releaseRate: drain,
    releaseMs: Math.floor((Math.max(0, going.length - 1) / drain) * 1000),
  };
}

/** When the last of these pods has gone, at so many a second. */
function lastOf(going: readonly Going[], rate: number | undefined): EpochMs | undefined {
  const sorted = going.map(({ forecast }) => forecast).sort((a, b) => a.at - b.at);
  const last = sorted.at(-1)?.at;
  if (rate === undefined || last === undefined) return last;
  const limited = sorted.filter(({ pacedBy }) => pacedBy === 'evictionRate');
  let freeAt = Number.NEGATIVE_INFINITY;
  for (const [at, forecasts] of Map.groupBy(limited, (forecast) => forecast.at)) {
    freeAt = Math.max(freeAt, at);
    freeAt += Math.ceil((forecasts.length * 1000) / rate);
  }
  return Math.max(last, freeAt);
}

function workloadFate(its: readonly Told[], replicas: Replicas | undefined, now: EpochMs): WorkloadForecast {
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
    ...(replicas ? { replicas } : {}),
    together: mostReadyTogether(going),
  };
}

/** Why a pod does not go; `undefined`: it goes. */
function stayOf(forecast: Forecast): Stay | undefined {
  switch (forecast.kind) {
    case 'evict':
      return undefined;
    case 'held':
      if (forecast.by.kind === 'hold') return { cause: 'hold', hold: forecast.by.id };
      return { cause: forecast.by.kind === 'node-alive' ? forecast.by.kind : 'excluded' };
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

/** What nobody relies on to be ready at any moment. */
const NEVER_EMPTIED: readonly string[] = ['Job', 'CronJob', 'Pod', 'Node'];

const isEmptied = ({ kind, replicas, together }: WorkloadForecast): boolean =>
  !NEVER_EMPTIED.includes(kind) && replicas !== undefined && together > 0 && together >= replicas.ready;

/** Where budgets cannot be read, which pods have one is known only of those that the Eviction API would not let go. */
function budgetFates(going: readonly Going[], { budgets, answers }: Findings): readonly BudgetForecast[] {
  const read = [...budgets].flatMap(([namespace, ofNamespace]) =>
    ofNamespace.flatMap((budget) => {
      const its = going.filter(({ pod }) => budgetsOfPod(pod, budgets)?.includes(budget));
      const { name, allowed } = budget;
      return its.length === 0 ? [] : [budgetFate(its, answers, { namespace, name, allowed })];
    }),
  );
  const blocked = going.filter(
    ({ pod }) => !budgets.has(pod.namespace) && answers.get(pod.uid)?.kind === 'blocked',
  );
  const unread = Map.groupBy(blocked, ({ pod }) => pod.namespace);
  return [...read, ...[...unread].map(([namespace, its]) => budgetFate(its, answers, { namespace }))];
}

function budgetFate(
  going: readonly Going[],
  answers: Findings['answers'],
  of: Pick<BudgetForecast, 'namespace' | 'name' | 'allowed'>,
): BudgetForecast {
  const together = mostReadyTogether(going);
  const said = going.map((each) => ({ ...each, answer: answers.get(each.pod.uid) }));
  const why = said.flatMap(({ answer }) => (answer?.kind === 'unknown' ? [answer.why] : [])).at(0);
  const blocked = said.flatMap(({ pod, forecast, answer }) =>
    answer?.kind === 'blocked' ? [{ pod, forecast, reason: answer.reason }] : [],
  );
  const [first] = blocked;
  return {
    ...of,
    evicted: going.length,
    together,
    blocked: blocked.length,
    ...(first ? { reason: first.reason } : {}),
    ...(why === undefined ? { source: 'eviction-api' } : { source: 'status', error: why }),
    breaks:
      together > (of.allowed ?? Number.POSITIVE_INFINITY) ||
      // To delete one that is not ready disrupts nothing.
      blocked.some(({ pod, forecast }) => pod.ready || forecast.by === 'evict'),
    heeded: going.every(({ forecast }) => forecast.by === 'evict'),
  };
}

/** `undefined`: they cannot be read. */
function budgetsOfPod(
  { namespace, labels = {} }: PodThere,
  budgets: Findings['budgets'],
): readonly Budget[] | undefined {
  const ofNamespace = budgets.get(namespace);
  return ofNamespace && budgetsOf(ofNamespace, labels);
}

/** The most ready ones of these pods that go within {@link TOGETHER_MS}. */
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

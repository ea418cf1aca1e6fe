import { defined } from '#shared/defined.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { begunBy, type TaintOrigin } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import { emptyPartition } from '#shared/eviction/records.ts';
import { evicts, type MatchOptions, type Taint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Budget } from './budgets.ts';
import { type BuiltIn, builtInDeadline } from './built-in.ts';
import type { DisconnectionAccount } from './disconnection.ts';
import { type Forecast, type ForecastPod, forecastPod, type NodeCase } from './forecast.ts';
import { type GateAccount, type KeptBy, wordsOf } from './gate-text.ts';
import { accountOfGate, allGates } from './gates.ts';
import {
  builtInRules,
  gatesOf,
  type PolicyAccount,
  policyOf,
  type UnknownForecast,
  ungoverned,
} from './governing.ts';
import { type Fact, knownOr, unknownAmong } from './known.ts';
import { lifeKnown } from './node-life.ts';
import { isToGo, type ServiceFacts } from './pod.ts';
import { recordedForecast, storedGates } from './recorded-forecast.ts';
import type { TaintAccount } from './taints.ts';
import type { Workload } from './workload.ts';

export interface NodeQuestion {
  readonly now: EpochMs;
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly live: Fact<NodeCase['live']>;
  readonly stalled?: string;
  readonly pods: Fact<readonly ForecastPod[]>;
  readonly workloads: Fact<ReadonlyMap<PodUid, Workload>>;
  readonly budgets: Fact<ReadonlyMap<string, readonly Budget[]>>;
  readonly service?: Pick<ServiceFacts, 'rules' | 'partition' | 'disconnection'> & {
    /** History of this node, oldest first. */
    readonly history: Fact<unknown>;
  };
  readonly builtIn: Fact<BuiltIn>;
  readonly matching: MatchOptions;
}

export type NodeTaint = Pick<TaintAccount, 'taint' | 'evicts' | 'since' | 'known'>;

export interface NodePod {
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  readonly owner?: { readonly kind: string; readonly name: string };
  readonly workload?: Workload;
  readonly outcome: Forecast | UnknownForecast;
  readonly heldBy: readonly EvictionGate[];
  /** When the built-in controller, if enabled, evicts the pod; absent: never. */
  readonly builtInAt?: EpochMs;
}

export interface NodeWorkload {
  readonly namespace: string;
  /** The workload of the pods or, while it is unknown, the controller that created them. Absent: nobody recreates them. */
  readonly owner?: { readonly kind: string; readonly name: string };
  readonly pods: number;
  /** Number of pods that are evicted, and the first and last time. Due pods are evicted now. */
  readonly evict: {
    readonly pods: number;
    readonly firstAt?: EpochMs;
    readonly lastAt?: EpochMs;
    /** A rate or limit may delay them. */
    readonly limited?: true;
  };
  /** Number of pods that are held for an unknown time, by all that holds them. */
  readonly held: readonly { readonly by: readonly KeptBy[]; readonly pods: number }[];
  readonly terminating: number;
  readonly keep: readonly {
    readonly cause: Extract<Forecast, { kind: 'keep' }>['cause'];
    readonly pods: number;
  }[];
}

/** The explanation of a node's evictions. Plain data; times are epoch ms. */
export interface NodeAnswer {
  readonly at: EpochMs;
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly zone?: string;
  readonly decidedBy: 'taintward' | 'built-in';
  readonly state: 'there' | 'gone' | 'unknown';
  readonly deletedAt?: EpochMs;
  /** Absent: a relay is connected to the cluster, or this is unknown. */
  readonly disconnected?: DisconnectionAccount;
  /** Why nothing is evicted at present. Absent: due pods are evicted. */
  readonly stalled?: string;
  readonly taints: readonly NodeTaint[];
  readonly workloads: readonly NodeWorkload[];
  /** In the order of eviction, followed by held pods, and then by pods that stay. */
  readonly pods: readonly NodePod[];
  /** Gates of these pods, each once. */
  readonly gates: readonly GateAccount[];
  readonly policy?: PolicyAccount;
  readonly builtIn: BuiltIn;
  readonly unknown: readonly { readonly what: string; readonly reason: string }[];
}

/** Explains what happens on a node and why, by the same decisions as the service. */
export function explainNode(question: NodeQuestion): NodeAnswer {
  const { now, cluster, node, live, service, matching, stalled } = question;
  const given = service?.rules ?? { value: builtInRules(matching) };
  const rules = knownOr(given, builtInRules(matching));
  const nothing = emptyPartition({ cluster, node });
  const partition = service ? knownOr(service.partition, nothing) : nothing;
  const shown = knownOr(live, undefined);
  const { taints = [], deletedAt, pods } = fatesIn(question, { partition, rules, shown });
  const governed = 'unknown' in given ? pods.map((pod) => ungovernedPod(pod, given.unknown)) : pods;
  const disconnection = service && knownOr(service.disconnection, undefined);
  const unscheduled = pods.filter(
    ({ uid, outcome }) => isToGo(outcome) && !partition.scheduled.has(uid),
  ).length;
  const gates = new Map(pods.flatMap(({ heldBy }) => heldBy).map((by) => [wordsOf(by).name(by), by]));
  return {
    at: now,
    cluster,
    node,
    decidedBy: service ? 'taintward' : 'built-in',
    ...defined({ stalled }),
    ...(shown?.zone === undefined ? {} : { zone: shown.zone }),
    state: shown === undefined ? 'unknown' : shown.taints === undefined ? 'gone' : 'there',
    ...defined({ deletedAt }),
    ...(disconnection ? { disconnected: { ...disconnection, unscheduled } } : {}),
    taints,
    workloads: workloadsOf(governed, now),
    pods: governed.toSorted(
      (a, b) => rankOf(a.outcome) - rankOf(b.outcome) || (nameOf(a) < nameOf(b) ? -1 : 1),
    ),
    gates: [...gates.values()].map((by) => accountOfGate(by, rules)),
    ...(service && 'value' in given ? { policy: policyOf(rules.policy) } : {}),
    builtIn: knownOr(question.builtIn, { state: 'unknown', evidence: '' } as const),
    unknown: unknownOf(question),
  };
}

/** The forecast of a pod, not considering whether the cluster's rules are known. */
type Foretold = Omit<NodePod, 'outcome'> & { readonly outcome: Forecast };

interface Fates {
  readonly taints?: readonly NodeTaint[];
  readonly deletedAt?: EpochMs;
  readonly pods: readonly Foretold[];
}

function fatesIn(
  { now, pods, workloads, budgets }: NodeQuestion,
  {
    partition,
    rules,
    shown,
  }: Pick<NodeCase, 'partition' | 'rules'> & { readonly shown: NodeCase['live'] | undefined },
): Fates {
  if (!shown || 'unknown' in pods) {
    const { node, scheduled } = partition;
    return {
      taints: node?.taints.map(timedTaint) ?? [],
      pods: [...scheduled.values()].map((record) => ({
        ...who(record),
        outcome: recordedForecast(record, partition, rules, now),
        heldBy: storedGates(partition, rules, now)(record),
      })),
    };
  }
  const question = { now, partition, rules, live: shown };
  const ofNamespace = knownOr(budgets, undefined);
  const runBy = knownOr(workloads, undefined);
  const foresights = new Map(
    [...new Set(pods.value.map(({ namespace }) => namespace))].map((namespace) => {
      const its = ofNamespace?.get(namespace);
      return [namespace, forecastPod(its ? { ...question, budgets: its } : question)];
    }),
  );
  const { taints, deletedAt } = forecastPod(question);
  const timed = taints.map(timedTaint);
  const others = (shown.taints ?? []).filter(
    ({ key, effect }) => !taints.some((taint) => taint.key === key && taint.effect === effect),
  );
  return {
    taints: [...timed, ...others.map((taint) => ({ taint: plain(taint), evicts: 'no' as const }))],
    ...defined({ deletedAt }),
    pods: pods.value.flatMap((pod) => {
      const foresight = foresights.get(pod.namespace);
      if (!foresight) return [];
      const record = partition.scheduled.get(pod.uid);
      const builtInAt = builtInDeadline(
        foresight,
        pod,
        begunBy(record?.podSince ?? pod.podSince, now),
        rules,
      );
      const workload = runBy?.get(pod.uid);
      const its = ofNamespace?.get(pod.namespace);
      const heldBy = allGates(rules, (left) =>
        gatesOf(forecastPod({ ...question, ...defined({ budgets: its }), rules: left }).forecastOf(pod)),
      );
      const account = {
        ...who(pod),
        ...defined({ workload }),
        outcome: foresight.forecastOf(pod),
        heldBy,
      };
      return [builtInAt === undefined ? account : { ...account, builtInAt }];
    }),
  };
}

const who = ({ uid, namespace, name, owner }: Omit<NodePod, 'outcome' | 'heldBy'>) => ({
  uid,
  namespace,
  name,
  ...defined({ owner }),
});

const plain = ({ key, value, effect }: Taint): NodeTaint['taint'] => ({
  key,
  ...(value ? { value } : {}),
  effect,
});

const timedTaint = ({
  since,
  known,
  ...taint
}: Taint & { readonly since: EpochMs; readonly known: TaintOrigin }): NodeTaint => ({
  taint: plain(taint),
  evicts: taint.virtual ? 'virtual' : evicts(taint) ? 'yes' : 'no',
  since,
  known,
});

const ungovernedPod = (pod: Foretold, why: string): NodePod =>
  pod.outcome.kind === 'keep' || pod.outcome.kind === 'terminating'
    ? pod
    : { ...pod, outcome: ungoverned(why) };

const nameOf = ({ namespace, name }: NodePod): string => `${namespace}/${name}`;

function rankOf(forecast: NodePod['outcome']): number {
  switch (forecast.kind) {
    case 'terminating':
      return -1;
    case 'evict':
      return forecast.at;
    case 'held':
    case 'blocked':
    case 'failed':
    case 'unknown':
      return 9e15;
    case 'keep':
      return 9.001e15;
    default:
      return forecast satisfies never;
  }
}

function workloadsOf(pods: readonly NodePod[], now: EpochMs): readonly NodeWorkload[] {
  const workloads = Map.groupBy(pods, (pod) => {
    const { namespace, name } = pod;
    const owner = runnerOf(pod);
    return owner ? `${namespace}/${owner.name}/${owner.kind}` : `${namespace}/${name}/`;
  });
  return [...workloads]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, its]) => its.slice(0, 1).map((first) => workloadOf(first, its, now)));
}

const runnerOf = ({ workload, owner }: NodePod): NodeWorkload['owner'] =>
  workload ? { kind: workload.kind, name: workload.name } : owner;

function workloadOf(first: NodePod, pods: readonly NodePod[], now: EpochMs): NodeWorkload {
  const owner = runnerOf(first);
  const moments = pods
    .flatMap(({ outcome }) =>
      outcome.kind === 'evict' && !outcome.retrying ? [Math.max(outcome.at, now)] : [],
    )
    .sort((a, b) => a - b);
  const [firstAt, lastAt] = [moments[0], moments.at(-1)];
  const kept = pods.map(({ outcome, heldBy }): readonly KeptBy[] => {
    if (outcome.kind === 'held') return heldBy.map(({ kind }) => kind);
    if (outcome.kind === 'blocked') return [outcome.by.length > 0 ? 'blocked' : 'rejected'];
    if (outcome.kind === 'evict' && outcome.retrying) return ['retrying'];
    return outcome.kind === 'failed' ? [outcome.kind] : [];
  });
  const stays = pods.flatMap(({ outcome }) => (outcome.kind === 'keep' ? [outcome.cause] : []));
  return {
    namespace: first.namespace,
    ...defined({ owner }),
    pods: pods.length,
    evict: {
      pods: moments.length,
      ...defined({ firstAt, lastAt }),
      ...(pods.some(({ outcome }) => outcome.kind === 'evict' && outcome.pacedBy) ? { limited: true } : {}),
    },
    held: [...Map.groupBy(kept, (by) => by.join()).values()].flatMap((alike) =>
      alike.slice(0, 1).flatMap((by) => (by.length === 0 ? [] : [{ by, pods: alike.length }])),
    ),
    terminating: pods.filter(({ outcome }) => outcome.kind === 'terminating').length,
    keep: [...Map.groupBy(stays, (cause) => cause)].map(([cause, alike]) => ({
      cause,
      pods: alike.length,
    })),
  };
}

function unknownOf({
  live,
  pods,
  workloads,
  budgets,
  service,
  builtIn,
}: NodeQuestion): NodeAnswer['unknown'] {
  return unknownAmong({
    'the node': live,
    'its pods': pods,
    'what runs them': workloads,
    budgets,
    ...(service && {
      rules: service.rules,
      'its stored state': service.partition,
      history: service.history,
      'whether it renews its Lease': lifeKnown(live, service.rules),
      'whether a relay is connected to the cluster': service.disconnection,
    }),
    'the built-in controller': builtIn,
  });
}

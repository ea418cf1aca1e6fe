import { defined } from '#shared/defined.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { begunBy } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { emptyPartition, type Partition } from '#shared/eviction/records.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Budget, budgetsOf } from './budgets.ts';
import { type BuiltIn, builtInDeadline } from './built-in.ts';
import type { Disconnection, DisconnectionAccount } from './disconnection.ts';
import { type Forecast, type ForecastPod, forecastPod, type NodeCase } from './forecast.ts';
import { type GateAccount, wordsOf } from './gate-text.ts';
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
import { type PastEntry, type PastOutcome, pastOutcome } from './past.ts';
import { recordedForecast, storedGates } from './recorded-forecast.ts';
import { type Remedy, remediesFor } from './remedies.ts';
import { type PodEnd, type Scheduling, schedulingOf } from './scheduling.ts';
import { accountsOf, type TaintAccount } from './taints.ts';
import type { Workload } from './workload.ts';

/** A pod that was evicted and is stuck terminating, as its relay reports it. */
export type StuckReport = Pick<StuckPod, 'uid' | 'gracePeriodEndedAt' | 'finalizers' | 'nodeState'>;

export interface ServiceFacts {
  readonly rules: Fact<Rules>;
  /** Partition of the pod's node. If the pod itself is unknown: of the node from which its eviction is scheduled. */
  readonly partition: Fact<Partition>;
  /** History of pods of this name, oldest first. */
  readonly history: Fact<readonly PastEntry[]>;
  readonly stuck: Fact<readonly StuckReport[]>;
  /** `undefined`: a relay is connected to the cluster. */
  readonly disconnection: Fact<Disconnection | undefined>;
}

export interface PodCase {
  readonly now: EpochMs;
  readonly cluster: ClusterName;
  readonly namespace: string;
  readonly name: string;
  /** The pod as the API server shows it; `undefined`: there is none. */
  readonly pod: Fact<ForecastPod | undefined>;
  readonly workload: Fact<Workload | undefined>;
  readonly end?: PodEnd;
  readonly node: Fact<NodeCase['live']>;
  readonly stalled?: string;
  /** Absent: only the cluster was asked, not the service. */
  readonly service?: ServiceFacts;
  readonly budgets: Fact<readonly Budget[]>;
  readonly builtIn: Fact<BuiltIn>;
  readonly matching: MatchOptions;
}

/** The explanation of a pod's eviction or stay, and of the next steps. Plain data; times are epoch ms. */
export interface PodAnswer {
  readonly at: EpochMs;
  readonly cluster: ClusterName;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: PodUid;
  readonly node?: NodeName;
  readonly owner?: { readonly kind: string; readonly name: string };
  /** The owner, or the controller behind it, like a Deployment behind a ReplicaSet. Absent: unknown, or none. */
  readonly workload?: Workload;
  /** The source of the decision. Without the service, it is the built-in controller, if enabled. */
  readonly decidedBy: 'taintward' | 'built-in';
  readonly outcome: Forecast | PastOutcome | UnknownForecast;
  /** The outcome for an earlier pod of this name, if history has one. */
  readonly before?: PastOutcome;
  readonly stuck?: StuckReport;
  /** An annotation marks the pod as being moved off its node. Absent: no. */
  readonly takeoverInProgress?: true;
  /** Absent: a relay is connected to the cluster, or this is unknown. */
  readonly disconnected?: DisconnectionAccount;
  /** Why nothing is evicted at present. Absent: due pods are evicted. */
  readonly stalled?: string;
  readonly taints: readonly TaintAccount[];
  readonly gates: readonly GateAccount[];
  /** Absent: unknown, or the cluster is not managed. */
  readonly policy?: PolicyAccount;
  readonly budgets?: readonly Budget[];
  /** `evictsAt`: when the built-in controller, if enabled, evicts the pod; absent: never. */
  readonly builtIn?: BuiltIn & { readonly evictsAt?: EpochMs };
  readonly scheduling?: Scheduling;
  readonly remediations: readonly Remedy[];
  /** Commands that together release the pod; empty if it has no gate. */
  readonly release: readonly string[];
  /** Facts that could not be read, and why. */
  readonly unknown: readonly { readonly what: string; readonly reason: string }[];
}

/** Explains why a pod is evicted or stays, and what happens next, by the same decisions as the service. */
export function explainPod(question: PodCase): PodAnswer {
  const { now, cluster, namespace, name, service, stalled } = question;
  const pod = knownOr(question.pod, undefined);
  const history = service ? knownOr(service.history, []) : [];
  const disconnection = service && knownOr(service.disconnection, undefined);
  const answer = {
    at: now,
    cluster,
    namespace,
    name,
    ...defined({ stalled }),
    unknown: unknownOf(question),
    ...(disconnection ? { disconnected: { ...disconnection, unscheduled: 0 } } : {}),
    decidedBy: service ? 'taintward' : 'built-in',
    taints: [],
    gates: [],
    release: [],
    remediations: [],
  } as const;
  if ('unknown' in question.pod) return { ...answer, ...byRecord(question, question.pod.unknown) };
  if (!pod) return { ...answer, outcome: pastOutcome(history) };
  const { uid, node, owner } = pod;
  const workload = knownOr(question.workload, undefined);
  const before = pastOutcome(history, uid);
  const stuck = service && knownOr(service.stuck, []).find((report) => report.uid === uid);
  const result = byLife(question, pod);
  const unscheduled = isToGo(result.outcome) && !partitionIn(question, pod).scheduled.has(uid) ? 1 : 0;
  return {
    ...answer,
    uid,
    ...defined({ node, owner, workload }),
    ...(before.kind === 'not-found' ? {} : { before }),
    ...defined({ stuck }),
    ...(pod.moving ? { takeoverInProgress: pod.moving } : {}),
    ...(disconnection ? { disconnected: { ...disconnection, unscheduled } } : {}),
    ...result,
  };
}

/** Reports whether a pod is evicted once nothing holds it. */
export const isToGo = ({ kind }: PodAnswer['outcome']): boolean =>
  kind === 'evict' || kind === 'held' || kind === 'blocked';

type PartialAnswer = Pick<PodAnswer, 'outcome'> & Partial<PodAnswer>;

function byLife(question: PodCase, pod: ForecastPod): PartialAnswer {
  const { now, cluster, service, matching } = question;
  const given = service?.rules ?? { value: builtInRules(matching) };
  const rules = knownOr(given, builtInRules(matching));
  const partition = partitionIn(question, pod);
  const live = knownOr(question.node, storedLife(partition));
  const budgets = knownOr(question.budgets, undefined);
  if (pod.node !== undefined && !live && 'unknown' in question.node)
    return { outcome: { kind: 'unknown', reason: question.node.unknown } };
  const node: NodeCase = {
    now,
    partition,
    rules,
    live: live ?? { taints: [] },
    ...defined({ budgets }),
  };
  const foresight = forecastPod(node);
  const foretold = foresight.forecastOf(pod);
  const forecast = foretold.kind !== 'keep' && 'unknown' in given ? ungoverned(given.unknown) : foretold;
  const record = partition.scheduled.get(pod.uid) ?? partition.ended.get(pod.uid);
  const podSince = begunBy(record?.podSince ?? pod.podSince, now);
  const taints =
    pod.node === undefined ? [] : accountsOf(foresight, node.live.taints ?? [], pod, podSince, rules);
  const evictsAt = pod.node === undefined ? undefined : builtInDeadline(foresight, pod, podSince, rules);
  const builtIn = knownOr(question.builtIn, { state: 'unknown', evidence: '' } as const);
  const nodeGone = foresight.deletedAt !== undefined;
  const gates = allGates(rules, (left) => gatesOf(forecastPod({ ...node, rules: left }).forecastOf(pod)));
  return {
    outcome: forecast,
    taints,
    ...duePod(gates, rules, cluster),
    ...(forecast.kind === 'failed' ? { release: [`taintward retry ${cluster}`] } : {}),
    ...(service && 'value' in given ? { policy: policyOf(rules.policy) } : {}),
    ...(budgets ? { budgets: budgetsOf(budgets, pod.labels ?? {}) } : {}),
    builtIn: { ...builtIn, ...defined({ evictsAt }) },
    ...(pod.node === undefined
      ? {}
      : { scheduling: schedulingOf(pod.owner, taints, foretold, nodeGone, question.end) }),
    remediations:
      pod.node === undefined
        ? []
        : remediesFor(taints, { ...(service ? { cluster } : {}), node: pod.node, nodeGone, pod }, foretold),
  };
}

/** Explains a pod by the stored data alone: by its record, if it has one. */
function byRecord({ service, namespace, name, now, cluster }: PodCase, why: string): PartialAnswer {
  const partition = service && knownOr(service.partition, undefined);
  const record = partition?.scheduled
    .values()
    .find((each) => each.namespace === namespace && each.name === name);
  if (!service || !partition || !record) return { outcome: { kind: 'unknown', reason: why } };
  const { uid, owner } = record;
  const { node } = partition.ref;
  if ('unknown' in service.rules) return { outcome: ungoverned(service.rules.unknown), uid, node };
  const rules = service.rules.value;
  const forecast = recordedForecast(record, partition, rules, now);
  const gates = forecast.kind === 'held' ? storedGates(partition, rules, now)(record) : [];
  return {
    outcome: forecast,
    uid,
    node,
    policy: policyOf(rules.policy),
    ...duePod(gates, rules, cluster),
    ...defined({ owner }),
  };
}

const duePod = (
  gates: readonly EvictionGate[],
  rules: Rules,
  cluster: ClusterName,
): Pick<PodAnswer, 'gates' | 'release'> => ({
  gates: gates.map((by) => accountOfGate(by, rules)),
  release: [...new Set(gates.flatMap((by) => wordsOf(by).release(by, cluster) ?? []))],
});

function partitionIn({ cluster, service }: PodCase, { node }: ForecastPod): Partition {
  const nothing = emptyPartition({ cluster, node: node ?? ('' as NodeName) });
  return service ? knownOr(service.partition, nothing) : nothing;
}

function storedLife({ node }: Partition): NodeCase['live'] | undefined {
  if (!node) return undefined;
  const { taintsStamp, deletedAt } = node;
  const taints = node.taints.map(({ virtual: _virtual, ...taint }) => taint);
  return { taints: deletedAt === undefined ? taints : undefined, taintsStamp };
}

function unknownOf({ pod, workload, node, service, budgets, builtIn }: PodCase): PodAnswer['unknown'] {
  const isThere = 'value' in pod && pod.value !== undefined;
  return unknownAmong({
    'the pod': pod,
    ...(isThere && { 'its workload': workload, 'its node': node }),
    ...(service && {
      rules: service.rules,
      'the stored state of its node': service.partition,
      history: service.history,
      'stuck pods': service.stuck,
      'whether its node renews its Lease': lifeKnown(node, service.rules),
      'whether a relay is connected to the cluster': service.disconnection,
    }),
    ...(isThere && { budgets, 'the built-in controller': builtIn }),
  });
}

import { type NodeName, podUid } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { DOWN_KEYS, type Toleration } from '#shared/taints/taint.ts';
import { withDefaultTolerations } from '#shared/taints/tolerations.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import {
  type Forecast,
  type ForecastPod,
  forecastPod,
  type NodeCase,
  type NodeForecast,
} from './forecast.ts';
import { accountsOf, type TaintAccount } from './taints.ts';

export interface TolerationCase {
  readonly now: EpochMs;
  readonly rules: Rules;
  /** All nodes of the cluster, and those of the pods. */
  readonly nodes: readonly NodeCase[];
  readonly pods: readonly ForecastPod[];
  /** The list in question, with everything that is added to it. */
  readonly tolerations: readonly Toleration[];
  /** The list of a running pod. Absent: pods are replaced, and each replacement has the list in question. */
  readonly listOf?: (pod: ForecastPod) => readonly Toleration[];
}

/** A taint of today's nodes, and what the scheduler and an eviction make of it. */
export interface ToleratedTaint
  extends Pick<TaintAccount, 'taint' | 'evicts' | 'toleration' | 'seconds' | 'changedBy' | 'schedules'> {
  readonly nodes: number;
}

/** The outcome for a pod today and with the list. */
export interface TolerationForecast {
  readonly namespace: string;
  readonly name: string;
  /** Absent: not bound. */
  readonly node?: NodeName;
  readonly before: Forecast;
  /** Of the pod, or of a replacement that is bound to the same node now. Absent: no scheduler binds it there. */
  readonly after?: Forecast;
}

export interface TolerationPreview {
  readonly taints: readonly ToleratedTaint[];
  readonly pods: readonly TolerationForecast[];
}

/** Previews a list of tolerations on today's nodes, by the same decisions as the service. */
export function previewTolerations(question: TolerationCase): TolerationPreview {
  const { now, rules, tolerations } = question;
  const nodes = question.nodes.map((node): PreviewedNode => {
    const forecast = forecastPod(node);
    const accounts = accountsOf(forecast, node.live.taints ?? [], { tolerations }, now, rules);
    return { node, forecast, accounts };
  });
  const byNode = Map.groupBy(question.pods, ({ node }) => node);
  const unbound: Forecast = { kind: 'keep', cause: 'unbound' };
  return {
    taints: taintsOf(nodes),
    pods: [
      ...(byNode.get(undefined) ?? []).map((pod) => ({ ...nameOf(pod), before: unbound, after: unbound })),
      ...nodes.flatMap((each) =>
        (byNode.get(each.node.partition.ref.node) ?? []).map((pod) => forecastOn(each, pod, question)),
      ),
    ],
  };
}

interface PreviewedNode {
  readonly node: NodeCase;
  readonly forecast: NodeForecast;
  /** Of its taints, for the list in question. */
  readonly accounts: readonly TaintAccount[];
}

function taintsOf(nodes: readonly PreviewedNode[]): readonly ToleratedTaint[] {
  const found = new Map<string, ToleratedTaint>();
  for (const account of nodes.flatMap(({ accounts }) => accounts)) {
    const { since: _since, known: _known, deadlineAt: _at, decides: _decides, ...kept } = account;
    const { shadowed: _shadowed, ...tolerated } = kept;
    const identity = JSON.stringify(tolerated);
    found.set(identity, { ...tolerated, nodes: (found.get(identity)?.nodes ?? 0) + 1 });
  }
  return [...found.values()];
}

function forecastOn(
  { node, forecast, accounts }: PreviewedNode,
  pod: ForecastPod,
  { now, tolerations, listOf }: TolerationCase,
): TolerationForecast {
  const named = { ...nameOf(pod), node: node.partition.ref.node, before: forecast.forecastOf(pod) };
  if (listOf) return { ...named, after: forecast.forecastOf({ ...pod, tolerations: listOf(pod) }) };
  if (node.live.taints === undefined || accounts.some(({ schedules }) => !schedules)) return named;
  const { leaving: _leaving, evicted: _evicted, deleted: _deleted, ...kept } = pod;
  // It has no countdown yet.
  const begun = { uid: podUid(''), podSince: now, terminating: false, disrupted: false };
  return { ...named, after: forecast.forecastOf({ ...kept, ...begun, tolerations }) };
}

const nameOf = ({ namespace, name }: ForecastPod) => ({ namespace, name });

/** Keys of the NoSchedule taints that pods of DaemonSets tolerate. */
const DAEMON_KEYS = ['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'];

/** Returns a template's tolerations as its pods get them. Upstream also: `AddOrUpdateDaemonPodTolerations`. */
export function podTolerations(kind: string, tolerations: readonly Toleration[]): readonly Toleration[] {
  if (kind !== 'DaemonSet') return withDefaultTolerations(tolerations);
  const forced: readonly Toleration[] = [
    ...DOWN_KEYS.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute' })),
    ...DAEMON_KEYS.map((key) => ({
      key: `node.kubernetes.io/${key}`,
      operator: 'Exists',
      effect: 'NoSchedule',
    })),
  ];
  const isForced = ({ key, operator, effect, value = '' }: Toleration) =>
    forced.some((each) => each.key === key && each.operator === operator && each.effect === effect) &&
    value === '';
  return [...tolerations.filter((each) => !isForced(each)), ...forced];
}

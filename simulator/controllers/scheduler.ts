import { INT64_MAX } from '#shared/taints/int64.ts';
import { firstMatch } from '#shared/taints/match.ts';
import {
  type Effect,
  type MatchOptions,
  type Taint,
  type Toleration,
  taintText,
} from '#shared/taints/taint.ts';
import { FEATURE_GATES, taintsOf, tolerationsOf } from '../objects/admission.ts';
import { controllerOf, kubernetesTime, type NodeObject, type PodObject, refOf } from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import { noteEvent } from './events.ts';
import type { Controller } from './reconcile-loop.ts';

const SCHEDULER_NAME = 'default-scheduler';
/** The taint that the node controller sets on a cordoned node. */
const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** The default scheduler, limited to taints, node selectors and a DaemonSet's pinning: it counts no resources. */
export function scheduler(store: ObjectStore): Controller {
  return {
    name: 'scheduler',
    reconcile() {
      for (const pod of store.all('pods')) {
        const { metadata, spec } = pod;
        if (spec.nodeName || metadata.deletionTimestamp !== undefined) continue;
        if (spec.schedulerName === SCHEDULER_NAME) schedule(store, pod);
      }
      return undefined;
    },
  };
}

function schedule(store: ObjectStore, pod: PodObject): void {
  const fitting: Fit[] = [];
  const causes: string[] = [];
  for (const node of store.all('nodes')) {
    const verdict = judge(store, pod, node);
    if (typeof verdict === 'string') causes.push(verdict);
    else fitting.push(verdict);
  }
  const scores = normaliseScores(fitting.map(({ preferCount }) => preferCount));
  const [best] = fitting
    .map(({ node, mustGoAgain, siblings, neighbours }, index) => ({
      name: node,
      rank: [Number(mustGoAgain), -(scores[index] ?? 0), siblings, neighbours],
    }))
    .sort((a, b) => compareRanks(a.rank, b.rank) || a.name.localeCompare(b.name));
  if (best === undefined) {
    reportUnschedulable(store, pod, causes);
    return;
  }
  store.bind(refOf(pod), best.name);
  const message = `Successfully assigned ${pod.metadata.namespace}/${pod.metadata.name} to ${best.name}`;
  noteEvent(store, pod, { type: 'Normal', reason: 'Scheduled', message, component: SCHEDULER_NAME });
}

/** Compares ranks number by number; less is better. */
const compareRanks = (a: readonly number[], b: readonly number[]): number =>
  a.map((number, index) => number - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;

/** A node that a pod may run on, and its ranking. */
interface Fit {
  readonly node: string;
  /**
   * True if the pod would soon be evicted again. The real scheduler ignores this (kubernetes/kubernetes 117520), so either choice
   * is valid. Choosing such a node last spares users of the simulation an endless loop.
   */
  readonly mustGoAgain: boolean;
  readonly preferCount: number;
  /** Pods of the same owner on the node. */
  readonly siblings: number;
  readonly neighbours: number;
}

/** Returns how well a pod fits a node, or the reason why it does not, in the real scheduler's words. */
function judge(store: ObjectStore, pod: PodObject, node: NodeObject): Fit | string {
  if (!isSelected(pod, node)) return "node(s) didn't match Pod's node affinity/selector";
  const tolerations = tolerationsOf(pod.spec.tolerations);
  const taints = [...taintsOf(node), ...(node.spec.unschedulable === true ? [UNSCHEDULABLE] : [])];
  const { firstUntolerated, preferCount } = schedulerVerdict(taints, tolerations, FEATURE_GATES);
  if (firstUntolerated !== undefined) {
    return `node(s) had untolerated taint(s) {${taintText(firstUntolerated)}}`;
  }
  const neighbours = store.all('pods').filter(({ spec }) => spec.nodeName === node.metadata.name);
  const owner = controllerOf(pod)?.uid;
  return {
    node: node.metadata.name,
    mustGoAgain: !isToleratedForEver(taints, tolerations),
    preferCount,
    siblings: neighbours.filter((neighbour) => controllerOf(neighbour)?.uid === owner).length,
    neighbours: neighbours.length,
  };
}

/** Reports whether no taint will ever evict a pod; `tolerationSeconds` absent and the largest int64 mean indefinitely. */
const isToleratedForEver = (taints: readonly Taint[], tolerations: readonly Toleration[]): boolean =>
  taints
    .filter(({ effect }) => effect === 'NoExecute')
    .map((taint) => firstMatch(tolerations, taint, FEATURE_GATES))
    .every((match) => match !== undefined && (match.tolerationSeconds ?? INT64_MAX) === INT64_MAX);

/** Reports whether a pod's selector allows it to run on a node, and its pinning if it has any. */
export function isSelected({ spec }: Pick<PodObject, 'spec'>, { metadata }: NodeObject): boolean {
  const labels = Object.entries(spec.nodeSelector ?? {});
  return (
    labels.every(([label, value]) => metadata.labels?.[label] === value) &&
    (pinnedTo(spec)?.includes(metadata.name) ?? true)
  );
}

/** Returns the nodes that a DaemonSet's controller pins its pod to; `undefined`: any. */
export function pinnedTo({ affinity }: PodObject['spec']): readonly string[] | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const fields = terms?.flatMap(({ matchFields = [] }) => matchFields);
  return fields?.find(({ key, operator }) => key === 'metadata.name' && operator === 'In')?.values;
}

function reportUnschedulable(store: ObjectStore, pod: PodObject, causes: readonly string[]): void {
  const counts = Map.groupBy(causes, (reason) => reason);
  const list = [...counts].map(([reason, { length }]) => `${length} ${reason}`).join(', ');
  const message = `0/${causes.length} nodes are available${list === '' ? '' : `: ${list}`}.`;
  const conditions = pod.status.conditions ?? [];
  const present = conditions.find(({ type }) => type === 'PodScheduled');
  if (present?.message === message) return;
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastTransitionTime: present?.lastTransitionTime ?? kubernetesTime(store.now()),
  };
  const others = conditions.filter(({ type }) => type !== 'PodScheduled');
  store.update('pods', refOf(pod), 'status', (current) => ({
    ...current,
    status: { ...current.status, conditions: [...others, condition] },
  }));
  noteEvent(store, pod, { type: 'Warning', reason: 'FailedScheduling', message, component: SCHEDULER_NAME });
}

/** The result of the scheduler's plugin `TaintToleration` for one pod on one node. */
interface SchedulerVerdict {
  /** True if every NoSchedule taint is tolerated. */
  readonly noSchedule: boolean;
  /** True if every NoExecute taint is tolerated, for any duration. */
  readonly noExecute: boolean;
  /** The first NoSchedule or NoExecute taint in the node's order that keeps the pod away; `undefined`: it fits. */
  readonly firstUntolerated: Taint | undefined;
  /** Untolerated PreferNoSchedule taints: the raw score, less is better. */
  readonly preferCount: number;
}

/** The best score a scheduler plugin gives a node. */
const MAX_NODE_SCORE = 100;

/** Evaluates one pod on one node as the scheduler would. Upstream: `TaintToleration.Filter` and `.Score`. */
export function schedulerVerdict(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  options: MatchOptions,
): SchedulerVerdict {
  const untolerated = taints.filter((taint) => !firstMatch(tolerations, taint, options));
  const having = (effect: Effect): readonly Taint[] => untolerated.filter((taint) => taint.effect === effect);
  return {
    noSchedule: having('NoSchedule').length === 0,
    noExecute: having('NoExecute').length === 0,
    firstUntolerated: untolerated.find(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute'),
    preferCount: having('PreferNoSchedule').length,
  };
}

/**
 * Returns the final scores of all nodes for their `preferCount`s, in the same order: 0 (most untolerated taints) to 100.
 * Upstream: `DefaultNormalizeScore`, reversed, in integers.
 */
export function normaliseScores(preferCounts: readonly number[]): readonly number[] {
  const most = preferCounts.reduce((max, count) => Math.max(max, count), 0);
  if (most === 0) return preferCounts.map(() => MAX_NODE_SCORE);
  return preferCounts.map((count) => MAX_NODE_SCORE - Math.trunc((MAX_NODE_SCORE * count) / most));
}

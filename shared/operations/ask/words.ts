import { tripText } from '#shared/eviction/guard.ts';
import type { Forecast } from '#shared/explain/forecast.ts';
import { gateText, wordsOf } from '#shared/explain/gate-text.ts';
import { failsJob, jobText } from '#shared/explain/job.ts';
import type { PodAnswer, StuckReport } from '#shared/explain/pod.ts';
import type { Remedy } from '#shared/explain/remedies.ts';
import type { PlacedToleration, TaintAccount } from '#shared/explain/taints.ts';
import type { Break, BudgetForecast } from '#shared/explain/what-if.ts';
import type { WhatIfAnswer } from '#shared/operations/ask/what-if.ts';
import { NODE_OUT_OF_SERVICE, taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

/*
 * Answers in words, the same on the command line and on the console's page. The console sends this file to the page as it
 * is, with all of its imports.
 */

export function tolerationText({
  toleration,
  changedBy,
  seconds,
}: Pick<TaintAccount, 'toleration' | 'changedBy' | 'seconds'>): string {
  const matched = toleration ? placeText(toleration) : 'none';
  if (changedBy === 'tolerationSecondsOverrides')
    return `${matched}, by policy ${durationText((seconds ?? 0) * 1000)}`;
  return changedBy === 'treatAsNoExecute' ? `${matched}, by policy as NoExecute` : matched;
}

/** Formats a toleration with its index, counted from 0 as in `kubectl get pod -o jsonpath`. */
export const placeText = ({ index, seconds }: PlacedToleration): string =>
  `[${index}] ${seconds === undefined ? 'indefinitely' : durationText(seconds * 1000)}`;

/** Returns the outcome for a pod in a preview. */
export function forecastText(forecast: Forecast, now: EpochMs): string {
  switch (forecast.kind) {
    case 'evict':
      return forecast.at <= now ? 'evicted now' : `evicted in ${durationText(forecast.at - now)}`;
    case 'keep':
      return `stays (${forecast.cause})`;
    case 'held':
      return `stays (${forecast.by.kind}${forecast.by.kind === 'hold' ? ` ${forecast.by.id}` : ''})`;
    case 'terminating':
      return 'terminating';
    case 'failed':
      return 'stays (failed)';
    case 'blocked':
      return 'stays (disruption budget)';
    default:
      return forecast satisfies never;
  }
}

/** A name, and what is known under it. */
type NamedFact = readonly [name: string, text: string];

type Governed = Pick<PodAnswer, 'policy' | 'gates' | 'budgets' | 'builtIn' | 'workload' | 'owner'>;

/** Returns what decides about a pod, or about the pods of a node. */
export function governingFacts(
  { policy, gates, budgets = [], builtIn, ...runners }: Governed,
  about: 'pod' | 'node',
): readonly NamedFact[] {
  const facts: NamedFact[] = workloadFacts(runners);
  if (policy) {
    const { mode, method, evictionRate, ...others } = policy;
    others satisfies Readonly<Record<Exclude<keyof typeof others, ShownElsewhere>, never>>;
    const manner = method.kind === 'delete' ? 'deletes pods' : 'uses the Eviction API';
    const rate = evictionRate === undefined ? '' : `, at most ${evictionRate} pods per second`;
    facts.push(['policy', `${mode}, ${manner}${rate}`]);
  }
  for (const gate of gates) facts.push(['held by', gateText(gate, timeText)]);
  for (const { name, allowed } of budgets) {
    const heeded = policy?.method.kind === 'evict' ? '' : '; this method ignores it';
    const allows = `allows ${allowed} ${allowed === 1 ? 'disruption' : 'disruptions'} now`;
    facts.push(['disruption budget', `${name}, which ${allows}${heeded}`]);
  }
  if (builtIn) {
    const { state, evidence, evictsAt } = builtIn;
    const does =
      evictsAt === undefined ? 'it would not evict the pod' : `it evicts the pod at ${timeText(evictsAt)}`;
    const isSilent = state === 'off' || about === 'node';
    const consequence = isSilent ? '' : state === 'on' ? `; ${does}` : `; if it runs, ${does}`;
    facts.push(['built-in controller', `${state}${evidence === '' ? '' : ` (${evidence})`}${consequence}`]);
  }
  return facts;
}

type OfTiming = 'tolerationSecondsOverrides' | 'treatAsNoExecute' | 'maxEvictionsPerWorkload';
/** Settings that the forecast or a gate shows where they apply. */
type ShownElsewhere = OfTiming | 'releaseRate';

/** A static pod has no workload. */
function workloadFacts({ workload, owner }: Pick<PodAnswer, 'workload' | 'owner'>): NamedFact[] {
  if (!workload || !owner || workload.kind === 'Node') return [];
  const made = workload.kind === owner.kind ? '' : `, by ${owner.kind} ${owner.name}`;
  return [['workload', `${workload.kind} ${workload.name}${made}`]];
}

/** Returns what follows the eviction of a pod, one clause each. */
export function schedulingTexts(answer: PodAnswer): readonly string[] {
  const { scheduling, owner, workload, node, outcome, taints } = answer;
  if (!scheduling || outcome.kind === 'keep') return [];
  const { replacedBy, keptOffBy, loops, finished, job } = scheduling;
  if (finished) return ['the pod has finished: only its object and its logs are deleted'];
  const maker = job ? owner : (workload ?? owner);
  const creator = maker ? `${maker.kind} ${maker.name}` : '';
  const once = owner?.kind === 'StatefulSet' ? ' once this pod has ended' : '';
  const made = `${creator} ${job ? jobText(job) : `creates a replacement${once}`}`;
  if (job && failsJob(job)) return [made];
  switch (replacedBy) {
    case 'nobody':
      return ['no controller owns the pod, so no replacement is created'];
    case 'kubelet':
      return [`it is a static pod: only its mirror pod is deleted, and the kubelet of ${node} recreates it`];
    case 'daemonset':
    case 'controller': {
      const off = keptOffBy.map(taintText).join(' and ');
      if (off !== '' && replacedBy === 'daemonset')
        return [`${creator} creates no replacement on ${node} as long as it has ${off}`];
      if (off !== '') return [`${made}; ${off} keeps the replacement off ${node}`];
      if (!loops) return [made];
      const seconds = Math.min(...taints.flatMap((taint) => taint.seconds ?? []));
      const again = seconds === 0 ? 'immediately' : `after ${durationText(seconds * 1000)}`;
      const where =
        replacedBy === 'daemonset' ? `, on ${node}` : `, and a scheduler may place it on ${node} again`;
      return [
        `${made}${where}, because it tolerates the taint; the replacement is then evicted ${again}, repeatedly${job?.kind === 'replaced' ? ', until the Job fails' : ''}`,
        'a toleration with a time limit does not keep pods off a node: add a NoSchedule taint that the pod does not tolerate',
      ];
    }
    default:
      return replacedBy satisfies never;
  }
}

/** Returns how to keep a pod, as a clause before the command, if it has one. */
export function remedyText(remedy: Remedy, builtIn: PodAnswer['builtIn']): string {
  switch (remedy.kind) {
    case 'tolerate':
      return 'tolerate the taint indefinitely (also in the template of the workload, for its next pods)';
    case 'untaint':
      return `remove ${taintText(remedy.taint)}`;
    case 'fix-node':
      return `repair the node: ${remedy.taints.map(taintText).join(' and ')} stays as long as the node is down`;
    case 'hold':
      return `hold it${heedText(builtIn)}`;
    default:
      return remedy satisfies never;
  }
}

function heedText(builtIn: PodAnswer['builtIn']): string {
  if (builtIn?.evictsAt === undefined || builtIn.state === 'off') return '';
  return builtIn.state === 'on'
    ? ', which the built-in controller ignores'
    : ', which the built-in controller ignores if it runs';
}

/** Taintward never deletes pods by force, because their containers may still run. */
export function stuckAdvice({
  finalizers,
  nodeState,
}: Pick<StuckReport, 'finalizers' | 'nodeState'>): string {
  if (finalizers.length > 0 && nodeState === 'there') {
    return 'the controller of each finalizer must remove it: check that the controller runs, and check its log';
  }
  const first = finalizers.length > 0 ? 'the controller of each finalizer must remove it; before that, ' : '';
  switch (nodeState) {
    case 'unreachable':
      return `${first}its kubelet doesn't respond: if the machine is powered off, taint the node ${NODE_OUT_OF_SERVICE}=nodeshutdown:NoExecute, or delete the Node`;
    case 'gone':
      return `${first}its node was deleted: check that the pod garbage collector of kube-controller-manager runs`;
    case 'there':
      return 'its kubelet runs but has not stopped it: check the log of the kubelet, and volumes that are still mounted';
    default:
      return nodeState satisfies never;
  }
}

/** Returns under which conditions a preview applies, one sentence each. */
export function provisosOf(answer: WhatIfAnswer): readonly string[] {
  const { policy, gate, guarded, guard, mirrors, unknown } = answer;
  return [
    policy === 'default' &&
      'The policy of the cluster is unknown. This preview uses the default policy in enforce mode.',
    gate &&
      `All evictions are held by ${wordsOf(gate).name(gate)}${gate.kind === 'observe' ? '' : ' until it ends'}.`,
    guarded > 0 && `The guard would hold ${guarded} of these evictions, until it resets or is released.`,
    ...(guard.dryRun ? guard.trips : []).map(
      (trip) => `The guard is in dry-run mode and would only report a trip: ${tripText(trip)}.`,
    ),
    mirrors > 0 && `Static pods: ${mirrors}. Kubelets continue to run them, and recreate their mirror pods.`,
    ...unknown.map((each) => (each.endsWith('.') ? each : `${each}.`)),
  ].filter((text) => typeof text === 'string');
}

/** Returns when the last pod of a preview is evicted. Empty: none is. */
export function paceText({ at, pace, gate, guarded }: WhatIfAnswer): string {
  if (pace.lastAt === undefined) return '';
  const when = pace.lastAt <= at ? 'immediately' : `in ${durationText(pace.lastAt - at)}`;
  const rate = pace.evictionRate === undefined ? '' : `, at ${pace.evictionRate} per second`;
  const drained =
    gate || guarded > 0
      ? `; held pods are evicted within ${durationText(pace.releaseMs)} of their release, at ${pace.releaseRate} per second`
      : '';
  return `The last pod is evicted ${when}${rate}${drained}.`;
}

export const budgetText = ({ namespace, name }: BudgetForecast): string =>
  name === undefined ? `in namespace ${namespace}` : `${namespace}/${name}`;

/** Returns what breaks, as a sentence. `guarded`: the number of evictions that the guard would hold. */
export function breakText(broken: Break, guarded: number): string {
  switch (broken.kind) {
    case 'guard':
      return `The guard trips (${tripText(broken.trip)}) and holds ${guarded} evictions.`;
    case 'budget': {
      const { together, allowed, heeded, reason } = broken.budget;
      const allows =
        allowed === undefined
          ? 'does not allow it'
          : `allows ${allowed} ${allowed === 1 ? 'disruption' : 'disruptions'}`;
      const all = `${together} of its ready pods ${together === 1 ? 'is evicted' : 'are evicted together'}`;
      const then = heeded
        ? 'they are evicted as the budget allows, or when the policy times out'
        : 'taint evictions ignore the budget';
      const answer = reason === undefined ? '' : ` The API server says: ${reason.replace(/\.$/, '')}.`;
      return `Budget ${budgetText(broken.budget)} ${allows}, and ${all}: ${then}.${answer}`;
    }
    case 'emptied': {
      const { namespace, kind, name, together } = broken.workload;
      return `${kind} ${namespace}/${name} has no ready pod left: ${together === 1 ? 'its only ready pod is evicted' : `all ${together} are evicted together`}.`;
    }
    case 'job':
      return `Job ${broken.job.namespace}/${broken.job.name} ${jobText(broken.outcome)}.`;
    case 'bare-pod':
      return `Pod ${broken.namespace}/${broken.name} is evicted, and no controller recreates it.`;
    default:
      return broken satisfies never;
  }
}

import { BEING_MOVED } from '#shared/eviction/budget.ts';
import type { Cause } from '#shared/eviction/records.ts';
import { STUCK_AFTER_MS } from '#shared/eviction/stuck.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { DisconnectionAccount } from './disconnection.ts';
import type { Forecast } from './forecast.ts';
import { type GateAccount, gateText } from './gate-text.ts';
import type { NodeAnswer } from './node.ts';
import type { PastOutcome } from './past.ts';
import type { PodAnswer } from './pod.ts';
import type { Replicas } from './what-if.ts';
import type { Workload } from './workload.ts';

/** Formats a time for users, like `2026-11-22T08:00:00Z (in 4m10s)`. */
export type MomentText = (at: EpochMs) => string;

/**
 * One sentence about what happens to a pod and when, more if no relay is connected or the built-in controller differs.
 */
export function headline(answer: PodAnswer, moment: MomentText): string {
  const { namespace, name, before, outcome, unknown } = answer;
  const text = `${namespace}/${name} ${forecastText(answer, moment)}`;
  const stalled = stalledText(answer, outcome.kind === 'evict');
  const disconnection = disconnectedText(answer, 'its eviction is', moment);
  const rival = rivalText(answer, moment);
  const earlier = before ? `An earlier pod of this name ${pastText(before, answer, moment)}` : '';
  const isUnseen = outcome.kind !== 'unknown' && unknown.some(({ what }) => what === 'the pod');
  const unseen = isUnseen ? 'This is its record: the pod could not be read.' : '';
  const moved =
    answer.takeoverInProgress && outcome.kind !== 'terminating' && !text.includes(BEING_MOVED)
      ? BEING_MOVED
      : '';
  return [text, moved, unseen, stalled, disconnection, rival, earlier]
    .filter((sentence) => sentence !== '')
    .join(' ');
}

function forecastText(answer: PodAnswer, moment: MomentText): string {
  const { outcome, at: now, decidedBy } = answer;
  switch (outcome.kind) {
    case 'evict':
      return decidedBy === 'built-in'
        ? builtInText(outcome, answer, moment)
        : goesText(outcome, answer, moment);
    case 'held':
      return heldText(outcome, answer, moment);
    case 'blocked':
      return `${dueText(outcome.dueAt, now, moment)}, and stays as long as ${blockText(outcome.by, outcome.rejected)}: the policy never deletes such a pod.`;
    case 'failed':
      return `was due at ${moment(outcome.dueAt)}, and its eviction failed at ${moment(outcome.at)}, with all retries exhausted: ${outcome.error}.`;
    case 'keep':
      return `stays: ${staysText(outcome.cause, answer)}.`;
    case 'terminating':
      return leavingText(outcome, answer, moment);
    case 'evicted':
    case 'deleted':
    case 'not-found':
      return pastText(outcome, answer, moment);
    case 'unknown':
      return `may be evicted or stay: ${outcome.reason}.`;
    default:
      return outcome satisfies never;
  }
}

type Going = Extract<Forecast, { kind: 'evict' }>;

function goesText(
  forecast: Going,
  { at: now, policy, gates, stalled }: PodAnswer,
  moment: MomentText,
): string {
  const { at, dueAt, causes, retrying, blockedBy, rejected, pacedBy } = forecast;
  const because = reasonsText(causes);
  const held = heldBy(gates, moment);
  if (held !== '')
    return `${dueText(dueAt, now, moment)} because ${because}; it is held by ${held}, and will be evicted at ${moment(at)}.`;
  if (retrying?.isHold)
    return `has been due since ${moment(dueAt)} because ${because}; ${retrying.error}. The clocks are compared again by ${moment(at)}.`;
  if (retrying?.unanswered)
    return `has been due since ${moment(dueAt)} because ${because}; retrying at ${moment(at)}: the API server does not answer (${retrying.error}).`;
  if (retrying)
    return `has been due since ${moment(dueAt)} because ${because}; its eviction failed ${times(retrying.attempts)} (${retrying.error}), and will be retried by ${moment(at)}.`;
  if (blockedBy.length > 0 || rejected !== undefined)
    return `${dueText(dueAt, now, moment)} because ${because}; ${blockText(blockedBy, rejected)}, and it will be deleted at ${moment(at)} regardless.`;
  const turn = paceText(pacedBy, policy);
  if (at <= now && stalled !== undefined) return `has been due since ${moment(dueAt)} because ${because}.`;
  if (at <= now)
    return `is being evicted now${turn}: it has been due since ${moment(dueAt)} because ${because}.`;
  return `will be evicted at ${moment(at)}${pacedBy ? ' at the earliest' : ''}${turn} because ${because}.`;
}

function paceText(pacedBy: Going['pacedBy'], policy: PodAnswer['policy']): string {
  if (pacedBy === 'evictionRate') return `, limited to ${policy?.evictionRate ?? ''} pods per second`;
  if (pacedBy === 'releaseRate') return ', in release order';
  return pacedBy ? `, limited by ${pacedBy}` : '';
}

/** The last of these evictions can't be earlier: each second has no more of them than the rate allows. */
function lastPossible(going: readonly Going[], policy: PodAnswer['policy']): EpochMs {
  const rate = policy?.evictionRate ?? policy?.releaseRate ?? Number.POSITIVE_INFINITY;
  const paced = going.filter(({ pacedBy }) => pacedBy === 'evictionRate' || pacedBy === 'releaseRate');
  const waitMs = Math.floor(Math.max(0, paced.length - 1) / rate) * 1000;
  const moments = going.map(({ at }) => at);
  return Math.max(...moments, Math.min(...moments) + waitMs);
}

function builtInText({ at, causes }: Going, { at: now, builtIn }: PodAnswer, moment: MomentText): string {
  const because = reasonsText(causes);
  const when = at <= now ? 'now' : `at ${moment(at)} at the latest`;
  switch (builtIn?.state) {
    case 'on':
      return `will be evicted ${when} by the built-in controller because ${because}.`;
    case 'off':
      return `must be evicted ${when} because ${because}; the built-in controller is disabled, so the pod stays unless another controller evicts here.`;
    default:
      return `will be evicted ${when} because ${because}, if the built-in controller or Taintward evicts here.`;
  }
}

function heldText(
  { dueAt, causes, by: gate, blockedBy }: Extract<Forecast, { kind: 'held' }>,
  { at: now, gates }: PodAnswer,
  moment: MomentText,
): string {
  const because = reasonsText(causes);
  if (gate.kind === 'observe' && gates.length < 2) {
    const would = dueAt <= now ? 'would have been evicted' : 'would be evicted';
    const budgets = blockedBy ? `, and ${blockText(blockedBy, undefined)}` : '';
    return `${would} at ${moment(dueAt)} because ${because}; the cluster is in observe mode${budgets}.`;
  }
  return `${dueText(dueAt, now, moment)} because ${because}, but is held by ${heldBy(gates, moment)}.`;
}

const heldBy = (gates: readonly GateAccount[], moment: MomentText): string =>
  gates.map((gate) => gateText(gate, moment)).join(', and by ');

const dueText = (dueAt: EpochMs, now: EpochMs, moment: MomentText): string =>
  `${dueAt <= now ? 'has been due since' : 'is due at'} ${moment(dueAt)}`;

function staysText(cause: Extract<Forecast, { kind: 'keep' }>['cause'], { node, taints }: PodAnswer): string {
  switch (cause) {
    case 'unbound':
      return 'it is not bound to a node yet, and taints evict only from nodes';
    case 'untainted':
      return `node ${node} has no taint that evicts`;
    case 'tolerated': {
      const evicting = taints.filter(({ evicts }) => evicts !== 'no').map(({ taint }) => taintText(taint));
      return `it tolerates ${evicting.join(' and ')} of node ${node} indefinitely`;
    }
    case 'bound-later':
      return `node ${node} is deleted, and its taints do not apply to pods that were bound later`;
    default:
      return cause satisfies never;
  }
}

function leavingText(
  { by: deleter, gracePeriodEndedAt, finalizers }: Extract<Forecast, { kind: 'terminating' }>,
  { at: now, stuck }: PodAnswer,
  moment: MomentText,
): string {
  const deleted = {
    taintward: 'was evicted by Taintward',
    'taint-manager': 'was evicted by the built-in controller',
    'eviction-api': 'was evicted by the Eviction API',
    other: 'was deleted by another actor',
  }[deleter];
  if (gracePeriodEndedAt === undefined) return `${deleted}, and is terminating.`;
  if (!stuck && gracePeriodEndedAt > now)
    return `${deleted}, and has until ${moment(gracePeriodEndedAt)} to terminate.`;
  const waits = finalizers.length > 0 ? `, and it waits for its finalizers (${finalizers.join(', ')})` : '';
  const isStuck = stuck !== undefined || now - gracePeriodEndedAt > STUCK_AFTER_MS;
  return `${deleted} and is ${isStuck ? 'stuck ' : ''}terminating: its grace period ended at ${moment(gracePeriodEndedAt)}${waits}.`;
}

function pastText(forecast: PastOutcome, { cluster, decidedBy }: PodAnswer, moment: MomentText): string {
  switch (forecast.kind) {
    case 'evicted':
      return `was evicted from node ${forecast.node} at ${moment(forecast.at)} because ${reasonsText(forecast.causes)}.`;
    case 'deleted': {
      const { at, node, by: deleter, dueAt, causes, cancelReason, observed } = forecast;
      const ours =
        dueAt === undefined
          ? '; Taintward did not request this'
          : cancelReason
            ? `; its eviction had been canceled because ${cancelReason === 'taint-removed' ? 'the taint was removed' : 'it tolerates the taint indefinitely'}`
            : `; Taintward ${observed ? 'would have evicted' : 'was to evict'} it at ${moment(dueAt)} because ${reasonsText(causes)}`;
      if (deleter === 'taint-manager')
        return `was evicted from node ${node} by the built-in controller at ${moment(at)}${ours}.`;
      if (deleter === 'other')
        return `was deleted from node ${node} by another actor at ${moment(at)}${ours}.`;
      return `was deleted by an unknown actor; it was last seen on node ${node} at ${moment(at)}${ours}.`;
    }
    case 'not-found':
      return decidedBy === 'taintward'
        ? `does not exist in cluster ${cluster}, and history has no pod of that name.`
        : `does not exist in cluster ${cluster}; only the service knows its history (--table, --state-dir).`;
    default:
      return forecast satisfies never;
  }
}

const stalledText = ({ stalled }: Pick<PodAnswer, 'stalled'>, isGoing: boolean): string =>
  isGoing && stalled !== undefined ? `But nothing is evicted at present: ${stalled}.` : '';

/** `evictions`: the subject and verb for evictions that are not scheduled. */
function disconnectedText(
  { cluster, disconnected }: { readonly cluster: string; readonly disconnected?: DisconnectionAccount },
  evictions: string,
  moment: MomentText,
): string {
  if (!disconnected) return '';
  const lastContact =
    disconnected.since === undefined
      ? `no relay has ever connected to cluster ${cluster}`
      : `no relay has been connected to cluster ${cluster} since ${moment(disconnected.since)}`;
  return disconnected.unscheduled > 0
    ? `But ${lastContact}: ${evictions} not scheduled until a relay connects.`
    : `N${lastContact.slice(1)}: changes of nodes and pods are missed.`;
}

/** In observe mode, the built-in controller is expected to evict, so a headline names it only where it is known to. */
const isObserved = (outcome: PodAnswer['outcome']): boolean =>
  outcome.kind === 'held' && outcome.by.kind === 'observe';

/** A pod that has been due for longer by the built-in controller's rule shows that this controller does not run. */
const SPARED_MS = 10 * 60_000;

/** The built-in controller evicts the pod earlier than Taintward, or although Taintward does not. */
function rivalText({ at: now, decidedBy, outcome, builtIn }: PodAnswer, moment: MomentText): string {
  const evictsAt = builtIn?.evictsAt;
  if (decidedBy === 'built-in' || evictsAt === undefined || builtIn?.state === 'off') return '';
  const ours = outcome.kind === 'evict' ? outcome.at : outcome.kind === 'terminating' ? -Infinity : Infinity;
  if (evictsAt >= ours) return '';
  const isDue = evictsAt <= now;
  if (builtIn?.state === 'on') {
    const when = isDue
      ? `at any time: by its rule, the pod has been due since ${moment(evictsAt)}`
      : `at ${moment(evictsAt)}`;
    return `But the built-in controller is enabled, and evicts the pod ${when}.`;
  }
  if (isObserved(outcome) || now - evictsAt > SPARED_MS) return '';
  const would = isDue ? 'would have evicted the pod' : 'evicts the pod';
  return `If the built-in controller is enabled (unknown), it ${would} at ${moment(evictsAt)}.`;
}

/** One sentence about what happens on a node, more if no relay is connected or the built-in controller differs. */
export function nodeHeadline(answer: NodeAnswer, moment: MomentText): string {
  const { node, cluster, state, taints, pods, unknown } = answer;
  const evicting = taints.filter(({ evicts }) => evicts !== 'no').map(({ taint }) => taintText(taint));
  if (state === 'gone' && pods.length === 0)
    return `${node} does not exist in cluster ${cluster}, and has no pods.`;
  const what = state === 'gone' ? `${node} is deleted, and had` : `${node} has`;
  const { unscheduled = 0 } = answer.disconnected ?? {};
  const evictions = unscheduled === 1 ? '1 eviction is' : `${unscheduled} evictions are`;
  const disconnection = disconnectedText(answer, evictions, moment);
  if (state === 'unknown' && evicting.length === 0)
    return `It is unknown which taints ${node} has, and which pods they evict: the cluster could not be read.`;
  if (evicting.length === 0)
    return `${what} no taint that evicts: ${countText(pods.length, 'stays', 'stay')}.${disconnection === '' ? '' : ` ${disconnection}`}`;
  const isUnseen = unknown.some(({ what }) => what === 'the node' || what === 'its pods');
  const unseen = isUnseen ? 'This is the stored state: the node could not be read.' : '';
  return outcomesText(`${what} ${evicting.join(' and ')}`, answer, { unseen, disconnection }, moment);
}

/** One sentence about the pods of a workload, more if the built-in controller differs. Nodes have its pods alone. */
export function workloadHeadline(
  { namespace, kind, name }: Workload,
  nodes: readonly [NodeAnswer, ...NodeAnswer[]],
  replicas: Replicas | undefined,
  moment: MomentText,
): string {
  const pods = nodes.flatMap((each) => each.pods);
  const on = nodes.length === 1 ? 'on 1 node' : `on ${nodes.length} nodes`;
  const ready = replicas ? `, ${replicas.ready} of ${replicas.desired} ready` : '';
  const what = `${kind} ${namespace}/${name} has ${countText(pods.length, on, on)}${ready}`;
  return outcomesText(what, { ...nodes[0], pods }, {}, moment);
}

/** One sentence about the outcomes of pods, and more sentences. */
function outcomesText(
  what: string,
  answer: NodeAnswer,
  { unseen = '', disconnection = '' }: { readonly unseen?: string; readonly disconnection?: string },
  moment: MomentText,
): string {
  const { pods, at: now, decidedBy, builtIn } = answer;
  const due = pods.flatMap(({ outcome }) => (outcome.kind === 'evict' ? [outcome] : []));
  const going = due.filter(({ retrying }) => !retrying);
  const errors = due.flatMap(({ retrying }) => retrying?.error ?? []);
  const [first, last] = [Math.min(...going.map(({ at }) => at)), lastPossible(going, answer.policy)];
  const pacedBy = going.find((each) => each.pacedBy)?.pacedBy;
  const begins = going.length > 0 && first > now ? `at ${moment(first)}` : 'now';
  const when =
    last <= now
      ? 'now'
      : first === last
        ? `${begins}${pacedBy ? ' at the earliest' : ''}`
        : pacedBy
          ? `in turn, the first ${begins}, the last not before ${moment(last)}`
          : `by ${moment(last)}, the first ${begins}`;
  const observed = pods.filter(({ outcome }) => isObserved(outcome) && !('blockedBy' in outcome)).length;
  const evictor = decidedBy === 'built-in' ? builtInSubject(builtIn) : '';
  const parts = [
    going.length > 0
      ? `${countText(going.length, 'will be evicted', 'will be evicted')} ${when}${paceText(pacedBy, answer.policy)}${evictor}`
      : '',
    observed > 0 ? `${countText(observed, 'would be evicted', 'would be evicted')} in enforce mode` : '',
    errors[0] === undefined
      ? ''
      : `${countText(errors.length, 'could not be evicted and is retried', 'could not be evicted and are retried')} (${errors[0].replace(/\.$/, '')})`,
    ...NOT_EVICTED.map(([kind, one, many]) => {
      const count =
        pods.filter(({ outcome }) => outcome.kind === kind).length - (kind === 'held' ? observed : 0);
      return count === 0 ? '' : countText(count, one, many);
    }),
  ].filter((part) => part !== '');
  const text = `${what}: ${parts.length > 0 ? parts.join('; ') : 'no pods'}.`;
  return [text, unseen, stalledText(answer, due.length > 0), disconnection, nodeRivalText(answer, moment)]
    .filter((sentence) => sentence !== '')
    .join(' ');
}

const NOT_EVICTED: readonly (readonly [
  kind: NodeAnswer['pods'][number]['outcome']['kind'],
  one: string,
  many: string,
])[] = [
  ['held', 'is held', 'are held'],
  ['blocked', 'is blocked', 'are blocked'],
  ['failed', 'could not be evicted', 'could not be evicted'],
  ['unknown', 'may be evicted or stay', 'may be evicted or stay'],
  ['terminating', 'is terminating', 'are terminating'],
  ['keep', 'stays', 'stay'],
];

const countText = (count: number, one: string, many: string): string =>
  count === 1 ? `1 pod ${one}` : `${count} pods ${many}`;

function builtInSubject({ state }: NodeAnswer['builtIn']): string {
  if (state === 'on') return ' by the built-in controller';
  return state === 'off'
    ? ' if another controller evicts here, because the built-in controller is disabled'
    : ' if the built-in controller or Taintward evicts here';
}

function nodeRivalText({ at: now, decidedBy, builtIn, pods }: NodeAnswer, moment: MomentText): string {
  if (decidedBy === 'built-in' || builtIn.state === 'off') return '';
  const earlier = pods.flatMap(({ outcome, builtInAt }) => {
    if (builtIn.state !== 'on' && isObserved(outcome)) return [];
    const ours =
      outcome.kind === 'evict' ? outcome.at : outcome.kind === 'terminating' ? -Infinity : Infinity;
    return builtInAt !== undefined && builtInAt < ours ? [builtInAt] : [];
  });
  const first = Math.min(...earlier);
  if (earlier.length === 0) return '';
  const [isDue, sooner] = [first <= now, countText(earlier.length, 'sooner', 'sooner')];
  if (builtIn.state === 'on') {
    const when = isDue ? 'at any time: by its rule, the first has been due since' : 'the first at';
    return `But the built-in controller is enabled, and evicts ${sooner}, ${when} ${moment(first)}.`;
  }
  if (now - first > SPARED_MS) return '';
  return `If the built-in controller is enabled (unknown), it ${isDue ? 'would have evicted' : 'evicts'} ${sooner}, the first at ${moment(first)}.`;
}

/** Describes the causes of an eviction: "it tolerates a:NoExecute for 5m". */
export function reasonsText(causes: readonly Cause[]): string {
  const texts = causes.map(({ taint, toleration, seconds, policy }) => {
    if (policy !== undefined)
      return `by policy it tolerates ${taintText(taint)} for ${durationText(seconds * 1000)}`;
    return toleration === undefined
      ? `it does not tolerate ${taintText(taint)}`
      : `it tolerates ${taintText(taint)} for ${durationText(seconds * 1000)}`;
  });
  return texts.length === 0 ? 'its reasons are no longer known' : texts.join(' and ');
}

const blockText = (budgets: readonly string[], refused: string | undefined): string =>
  [
    ...(budgets.length > 0 ? [budgetText(budgets)] : []),
    ...(refused === undefined ? [] : [`its eviction is rejected (${refused.replace(/\.$/, '')})`]),
  ].join(' and ');

const budgetText = (names: readonly string[]): string =>
  names.length > 1
    ? `it has several disruption budgets (${names.join(', ')}), which the Eviction API rejects`
    : `its disruption budget ${names.join()} allows no disruption`;

const times = (count: number): string => (count === 1 ? 'once' : `${count} times`);

import { type Because, becauseOf, type Countdown } from '#shared/engine/news.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { gateText } from '#shared/explain/gate-text.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import { timeText } from '#shared/time/time-text.ts';

/*
 * Events about countdowns, in addition to the built-in controller's Events, whose texts and reason stay as they are. Each of
 * these has a reason of its own. One per pod and change.
 */

/** Returns the Event for a countdown that started, or whose deadline changed. `observed`: the pod won't be evicted. */
export function countingDown({ moved, ...pod }: Countdown, observed: boolean): PodEvent {
  const what = observed ? 'In enforce mode, the pod would' : 'The pod will';
  return about(pod, {
    key: `countdown/${pod.fireAt}`,
    reason: moved ? 'TaintwardEvictionRescheduled' : 'TaintwardEvictionScheduled',
    message: `${moved ? 'Eviction rescheduled. ' : ''}${what} be evicted at ${timeText(pod.fireAt)} because it ${becauseText(pod.because)}`,
  });
}

/** Returns the Event for a due pod that is held, or would have been evicted. */
export function heldBack(record: EvictionRecord, by: EvictionGate): PodEvent {
  if (by.kind === 'observe') {
    const because = becauseText(record.reasons.map(becauseOf));
    return about(record, {
      key: `would/${record.fireAt}`,
      reason: 'TaintwardWouldEvict',
      message: `In enforce mode, the pod would have been evicted at ${timeText(record.fireAt)} because it ${because}`,
    });
  }
  return about(record, {
    key: `held/${by.kind}/${record.fireAt}`,
    reason: 'TaintwardEvictionHeld',
    message: `Eviction held by ${gateText({ by }, timeText)}. ${dueText(record)}`,
  });
}

/** Returns the Event for a due pod whose eviction the Eviction API temporarily rejects. */
export function blockedEviction(record: EvictionRecord, by: 'budget' | 'admission'): PodEvent {
  return about(record, {
    key: `blocked/${record.fireAt}`,
    reason: 'TaintwardEvictionBlocked',
    message: `Eviction ${BLOCKED_BY[by]} and will be retried. ${dueText(record)}`,
  });
}

const BLOCKED_BY = {
  budget: 'blocked by a disruption budget',
  admission: 'rejected by an admission webhook or policy',
};

const dueText = ({ fireAt, reasons }: EvictionRecord): string =>
  `The pod has been due since ${timeText(fireAt)} because it ${becauseText(reasons.map(becauseOf))}`;

const about = (
  { uid, namespace, name }: Pick<EvictionRecord, 'uid' | 'namespace' | 'name'>,
  { key, reason, message }: Pick<PodEvent, 'key' | 'reason' | 'message'>,
): PodEvent => ({ pod: { namespace, name }, key: `${uid}/${key}`, type: 'Normal', reason, message });

const becauseText = (because: readonly Because[]): string =>
  because
    .map(({ taint, toleration, seconds }) =>
      toleration === undefined
        ? `does not tolerate ${taint}`
        : `tolerates ${taint} for ${seconds} s (tolerations[${toleration}])`,
    )
    .join(' and ');

import type { Brake } from '#shared/eviction/brake.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { brakeText } from '#shared/explain/brake-words.ts';
import type { PodEvent } from '#shared/kubernetes/api.ts';
import { type Because, becauseOf, type Countdown } from '#shared/queues/due-message.ts';
import { timeText } from '#shared/time/time-text.ts';

/*
 * What we tell of a countdown beside the built-in controller's Events, whose words and reason stay as they are: each of
 * these has a reason of its own. One per pod and change.
 */

/** A pod's countdown started, or its moment moved. `observed`: nothing will come of it. */
export function countingDown({ moved, ...pod }: Countdown, observed: boolean): PodEvent {
  const will = `${observed ? 'Would' : 'Will'}${moved ? ' now' : ''} be evicted at ${timeText(pod.fireAt)}`;
  return about(pod, {
    key: `countdown/${pod.fireAt}`,
    reason: moved ? 'TaintwardMoved' : 'TaintwardScheduled',
    message: `${will} because of ${becauseText(pod.because)}`,
  });
}

/** A due pod is held, or would have gone. */
export function heldBack(record: EvictionRecord, by: Brake): PodEvent {
  const because = becauseText(record.reasons.map(becauseOf));
  if (by.kind === 'observe') {
    return about(record, {
      key: `would/${record.fireAt}`,
      reason: 'TaintwardWouldEvict',
      message: `Would have been evicted at ${timeText(record.fireAt)} because of ${because}: the cluster is only observed`,
    });
  }
  return about(record, {
    key: `held/${by.kind}/${record.fireAt}`,
    reason: 'TaintwardHeld',
    message: `Was to be evicted at ${timeText(record.fireAt)} because of ${because}, but is held by ${brakeText({ by }, timeText)}`,
  });
}

/** A pod is due, and the Eviction API refuses it for now. */
export function blockedEviction(record: EvictionRecord, by: 'budget' | 'admission'): PodEvent {
  const because = becauseText(record.reasons.map(becauseOf));
  return about(record, {
    key: `blocked/${record.fireAt}`,
    reason: 'TaintwardBlocked',
    message: `Was to be evicted at ${timeText(record.fireAt)} because of ${because}, but ${BLOCKED_BY[by]}`,
  });
}

const BLOCKED_BY = {
  budget: 'waits for its disruption budget',
  admission: 'an admission webhook or policy refuses its eviction for now',
};

const about = (
  { uid, namespace, name }: Pick<EvictionRecord, 'uid' | 'namespace' | 'name'>,
  { key, reason, message }: Pick<PodEvent, 'key' | 'reason' | 'message'>,
): PodEvent => ({ pod: { namespace, name }, key: `${uid}/${key}`, type: 'Normal', reason, message });

const becauseText = (because: readonly Because[]): string =>
  because
    .map(({ taint, toleration, seconds }) =>
      toleration === undefined
        ? `${taint}, which it does not tolerate`
        : `${taint}, which it tolerates for ${seconds} s (tolerations[${toleration}])`,
    )
    .join(' and ');

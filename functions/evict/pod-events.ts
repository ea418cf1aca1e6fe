import type { PodUid } from '#shared/eviction/identity.ts';
import type { Version } from '#shared/eviction/version.ts';
import type { PodEvent, PodRef } from '#shared/kubernetes/api.ts';

/** The built-in controller's reason for all its Events, so that alerts on it keep working. */
export const EVENT_REASON = 'TaintManagerEviction';

interface EventPod extends PodRef {
  readonly uid: PodUid;
}

/** Says that a pod is deleted. One per pod, however often its deletion is retried. */
export function markingForDeletion(pod: EventPod): PodEvent {
  return {
    pod: { namespace: pod.namespace, name: pod.name },
    key: `${pod.uid}/marking`,
    type: 'Normal',
    reason: EVENT_REASON,
    message: `Marking for deletion Pod ${pod.namespace}/${pod.name}`,
  };
}

/** Says that a scheduled deletion will not happen. One per pod and delta that cancelled it. */
export function cancellingDeletion(pod: EventPod, version: Version): PodEvent {
  return {
    pod: { namespace: pod.namespace, name: pod.name },
    key: `${pod.uid}/cancelling/${version.epoch}.${version.sequence}`,
    type: 'Normal',
    reason: EVENT_REASON,
    message: `Cancelling deletion of Pod ${pod.namespace}/${pod.name}`,
  };
}

/** Says that a pod that must go could not be deleted and that nobody tries any more until an operator redrives. */
export function gaveUpDeletion(pod: EventPod): PodEvent {
  return {
    pod: { namespace: pod.namespace, name: pod.name },
    key: `${pod.uid}/gave-up`,
    type: 'Warning',
    reason: EVENT_REASON,
    message: `Gave up deletion of Pod ${pod.namespace}/${pod.name}: redrive the dead-letter queue of evictions-due`,
  };
}

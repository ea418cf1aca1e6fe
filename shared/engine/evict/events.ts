import pMap from 'p-map';
import { deltaId, type Version } from '#shared/eviction/facts.ts';
import type { PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';

/** The built-in controller's reason for all its Events, so that alerts on it keep working. */
export const EVENT_REASON = 'TaintManagerEviction';

interface EventPod extends PodRef {
  readonly uid: PodUid;
}

/** Reports that a pod is deleted. One per pod, however often its deletion is retried. */
export function markingForDeletion(pod: EventPod): PodEvent {
  return {
    pod: { namespace: pod.namespace, name: pod.name },
    key: `${pod.uid}/marking`,
    type: 'Normal',
    reason: EVENT_REASON,
    message: `Marking for deletion Pod ${pod.namespace}/${pod.name}`,
  };
}

/** Reports that a scheduled deletion was canceled. One per pod and delta that canceled it. */
export function cancellingDeletion(pod: EventPod, version: Version): PodEvent {
  return {
    pod: { namespace: pod.namespace, name: pod.name },
    key: `${pod.uid}/cancelling/${deltaId(version)}`,
    type: 'Normal',
    reason: EVENT_REASON,
    message: `Cancelling deletion of Pod ${pod.namespace}/${pod.name}`,
  };
}

/** Reports that a pod couldn't be deleted and that its retries are exhausted. */
export function gaveUpDeletion(pod: EventPod): PodEvent {
  return {
    pod: { namespace: pod.namespace, name: pod.name },
    key: `${pod.uid}/gave-up`,
    type: 'Warning',
    reason: EVENT_REASON,
    message: `Failed to delete Pod ${pod.namespace}/${pod.name}: retries exhausted. To retry, run "taintward retry"`,
  };
}

const PARALLEL_EVENTS = 16;
const TRIES = 3;

/**
 * Posts Events for what happened by the time `at`, with a few attempts each. A server that doesn't answer at all isn't
 * asked again: every timeout would delay the node's next evictions. Never rejects: Events are optional.
 */
export async function postEvents(
  api: KubernetesApi,
  events: readonly PodEvent[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  at = clock.now(),
): Promise<void> {
  let silent: unknown;
  const post = async (event: PodEvent): Promise<void> => {
    for (let tries = 1; !silent; tries++) {
      try {
        return await api.createEvent(event, at);
      } catch (error) {
        if (error instanceof ApiError && error.status === 0) silent = error;
        else if (tries === TRIES) return logLost(event, error, log);
      }
    }
    logLost(event, silent, log);
  };
  await pMap(events, post, { concurrency: PARALLEL_EVENTS });
}

/** Logs an Event that will not be posted. */
export function logLost({ pod, message }: PodEvent, reason: unknown, log: Log): void {
  log.warn('event.dropped', { namespace: pod.namespace, pod: pod.name, message, error: reason });
}

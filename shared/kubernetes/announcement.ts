import { hash as digest } from 'node:crypto';
import type { PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

/** `v1.PodReasonDeletionByTaintManager`: the reason of the condition `DisruptionTarget`. */
export const TAINT_MANAGER_REASON = 'DeletionByTaintManager';

/** `v1.PodReasonEvictionByEvictionAPI`: the reason if the Eviction API set the condition. */
export const EVICTION_API_REASON = 'EvictionByEvictionAPI';

/**
 * The strategic merge patch by which the built-in controller announces an eviction (`addConditionAndDeletePod`). The
 * UID guards against a recreated pod; the condition is merged by its type. Without `observedGeneration` if the server
 * counts no generations (0).
 */
export function disruptionPatch(uid: PodUid, generation: number, now: EpochMs): object {
  return {
    metadata: { uid },
    status: {
      conditions: [
        {
          type: 'DisruptionTarget',
          ...(generation > 0 ? { observedGeneration: generation } : {}),
          status: 'True',
          lastTransitionTime: timeText(now),
          reason: TAINT_MANAGER_REASON,
          message: 'Taint manager: deleting due to NoExecute taint',
        },
      ],
    },
  };
}

/** The built-in controller's name: users who filter Events by it find ours, too. */
const COMPONENT = 'taint-eviction-controller';
/** An object's name is a DNS subdomain (RFC 1123). */
const MAX_NAME_LENGTH = 253;
/** 64 bits of the key's hash: as long as the nanoseconds that upstream's recorder uses. */
const HASH_LENGTH = 16;

/** Returns the `core/v1.Event` that upstream's recorder would make, but named by its key. */
export function eventBody(event: PodEvent, now: EpochMs): object {
  const { namespace, name } = event.pod;
  const at = timeText(now);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(name, event.key), namespace },
    involvedObject: { kind: 'Pod', namespace, name, apiVersion: 'v1' },
    reason: event.reason,
    message: event.message,
    source: { component: COMPONENT },
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
    type: event.type,
    eventTime: null,
    reportingComponent: COMPONENT,
    reportingInstance: '',
  };
}

function eventName(pod: string, key: string): string {
  const hash = digest('sha256', key).slice(0, HASH_LENGTH);
  // The cut may leave a character that a part of a DNS name must not end in.
  return `${pod.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1).replace(/[-.]+$/, '')}.${hash}`;
}

/** A `core/v1.Event` about a pod, as the built-in controller writes it. */
export interface PodEvent {
  readonly pod: PodRef;
  /** Names the Event: posting the same key twice creates one Event. */
  readonly key: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

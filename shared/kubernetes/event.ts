import { createHash } from 'node:crypto';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { PodEvent } from './api.ts';
import { kubernetesTime } from './kubernetes-time.ts';

/** The built-in controller's name: whoever filters Events by it finds ours too. */
const COMPONENT = 'taint-eviction-controller';
/** An object's name is a DNS subdomain (RFC 1123). */
const MAX_NAME_LENGTH = 253;
/** 64 bits of the key's hash: as long as the nanoseconds that upstream's recorder puts there. */
const HASH_LENGTH = 16;

/** The `core/v1.Event` that upstream's recorder would make of it, but named by its key. */
export function eventBody(event: PodEvent, now: EpochMs): object {
  const { namespace, name } = event.pod;
  const at = kubernetesTime(now);
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
  const hash = createHash('sha256').update(key).digest('hex').slice(0, HASH_LENGTH);
  // A part of a DNS name must not end in what the cut may leave there.
  return `${pod.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1).replace(/[-.]+$/, '')}.${hash}`;
}

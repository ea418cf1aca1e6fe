import { randomBytes } from 'node:crypto';
import { type ApiObject, kubernetesTime, refOf } from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { Controller } from './reconcile-loop.ts';

interface Note {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly component: string;
}

/** Records an Event about an object of a namespace, as the real components do. */
export function noteEvent(store: ObjectStore, { apiVersion, kind, metadata }: ApiObject, note: Note): void {
  const { name, namespace = '', uid } = metadata;
  const at = kubernetesTime(store.now());
  store.create('events', namespace, {
    metadata: { name: `${name}.${randomBytes(8).toString('hex')}` },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type: note.type,
    reason: note.reason,
    message: note.message,
    source: { component: note.component },
    reportingComponent: note.component,
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  });
}

/** The time for which the real server keeps an Event (`--event-ttl`). */
const EVENT_TTL_MS = 3_600_000;

/** Removes expired Events. */
export function eventExpiry(store: ObjectStore): Controller {
  return {
    name: 'event-expiry',
    reconcile(now) {
      const waits: number[] = [];
      for (const event of store.all('events')) {
        const endsAt = Date.parse(event.metadata.creationTimestamp) + EVENT_TTL_MS;
        if (endsAt <= now) store.delete('events', refOf(event));
        else waits.push(endsAt);
      }
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
  };
}

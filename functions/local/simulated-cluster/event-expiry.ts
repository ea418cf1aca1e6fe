import { refOf } from './objects/kinds.ts';
import type { ObjectStore } from './objects/store.ts';
import type { Controller } from './reconcile-loop.ts';

/** How long the real server keeps an Event (`--event-ttl`). */
const EVENT_TTL_MS = 3_600_000;

/** Removes Events when their time is over. */
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

import type { EpochMs } from './objects/kinds.ts';
import { refOf } from './objects/kinds.ts';
import type { ObjectStore } from './objects/store.ts';
import type { Controller } from './reconcile-loop.ts';

/** How long the real collector waits for a node to come back (`quarantineTime`). */
const QUARANTINE_MS = 40_000;

/** Removes the pods of nodes that are no more: they have no kubelet to finish them. */
export function podGarbageCollector(store: ObjectStore): Controller {
  const missingSince = new Map<string, EpochMs>();
  return {
    name: 'pod-garbage-collector',
    reconcile(now) {
      const nodes = new Set(store.all('nodes').map(({ metadata }) => metadata.name));
      const orphans = store.all('pods').filter(({ spec }) => spec.nodeName && !nodes.has(spec.nodeName));
      const missing = new Set(orphans.map(({ spec }) => spec.nodeName ?? ''));
      for (const node of missingSince.keys()) if (!missing.has(node)) missingSince.delete(node);
      for (const node of missing) missingSince.set(node, missingSince.get(node) ?? now);
      const waits: EpochMs[] = [];
      for (const pod of orphans) {
        const endsAt = (missingSince.get(pod.spec.nodeName ?? '') ?? now) + QUARANTINE_MS;
        if (endsAt <= now) store.delete('pods', refOf(pod), { gracePeriodSeconds: 0 });
        else waits.push(endsAt);
      }
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
  };
}

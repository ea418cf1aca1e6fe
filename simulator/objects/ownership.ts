import { type ApiObject, refOf } from './kinds.ts';
import type { ObjectStore } from './store.ts';

/** The resources that controllers create, so that another object may own them. */
export const OWNED = ['pods', 'replicasets'] as const;

/** Removes the references to a deleted owner, so that the owned objects are kept. Upstream: the finalizer `orphan`. */
export function disown(store: ObjectStore, { metadata: { uid } }: ApiObject): void {
  for (const resource of OWNED) {
    for (const object of store.all(resource)) {
      const owners = object.metadata.ownerReferences ?? [];
      const others = owners.filter((owner) => owner.uid !== uid);
      if (others.length === owners.length) continue;
      store.update(resource, refOf(object), 'main', (current) => ({
        ...current,
        metadata: { ...current.metadata, ownerReferences: others },
      }));
    }
  }
}

import { type ApiObject, KINDS, RESOURCE_NAMES, type ResourceName, refOf } from '../objects/kinds.ts';
import { OWNED } from '../objects/ownership.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { Controller } from './reconcile-loop.ts';

/** Deletes objects whose owners are all deleted. */
export function garbageCollector(store: ObjectStore): Controller {
  return {
    name: 'garbage-collector',
    reconcile() {
      for (const resource of OWNED) {
        for (const object of store.all(resource)) {
          if (object.metadata.deletionTimestamp === undefined && isAbandoned(store, object)) {
            store.delete(resource, refOf(object));
          }
        }
      }
      return undefined;
    },
  };
}

function isAbandoned(store: ObjectStore, { metadata }: ApiObject): boolean {
  const owners = metadata.ownerReferences ?? [];
  return (
    owners.length > 0 &&
    owners.every(({ kind, name, uid }) => {
      const resource = resourceOf(kind);
      if (resource === undefined) return false;
      const namespace = resource === 'nodes' ? '' : (metadata.namespace ?? '');
      return store.find(resource, { namespace, name })?.metadata.uid !== uid;
    })
  );
}

const resourceOf = (kind: string): ResourceName | undefined =>
  RESOURCE_NAMES.find((resource) => KINDS[resource] === kind);

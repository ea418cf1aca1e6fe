import type { ChangedObject } from '#shared/operations/acts/preview.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { type Manifest, pathOf } from '#shared/operations/takeover/manifest.ts';

/** Objects that a change would write or delete, each once, in order. Rejects with `ApiError`. */
export async function changedObjects(
  objects: ClusterObjects,
  manifests: readonly Manifest[],
  change: 'apply' | 'delete',
): Promise<readonly ChangedObject[]> {
  const changes: ChangedObject[] = [];
  for (const [path, { kind, metadata }] of new Map(manifests.map((each) => [pathOf(each), each]))) {
    const isThere = (await objects.get(path)) !== undefined;
    const object = `${kind} ${metadata.name}`;
    if (change === 'apply') changes.push({ action: isThere ? 'update' : 'create', object });
    else if (isThere) changes.push({ action: 'delete', object });
  }
  return changes;
}

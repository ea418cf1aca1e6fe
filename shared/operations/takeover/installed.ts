import { isDeepStrictEqual } from 'node:util';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { fieldsOf, itemsOf } from '#shared/kubernetes/http/api-json.ts';
import { projectTakeover, TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { NODE_BINDING, nodePolicy } from './at-nodes.ts';
import { type Manifest, pathOf } from './manifest.ts';

/** Differences of a takeover's objects from this release, by kind and name. */
export interface Faults {
  readonly missing: readonly string[];
  readonly changed: readonly string[];
}

export interface InstalledTakeover {
  /** The object `takeovers/live`. Absent: it is missing. */
  readonly live?: Takeover;
  readonly faults: Faults;
}

type Found = Readonly<Record<string, unknown>> | undefined;

const LIVE = 'Takeover live';

/** `undefined`: there is none. Rejects with `ApiError`. */
export async function installedTakeover(objects: ClusterObjects): Promise<InstalledTakeover | undefined> {
  const found = await objects.get(TAKEOVER_PATH);
  const live = found && projectTakeover(found);
  const policy = nodePolicy({ keys: live?.keys ?? [], lapseSeconds: (live?.lapseMs ?? 0) / 1000 });
  const parts = await Promise.all(
    [policy, NODE_BINDING].map(async (wanted) => ({ wanted, found: await objects.get(pathOf(wanted)) })),
  );
  if (!live && parts.every((part) => !part.found)) return undefined;
  const faults = faultsIn(parts);
  // Without its parameter, the policy's options are unknown, so it cannot be compared.
  return live ? { live, faults } : { faults: { missing: [LIVE, ...faults.missing], changed: [] } };
}

function faultsIn(parts: readonly { readonly wanted: Manifest; readonly found: Found }[]): Faults {
  const names = (some: typeof parts) => some.map(({ wanted }) => `${wanted.kind} ${wanted.metadata.name}`);
  return {
    missing: names(parts.filter(({ found }) => !found)),
    changed: names(parts.filter(({ found, wanted }) => found && !covers(found['spec'], wanted['spec']))),
  };
}

/** `found` contains everything wanted. An API server adds defaults and leaves out empty fields. */
export function covers(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    const items = itemsOf(found);
    return items.length === wanted.length && wanted.every((each, index) => covers(items[index], each));
  }
  if (typeof wanted !== 'object' || wanted === null) return isDeepStrictEqual(found, wanted);
  const fields = fieldsOf(found);
  return Object.entries(wanted).every(([name, value]) => covers(fields[name], value));
}

import { isDeepStrictEqual } from 'node:util';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { projectTakeover, TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { NODE_BINDING, nodePolicy } from './at-nodes.ts';
import {
  chosenNamespaces,
  kyvernoPodTakeover,
  POD_BINDING,
  POD_TAKEOVER,
  type PodTakeover,
  podTakeover,
} from './at-pods.ts';
import { type Manifest, pathOf, type Requirement } from './manifest.ts';

/** Differences of a takeover's objects from this release, by kind and name. */
export interface Faults {
  readonly missing: readonly string[];
  readonly changed: readonly string[];
}

/** A complete or partial node-level takeover of a cluster. */
export interface InstalledNodeTakeover {
  /** The object `takeovers/live`. Absent: it is missing. */
  readonly live?: Takeover;
  readonly faults: Faults;
}

/** A pod-level takeover of a cluster. */
export interface InstalledPodTakeover {
  readonly by: 'the API server' | 'Kyverno';
  readonly spec: PodTakeover;
  readonly faults: Faults;
}

type Found = Readonly<Record<string, unknown>> | undefined;

const [NATIVE_POLICY] = podTakeover(POD_TAKEOVER);
const [KYVERNO_POLICY] = kyvernoPodTakeover(POD_TAKEOVER);
const LIVE = 'Takeover live';

/**
 * Reads the node-level takeover, complete or partial. `undefined`: there is none. Rejects with `ApiError`.
 */
export async function installedAtNodes(objects: ClusterObjects): Promise<InstalledNodeTakeover | undefined> {
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

/**
 * Reads the pod-level takeover, with its options from its policy. `undefined`: there is none. Rejects with
 * `ApiError`.
 */
export async function installedAtPods(objects: ClusterObjects): Promise<InstalledPodTakeover | undefined> {
  const [native, binding] = await Promise.all([
    NATIVE_POLICY && objects.get(pathOf(NATIVE_POLICY)),
    objects.get(pathOf(POD_BINDING)),
  ]);
  if (native) {
    const spec = specOf(native);
    const [policy = POD_BINDING] = podTakeover(spec);
    const faults = faultsIn([
      { wanted: policy, found: native },
      { wanted: POD_BINDING, found: binding },
    ]);
    return { by: 'the API server', spec, faults };
  }
  const found = KYVERNO_POLICY && (await objects.get(pathOf(KYVERNO_POLICY)));
  if (!found) return undefined;
  const spec = specOf(found);
  return {
    by: 'Kyverno',
    spec,
    faults: faultsIn(kyvernoPodTakeover(spec).map((wanted) => ({ wanted, found }))),
  };
}

function faultsIn(parts: readonly { readonly wanted: Manifest; readonly found: Found }[]): Faults {
  const names = (some: typeof parts) => some.map(({ wanted }) => `${wanted.kind} ${wanted.metadata.name}`);
  return {
    missing: names(parts.filter(({ found }) => !found)),
    changed: names(parts.filter(({ found, wanted }) => found && !covers(found['spec'], wanted['spec']))),
  };
}

/**
 * Reports whether `found` contains everything wanted. An API server adds defaults and leaves out empty
 * fields.
 */
export function covers(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    const items = itemsOf(found);
    return items.length === wanted.length && wanted.every((each, index) => covers(items[index], each));
  }
  if (typeof wanted !== 'object' || wanted === null) return isDeepStrictEqual(found, wanted);
  const fields = fieldsOf(found);
  return Object.entries(wanted).every(([name, value]) => covers(fields[name], value));
}

/**
 * Returns the options from which a policy was made. If the policy isn't Taintward's, returns as much as can
 * be read.
 */
function specOf(policy: Readonly<Record<string, unknown>>): PodTakeover {
  const { variables, matchConstraints } = fieldsOf(policy['spec']);
  const expression = (name: string) =>
    textOf(
      itemsOf(variables)
        .map(fieldsOf)
        .find((each) => each['name'] === name)?.['expression'],
    );
  const { matchExpressions } = fieldsOf(fieldsOf(matchConstraints)['namespaceSelector']);
  return {
    keys: [...expression('keys').matchAll(/"([^"]*)"/g)].map(([, key = '']) => key),
    fallbackSeconds: Number(expression('fallback')),
    namespaces: chosenNamespaces(itemsOf(matchExpressions) as Requirement[]),
  };
}

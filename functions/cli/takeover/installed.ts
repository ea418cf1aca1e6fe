import type { ClusterObjects } from '#functions/operator/cluster-objects.ts';
import { NODE_BINDING } from '#functions/operator/takeover/at-nodes.ts';
import {
  kyvernoPodTakeover,
  POD_BINDING,
  POD_TAKEOVER,
  type PodTakeover,
  podTakeover,
} from '#functions/operator/takeover/at-pods.ts';
import { pathOf, type Requirement } from '#functions/operator/takeover/manifest.ts';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/api-json.ts';
import { projectTakeover, TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';

/** A takeover at the pods that a cluster has. */
export interface InstalledPodTakeover {
  readonly by: 'the API server' | 'Kyverno';
  readonly spec: PodTakeover;
}

const [NATIVE_POLICY] = podTakeover(POD_TAKEOVER);
const [KYVERNO_POLICY] = kyvernoPodTakeover(POD_TAKEOVER);

/** What takes over at the nodes, if something does. */
export async function installedAtNodes(objects: ClusterObjects): Promise<Takeover | undefined> {
  const [binding, live] = await Promise.all([objects.get(pathOf(NODE_BINDING)), objects.get(TAKEOVER_PATH)]);
  return binding && live && projectTakeover(live);
}

/** What takes over at the pods, if something does: its policy says how. */
export async function installedAtPods(objects: ClusterObjects): Promise<InstalledPodTakeover | undefined> {
  if (NATIVE_POLICY && (await objects.get(pathOf(POD_BINDING)))) {
    const policy = await objects.get(pathOf(NATIVE_POLICY));
    if (policy) return { by: 'the API server', spec: specOf(policy) };
  }
  const policy = KYVERNO_POLICY && (await objects.get(pathOf(KYVERNO_POLICY)));
  return policy && { by: 'Kyverno', spec: specOf(policy) };
}

/** What its policy was made of. */
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
    keys: itemsOf(JSON.parse(expression('keys'))).map(textOf),
    fallbackSeconds: Number(expression('fallback')),
    // The first keeps out whom a takeover is never for.
    namespaces: itemsOf(matchExpressions).slice(1) as Requirement[],
  };
}

import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import { type PodTakeover, selectedNamespaces } from './at-pods.ts';
import { selectorText } from './label-selector.ts';
import { type PodJson, projectTakenPod } from './taken-pod.ts';
import { type PodState, takenOver } from './taken-tolerations.ts';

/** Returns the names of the namespaces that a takeover applies to. */
export async function namespacesOf(
  objects: ClusterObjects,
  takeover: PodTakeover,
): Promise<readonly string[]> {
  const labelSelector = selectorText(selectedNamespaces(takeover.namespaces));
  const names: string[] = [];
  for await (const { metadata } of objects.list('/api/v1/namespaces', { labelSelector }))
    names.push(textOf(fieldsOf(metadata)['name']));
  return names;
}

/** Yields the pods of these namespaces. */
export async function* podsOf(
  objects: ClusterObjects,
  namespaces: readonly string[],
): AsyncGenerator<PodJson, void, undefined> {
  for (const namespace of namespaces)
    for await (const pod of objects.list(`/api/v1/namespaces/${namespace}/pods`)) yield projectTakenPod(pod);
}

/**
 * Returns the names of nodes with a NoExecute taint. The built-in controller may have timers for their pods.
 */
export async function taintedNodes(objects: ClusterObjects): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for await (const { metadata, spec } of objects.list('/api/v1/nodes')) {
    const taints = fieldsOf(spec)['taints'];
    if (Array.isArray(taints) && taints.some((taint) => fieldsOf(taint)['effect'] === 'NoExecute'))
      names.add(textOf(fieldsOf(metadata)['name']));
  }
  return names;
}

/**
 * Returns the error with which a namespace would reject a taken-over pod, because an admission plugin may
 * allow only some tolerations. `undefined`: it would admit the pod, or would reject it without the takeover,
 * too.
 */
export async function refusalIn(
  objects: ClusterObjects,
  namespace: string,
  takeover: PodTakeover,
): Promise<string | undefined> {
  const plain = { tolerations: [], note: '' };
  const asTaken = takenOver(plain, takeover) ?? plain;
  try {
    await objects.tryCreate(`/api/v1/namespaces/${namespace}/pods`, trialPod(asTaken));
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0) throw error;
    const refusedAnyway = await objects
      .tryCreate(`/api/v1/namespaces/${namespace}/pods`, trialPod(plain))
      .then(
        () => false,
        () => true,
      );
    return refusedAnyway ? undefined : error.message;
  }
}

/**
 * Reports whether a new pod is taken over, in the first of these namespaces that admits one. `undefined`:
 * none admits a pod. For example, a namespace admits none if it is being deleted or its quota is used up.
 */
export async function takesOverIn(
  objects: ClusterObjects,
  namespaces: readonly string[],
): Promise<boolean | undefined> {
  for (const namespace of namespaces) {
    const isTaken = await takesOver(objects, namespace);
    if (isTaken !== undefined) return isTaken;
  }
  return undefined;
}

async function takesOver(objects: ClusterObjects, namespace: string): Promise<boolean | undefined> {
  try {
    const made = await objects.tryCreate(
      `/api/v1/namespaces/${namespace}/pods`,
      trialPod({ tolerations: [], note: '' }),
    );
    const { annotations } = fieldsOf(made['metadata']);
    return TAKEOVER_ANNOTATION in fieldsOf(annotations);
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) return undefined;
    throw error;
  }
}

/** A pod for dry runs that restricted namespaces admit, too. */
const trialPod = ({ tolerations, note }: PodState): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    generateName: 'taintward-takeover-trial-',
    ...(note === '' ? {} : { annotations: { [TAKEOVER_ANNOTATION]: note } }),
  },
  spec: {
    automountServiceAccountToken: false,
    tolerations,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'trial',
        image: 'registry.k8s.io/pause:3.10',
        resources: { requests: { cpu: '1m', memory: '1Mi' }, limits: { cpu: '1m', memory: '1Mi' } },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
});

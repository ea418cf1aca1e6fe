import { isTarget } from '#shared/eviction/gate.ts';
import { type ClusterName, nodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget } from '#shared/eviction/policy.ts';
import { selectorText } from '#shared/eviction/selectors.ts';
import type { Fact } from '#shared/explain/known.ts';
import { projectPod } from '#shared/kubernetes/project.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type LiveCluster, withCluster } from '../fleet/live-cluster.ts';
import { zonesIn } from '../look/zones.ts';
import { factOf } from './facts.ts';
import type { OwnedPod } from './workload-finder.ts';

/** Reports whether a hold would prevent anything now. Unknown, with the reason, if the cluster can't be asked. */
export const targetExists = (
  fleet: Fleet,
  cluster: ClusterName,
  target: HoldTarget,
): Promise<Fact<boolean>> => factOf(() => withCluster(fleet, cluster, (live) => exists(live, target)));

async function exists({ api, objects }: LiveCluster, target: HoldTarget): Promise<boolean> {
  switch (target.kind) {
    case 'node':
      return (await api.getNode(target.node)) !== undefined;
    case 'pod':
      return (await api.getPod(target)) !== undefined;
    case 'zone':
      return [...(await zonesIn(objects)).values()].includes(target.zone);
    case 'workload':
    case 'namespace':
    case 'labels':
      return hasPods(objects, target);
    default:
      return target satisfies never;
  }
}

async function hasPods(objects: LiveCluster['objects'], target: PodsTarget): Promise<boolean> {
  for await (const _ of podsOf(objects, target)) return true;
  return false;
}

type PodsTarget = Extract<HoldTarget, { readonly kind: 'workload' | 'namespace' | 'labels' }>;

/** Yields the pods of a target. Rejects with `ApiError`. */
export async function* podsOf(objects: LiveCluster['objects'], target: PodsTarget): AsyncGenerator<OwnedPod> {
  const { namespace } = target;
  const path = `/api/v1/${namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`}pods`;
  const query = target.kind === 'labels' ? { labelSelector: selectorText(target.labels) } : {};
  for await (const json of objects.list(path, query)) {
    const pod = projectPod(json);
    const { node = nodeName('') } = pod;
    if (isTarget(target, { node, zone: undefined, record: pod, traits: pod })) yield { pod, json };
  }
}

import type { BuiltIn } from '#shared/explain/built-in.ts';
import { TAINT_MANAGER_REASON } from '#shared/kubernetes/announcement.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';

const CONTROLLER = 'taint-eviction-controller';
const MANAGER_PODS = '/api/v1/namespaces/kube-system/pods';
const EKS_METRICS = '/apis/metrics.eks.amazonaws.com/v1/kcm/container/metrics';
const WORK_QUEUE = 'noexec_taint_node';
/** Platform that the simulated cluster of `npm start` reports at `/version`. */
const SIMULATED = 'simulated';
/** Prefix of the field managers of Taintward's marks. */
const OUR_MANAGER = 'taintward';
/** Number of nodes whose pods are checked for marks. */
const NODES_CHECKED = 20;

/**
 * Determines the state of the built-in controller, from the first available evidence:
 * - the flags of a control plane that runs in the cluster
 * - the metrics that EKS serves
 * - the version of an API server that has no controllers
 * - marks on pods that only the built-in controller can have made
 *
 * Events are no evidence, because Taintward's have its name. Rejects with `ApiError`.
 */
export async function builtInOf(objects: ClusterObjects): Promise<BuiltIn> {
  return (
    (await byFlags(objects)) ??
    (await byMetrics(objects)) ??
    (await byVersion(objects)) ??
    (await byMarks(objects)) ?? {
      state: 'unknown',
      evidence: 'its control plane shows neither flags nor metrics, and no pod is marked by it',
    }
  );
}

async function byFlags(objects: ClusterObjects): Promise<BuiltIn | undefined> {
  const pods: (readonly string[])[] = [];
  const labelSelector = 'component=kube-controller-manager';
  for await (const { spec } of objects.list(MANAGER_PODS, { labelSelector })) {
    const containers = itemsOf(fieldsOf(spec)['containers']).map(fieldsOf);
    pods.push(containers.flatMap(({ command, args }) => [...itemsOf(command), ...itemsOf(args)].map(textOf)));
  }
  if (pods.length === 0) return undefined;
  const on = pods.filter(runsIt).length;
  return {
    state: on > 0 ? 'on' : 'off',
    evidence: `the flags of ${on > 0 ? on : pods.length} of ${pods.length} kube-controller-manager pods`,
  };
}

/** By default, every controller runs that isn't disabled. Upstream: `IsControllerEnabled`. */
export function runsIt(flags: readonly string[]): boolean {
  const [given] = flags.flatMap((flag, at) =>
    flag === '--controllers'
      ? [flags[at + 1] ?? '']
      : flag.startsWith('--controllers=')
        ? [flag.slice(14)]
        : [],
  );
  const controllers = (given ?? '*').split(',').map((name) => name.trim());
  if (controllers.includes(CONTROLLER)) return true;
  return controllers.includes('*') && !controllers.includes(`-${CONTROLLER}`);
}

async function byMetrics(objects: ClusterObjects): Promise<BuiltIn | undefined> {
  const text = await unlessRefused(objects.text(EKS_METRICS));
  // The cluster isn't an EKS cluster, or the credentials may not read its metrics.
  if (text === undefined) return undefined;
  const on = text.includes(WORK_QUEUE);
  return {
    state: on ? 'on' : 'off',
    evidence: `the metrics that EKS serves ${on ? 'name' : 'do not name'} its work queue`,
  };
}

async function byVersion(objects: ClusterObjects): Promise<BuiltIn | undefined> {
  const { platform } = (await unlessRefused(objects.get('/version'))) ?? {};
  if (platform !== SIMULATED) return undefined;
  return { state: 'off', evidence: 'the version of its API server, which is a simulated one' };
}

/** `undefined`: the API server responded with an error. */
async function unlessRefused<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) return undefined;
    throw error;
  }
}

async function byMarks(objects: ClusterObjects): Promise<BuiltIn | undefined> {
  let checked = 0;
  for await (const node of objects.list('/api/v1/nodes')) {
    const taints = itemsOf(fieldsOf(node['spec'])['taints']).map(fieldsOf);
    if (!taints.some(({ effect }) => effect === 'NoExecute')) continue;
    if (checked >= NODES_CHECKED) return undefined;
    checked += 1;
    const fieldSelector = `spec.nodeName=${textOf(fieldsOf(node['metadata'])['name'])}`;
    for await (const pod of objects.list('/api/v1/pods', { fieldSelector })) {
      const marker = markerOf(pod);
      if (marker === undefined || marker.startsWith(OUR_MANAGER)) continue;
      const { namespace, name } = fieldsOf(pod['metadata']);
      return { state: 'on', evidence: `pod ${textOf(namespace)}/${textOf(name)} was marked by ${marker}` };
    }
  }
  return undefined;
}

/** Returns the field manager that marked a pod as evicted by a taint. `undefined`: the pod has no mark. */
export function markerOf(pod: Readonly<Record<string, unknown>>): string | undefined {
  const conditions = itemsOf(fieldsOf(pod['status'])['conditions']).map(fieldsOf);
  const marked = conditions.some(
    ({ type, reason }) => type === 'DisruptionTarget' && reason === TAINT_MANAGER_REASON,
  );
  if (!marked) return undefined;
  const owner = itemsOf(fieldsOf(pod['metadata'])['managedFields'])
    .map(fieldsOf)
    .find(({ fieldsV1 }) => {
      const owned = fieldsOf(fieldsOf(fieldsOf(fieldsV1)['f:status'])['f:conditions']);
      return 'k:{"type":"DisruptionTarget"}' in owned;
    });
  return owner && textOf(owner['manager']);
}

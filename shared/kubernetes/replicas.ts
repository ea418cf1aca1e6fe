import type { Permission } from '#shared/kubernetes/http/call.ts';
import { fieldsOf } from './http/api-json.ts';

/** A workload, by its kind and its name in a namespace. */
export interface WorkloadRef {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** Of the kinds whose replicas can be counted: where they are, and which field says how many there are to be. */
const COUNTED: Readonly<
  Record<string, { group: string; resource: string; field: readonly [string, string] }>
> = {
  Deployment: { group: 'apps', resource: 'deployments', field: ['spec', 'replicas'] },
  ReplicaSet: { group: 'apps', resource: 'replicasets', field: ['spec', 'replicas'] },
  StatefulSet: { group: 'apps', resource: 'statefulsets', field: ['spec', 'replicas'] },
  DaemonSet: { group: 'apps', resource: 'daemonsets', field: ['status', 'desiredNumberScheduled'] },
  Job: { group: 'batch', resource: 'jobs', field: ['spec', 'parallelism'] },
  ReplicationController: { group: '', resource: 'replicationcontrollers', field: ['spec', 'replicas'] },
};

/** What `evict` does besides where a policy limits evictions of each workload by a percentage: it counts replicas. */
export const WORKLOAD_PERMISSIONS: readonly Permission[] = Object.values(COUNTED).map(
  ({ group, resource }) => ({
    verb: 'get',
    resource,
    ...(group === '' ? {} : { group }),
  }),
);

/** How a workload is asked for its replicas; `undefined`: of its kind nobody can be asked. */
export function replicasCall({ namespace, kind, name }: WorkloadRef) {
  const counted = Object.hasOwn(COUNTED, kind) ? COUNTED[kind] : undefined;
  if (!counted) return undefined;
  const { group, resource } = counted;
  const root = group === '' ? '/api/v1' : `/apis/${group}/v1`;
  const path = `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
  return { verb: 'get', resource, object: `${namespace}/${name}`, path } as const;
}

/** How many replicas a workload is to have, as its JSON says; `undefined`: it does not. */
export function projectReplicas({ kind }: WorkloadRef, json: unknown): number | undefined {
  const [part = '', field = ''] = COUNTED[kind]?.field ?? [];
  const replicas = fieldsOf(fieldsOf(json)[part])[field];
  return typeof replicas === 'number' ? replicas : undefined;
}

import type { Permission } from '#shared/kubernetes/http/call.ts';
import { fieldsOf } from './http/api-json.ts';

export interface WorkloadRef {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** Kinds whose replicas can be counted, with their resources and the field of the desired number. */
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

/** For limits by a percentage, `evict` counts replicas. */
export const WORKLOAD_PERMISSIONS: readonly Permission[] = Object.values(COUNTED).map(
  ({ group, resource }) => ({
    verb: 'get',
    resource,
    ...(group === '' ? {} : { group }),
  }),
);

/** Returns the call that reads a workload's replicas; `undefined`: its kind has no replicas that can be counted. */
export function replicasCall({ namespace, kind, name }: WorkloadRef) {
  const counted = Object.hasOwn(COUNTED, kind) ? COUNTED[kind] : undefined;
  if (!counted) return undefined;
  const { group, resource } = counted;
  const root = group === '' ? '/api/v1' : `/apis/${group}/v1`;
  const path = `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
  return { verb: 'get', resource, object: `${namespace}/${name}`, path } as const;
}

/** Returns the desired number of replicas in a workload's JSON; `undefined`: the JSON does not contain it. */
export function projectReplicas({ kind }: WorkloadRef, json: unknown): number | undefined {
  const [part = '', field = ''] = COUNTED[kind]?.field ?? [];
  const replicas = fieldsOf(fieldsOf(json)[part])[field];
  return typeof replicas === 'number' ? replicas : undefined;
}

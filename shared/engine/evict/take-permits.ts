import type { PodUid } from '#shared/eviction/identity.ts';
import type { PodOutcome } from '#shared/eviction/outcome.ts';
import { PERMIT_LASTS_MS, permitted, type Workload, workloadOf } from '#shared/eviction/permits.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { KubernetesApi, LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { evictionOf, type FirstView } from './node-reader.ts';
import type { PassScope } from './ports.ts';

/** If replicas may not be counted, pods ask again after this time. */
const FORBIDDEN_RETRY_MS = 60_000;

interface Asking {
  readonly record: EvictionRecord;
  readonly pod: LivePod;
  readonly workload: Workload;
}

/** The time until which a pod with a permit may be deleted, or the outcome of a pod without one. */
export type PermitAnswer = { readonly kind: 'permitted'; readonly until: EpochMs } | PodOutcome;

/** Returns the workload that limits the evictions of pods like this, if policy sets a limit. */
export const limitingWorkload = ({ policy }: Rules, pod: LivePod): Workload | undefined =>
  policy.maxEvictionsPerWorkload && workloadOf(pod);

/**
 * Takes permits for the due pods that a limit concerns, one call for each workload. Rejects with `StoreError`, and with
 * `ApiError` if replicas can't be read.
 */
export async function takePermits(
  due: readonly EvictionRecord[],
  { view: { rules, verdict }, pods }: FirstView,
  scope: PassScope,
): Promise<ReadonlyMap<PodUid, PermitAnswer>> {
  const asking = due.flatMap((record) => {
    const pod = pods.get(record.uid);
    const workload = pod && limitingWorkload(rules, pod);
    if (!workload) return [];
    const found = evictionOf(verdict(record, pod));
    return found && !found.unlimited ? { record, pod, workload } : [];
  });
  const workloads = Map.groupBy(asking, ({ pod, workload: { kind, name } }) =>
    [pod.namespace, kind, name].join('/'),
  );
  const taken = await Promise.all(Array.from(workloads, ([key, pods]) => takeFor(key, pods, rules, scope)));
  return new Map(taken.flat());
}

async function takeFor(
  key: string,
  asking: readonly Asking[],
  { policy, policyRevision: revision, guardRevision }: Rules,
  { partition, api, permits, clock }: PassScope,
): Promise<readonly (readonly [PodUid, PermitAnswer])[]> {
  const { maxEvictionsPerWorkload: limit } = policy;
  const [first] = asking;
  if (!limit || !first) return [];
  const count = await countOf(limit.count, api, { namespace: first.pod.namespace, ...first.workload });
  const now = clock.now();
  const { windowMs } = limit;
  const { cluster } = partition.ref;
  const uids = asking.map(({ record }) => record.uid);
  const moments = count === undefined ? [] : await permits.take(cluster, key, uids, { count, windowMs }, now);
  return asking.map(({ record: { turnAt: _turnAt, ...record }, workload }, index) => {
    const until = moments[index] ?? now + FORBIDDEN_RETRY_MS;
    if (until <= now) return [record.uid, { kind: 'permitted', until: now + PERMIT_LASTS_MS }];
    const limit = { workload: `${workload.kind}/${workload.name}`, windowMs };
    const limited = count === undefined ? limit : { ...limit, count };
    const gate = { kind: 'workload-limit' as const, ...limited, revision, guardRevision, until };
    const since = record.held?.by.kind === gate.kind ? record.held.since : now;
    return [record.uid, { kind: 'hold', record: { ...record, held: { by: gate, since, until } } }];
  });
}

/** `undefined`: unknown without the permission to count the workload's replicas. */
async function countOf(
  count: number | string,
  api: KubernetesApi,
  workload: Workload & { readonly namespace: string },
): Promise<number | undefined> {
  if (typeof count === 'number') return count;
  try {
    return permitted(count, await api.getReplicas(workload));
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  }
}

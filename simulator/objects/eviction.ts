import type { ConditionObject } from './core-kinds.ts';
import {
  type DisruptionBudgetObject,
  kubernetesTime,
  type ObjectRef,
  type PodObject,
  refOf,
} from './kinds.ts';
import { selectsLabels } from './label-selector.ts';
import { checkPreconditions } from './metadata.ts';
import { forbidden, StatusError } from './status.ts';
import type { DeleteRequest, ObjectStore } from './store.ts';

/**
 * Deletes a pod if its disruption budget allows it, with the condition `DisruptionTarget`. Throws 404 when there is no such pod
 * and 409 when a precondition fails. Throws 429 when the budget forbids it, and 500 when the pod has more than one budget.
 * Upstream: `EvictionREST.Create`.
 */
export function evict(store: ObjectStore, ref: ObjectRef, request: DeleteRequest): void {
  const pod = store.get('pods', ref);
  if (!goesWithoutBudget(pod)) {
    const [budget, another] = budgetsOf(store, pod);
    if (another !== undefined) throw MORE_THAN_ONE;
    if (budget !== undefined && !isUnhealthyAndFree(pod, budget)) takeFrom(store, budget, pod, request);
  }
  if (request.dryRun !== true) {
    checkPreconditions(pod, request.preconditions ?? {});
    markEvicted(store, pod);
  }
  const { preconditions: { resourceVersion, ...preconditions } = {}, ...options } = request;
  // The version was checked before the server itself changed the pod.
  store.delete('pods', ref, { ...options, preconditions });
}

const MORE_THAN_ONE = new StatusError(
  500,
  '',
  'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
);

/**
 * Reports whether evicting the pod is no disruption: it has ended, has not started, or is terminating. Upstream: `canIgnorePDB`.
 */
const goesWithoutBudget = ({ metadata, status }: PodObject): boolean =>
  metadata.deletionTimestamp !== undefined || ['Succeeded', 'Failed', 'Pending'].includes(status.phase ?? '');

const budgetsOf = (store: ObjectStore, { metadata }: PodObject): readonly DisruptionBudgetObject[] =>
  store
    .all('poddisruptionbudgets')
    .filter((budget) => budget.metadata.namespace === metadata.namespace)
    .filter((budget) => selectsLabels(budget.spec.selector, metadata.labels));

/** Reports whether a pod is not ready, so that the budget does not count it, and the budget's policy allows its eviction. */
function isUnhealthyAndFree(
  { status }: PodObject,
  { spec, status: budget }: DisruptionBudgetObject,
): boolean {
  if (status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True')) return false;
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  return budget.currentHealthy >= budget.desiredHealthy && budget.desiredHealthy > 0;
}

/** The maximum size of the map of granted evictions (`MaxDisruptedPodSize`). */
const MAX_DISRUPTED_PODS = 2000;
/** The time after which to retry while the budget's controller is behind. */
const RETRY_AFTER_SECONDS = 10;

/** Takes one disruption from a budget. Throws 429 when it has none. Upstream: `checkAndDecrement`. */
function takeFrom(
  store: ObjectStore,
  budget: DisruptionBudgetObject,
  pod: PodObject,
  { dryRun = false }: DeleteRequest,
): void {
  const { metadata, status } = budget;
  const { name } = metadata;
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    throw refused(
      `The disruption budget ${name} is still being processed by the server.`,
      RETRY_AFTER_SECONDS,
    );
  }
  if (status.disruptionsAllowed < 0) {
    throw forbidden('poddisruptionbudget.policy', name, 'pdb disruptions allowed is negative');
  }
  if (Object.keys(status.disruptedPods ?? {}).length > MAX_DISRUPTED_PODS) {
    const why = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    throw forbidden('poddisruptionbudget.policy', name, why);
  }
  if (status.disruptionsAllowed === 0) throw refused(whyNone(budget));
  const disruptionsAllowed = status.disruptionsAllowed - 1;
  const granted = (current: DisruptionBudgetObject): DisruptionBudgetObject => ({
    ...current,
    status: {
      ...current.status,
      disruptionsAllowed,
      disruptedPods: { ...current.status.disruptedPods, [pod.metadata.name]: kubernetesTime(store.now()) },
      conditions: [disruptionAllowed(current, disruptionsAllowed, kubernetesTime(store.now()))],
    },
  });
  store.update('poddisruptionbudgets', refOf(budget), 'status', granted, { dryRun });
}

function whyNone({ metadata: { name }, status }: DisruptionBudgetObject): string {
  const condition = status.conditions?.find(({ type }) => type === 'DisruptionAllowed');
  const message = condition?.status === 'False' ? (condition.message ?? '') : '';
  if (message !== '' && condition?.reason === 'SyncFailed') {
    return `The disruption budget ${name} does not allow evicting pods currently because it failed sync: ${message}`;
  }
  if (status.currentHealthy <= status.desiredHealthy) {
    return (
      `The disruption budget ${name} needs ${status.desiredHealthy} healthy pods ` +
      `and has ${status.currentHealthy} currently`
    );
  }
  if (message !== '') {
    return `The disruption budget ${name} does not allow evicting pods currently (${condition?.reason}): ${message}`;
  }
  return `The disruption budget ${name} does not allow evicting pods currently`;
}

const refused = (why: string, retryAfterSeconds?: number) =>
  new StatusError(
    429,
    'TooManyRequests',
    "Cannot evict pod as it would violate the pod's disruption budget.",
    {
      causes: [{ reason: 'DisruptionBudget', message: why }],
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  );

/** Returns a budget's only condition. Upstream: `UpdateDisruptionAllowedCondition`. */
export function disruptionAllowed(
  { metadata, status }: DisruptionBudgetObject,
  allowed: number,
  now: string,
): ConditionObject {
  const old = status.conditions?.find(({ type }) => type === 'DisruptionAllowed');
  const isAllowed = allowed > 0 ? 'True' : 'False';
  return {
    type: 'DisruptionAllowed',
    status: isAllowed,
    observedGeneration: metadata.generation ?? 0,
    lastTransitionTime: (old?.status === isAllowed ? old.lastTransitionTime : undefined) ?? now,
    reason: allowed > 0 ? 'SufficientPods' : 'InsufficientPods',
    message: '',
  };
}

function markEvicted(store: ObjectStore, pod: PodObject): void {
  const old = pod.status.conditions?.find(({ type }) => type === 'DisruptionTarget');
  const marked = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
    lastTransitionTime:
      (old?.status === 'True' ? old.lastTransitionTime : undefined) ?? kubernetesTime(store.now()),
  };
  const others = (pod.status.conditions ?? []).filter((condition) => condition !== old);
  store.update(
    'pods',
    refOf(pod),
    'status',
    (current) => ({ ...current, status: { ...current.status, conditions: [...others, marked] } }),
    { isOwn: true },
  );
}

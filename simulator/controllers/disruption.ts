import { isDeepStrictEqual } from 'node:util';
import { disruptionAllowed } from '../objects/eviction.ts';
import {
  controllerOf,
  type DisruptionBudgetObject,
  type EpochMs,
  kubernetesTime,
  type PodObject,
  refOf,
} from '../objects/kinds.ts';
import { selectsLabels } from '../objects/label-selector.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { Controller } from './reconcile-loop.ts';
import { conditionSince, earliest, isReady, scaled } from './workload-pods.ts';

/** The time for which an evicted pod counts as deleted before its deletion is seen (`DeletionTimeout`). */
const DELETION_TIMEOUT_MS = 120_000;

/** Keeps the status of each disruption budget: the number of healthy pods, and the number of disruptions allowed. */
export function disruptionController(store: ObjectStore): Controller {
  return {
    name: 'disruption',
    reconcile: (now) =>
      earliest(store.all('poddisruptionbudgets').map((budget) => reconcile(store, budget, now))),
  };
}

type Status = DisruptionBudgetObject['status'];

function reconcile(store: ObjectStore, budget: DisruptionBudgetObject, now: EpochMs): EpochMs | undefined {
  const pods = store
    .all('pods')
    .filter(({ metadata }) => metadata.namespace === budget.metadata.namespace)
    .filter(({ metadata }) => selectsLabels(budget.spec.selector, metadata.labels));
  const disrupted = stillDisrupted(budget, pods, now);
  const expected = expectedPods(store, budget, pods);
  const status =
    typeof expected === 'string'
      ? failed(budget, expected, now)
      : counted(budget, expected, healthy(pods, disrupted), disrupted, now);
  if (!isDeepStrictEqual(status, budget.status)) {
    store.update('poddisruptionbudgets', refOf(budget), 'status', (one) => ({ ...one, status }));
  }
  return earliest(Object.values(disrupted).map((since) => Date.parse(since) + DELETION_TIMEOUT_MS));
}

function counted(
  budget: DisruptionBudgetObject,
  { expected, desired }: Expectation,
  currentHealthy: number,
  disrupted: Readonly<Record<string, string>>,
  now: EpochMs,
): Status {
  const disruptionsAllowed = expected <= 0 ? 0 : Math.max(0, currentHealthy - desired);
  return {
    observedGeneration: budget.metadata.generation ?? 0,
    ...(Object.keys(disrupted).length === 0 ? {} : { disruptedPods: disrupted }),
    disruptionsAllowed,
    currentHealthy,
    desiredHealthy: desired,
    expectedPods: expected,
    conditions: [disruptionAllowed(budget, disruptionsAllowed, kubernetesTime(now))],
  };
}

/** Allows no disruption while the expected number of pods is unknown. Upstream: `failSafe`. */
function failed({ status }: DisruptionBudgetObject, message: string, now: EpochMs): Status {
  const condition = {
    type: 'DisruptionAllowed',
    status: 'False',
    reason: 'SyncFailed',
    message,
    ...(status.observedGeneration === undefined ? {} : { observedGeneration: status.observedGeneration }),
  };
  return {
    ...status,
    disruptionsAllowed: 0,
    conditions: [conditionSince(status.conditions ?? [], condition, now)],
  };
}

/** Returns the pods whose eviction was granted and that are not terminating yet. Upstream: `buildDisruptedPodMap`. */
function stillDisrupted(
  { status }: DisruptionBudgetObject,
  pods: readonly PodObject[],
  now: EpochMs,
): Readonly<Record<string, string>> {
  const waiting = pods.flatMap(({ metadata }): [string, string][] => {
    const since = status.disruptedPods?.[metadata.name];
    if (since === undefined || metadata.deletionTimestamp !== undefined) return [];
    return Date.parse(since) + DELETION_TIMEOUT_MS <= now ? [] : [[metadata.name, since]];
  });
  return Object.fromEntries(waiting);
}

const healthy = (pods: readonly PodObject[], disrupted: Readonly<Record<string, string>>): number =>
  pods.filter(
    (pod) =>
      pod.metadata.deletionTimestamp === undefined &&
      disrupted[pod.metadata.name] === undefined &&
      isReady(pod),
  ).length;

interface Expectation {
  /** The number of pods that should exist. */
  readonly expected: number;
  /** The number of pods that have to be healthy. */
  readonly desired: number;
}

/** Returns the numbers that a budget asks for, or the reason why they can't be computed. Upstream: `getExpectedPodCount`. */
function expectedPods(
  store: ObjectStore,
  { spec }: DisruptionBudgetObject,
  pods: readonly PodObject[],
): Expectation | string {
  const { minAvailable, maxUnavailable } = spec;
  if (maxUnavailable === undefined && typeof minAvailable !== 'string') {
    return minAvailable === undefined
      ? { expected: 0, desired: 0 }
      : { expected: pods.length, desired: minAvailable };
  }
  const expected = expectedScale(store, pods);
  if (typeof expected === 'string') return expected;
  if (maxUnavailable === undefined) return { expected, desired: scaled(minAvailable, expected, 'up') };
  return { expected, desired: Math.max(0, expected - scaled(maxUnavailable, expected, 'up')) };
}

/** Returns the sum of the sizes of all workloads that control any of the pods. A pod without a controller does not count. */
function expectedScale(store: ObjectStore, pods: readonly PodObject[]): number | string {
  const sizes = new Map<string, number>();
  for (const pod of pods) {
    const controller = controllerOf(pod);
    if (controller === undefined || sizes.has(controller.uid)) continue;
    const found = scaleOf(store, pod);
    if (found === undefined) return `found no controllers for pod "${pod.metadata.name}"`;
    sizes.set(found.uid, found.replicas);
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

function scaleOf(store: ObjectStore, pod: PodObject): { uid: string; replicas: number } | undefined {
  const { kind = '', name = '', uid = '' } = controllerOf(pod) ?? {};
  const namespace = pod.metadata.namespace ?? '';
  const resource = kind === 'ReplicaSet' ? 'replicasets' : 'statefulsets';
  if (kind !== 'ReplicaSet' && kind !== 'StatefulSet') return undefined;
  const found = store.find(resource, { namespace, name });
  if (found?.metadata.uid !== uid) return undefined;
  const owner = resource === 'replicasets' ? controllerOf(found) : undefined;
  const deployment = store.find('deployments', { namespace, name: owner?.name ?? '' });
  const scale = deployment?.metadata.uid === owner?.uid && deployment ? deployment : found;
  return { uid, replicas: scale.spec.replicas ?? 1 };
}

import { isDeepStrictEqual } from 'node:util';
import { type EpochMs, type PodObject, type ReplicaSetObject, refOf } from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { Controller } from './reconcile-loop.ts';
import {
  adopt,
  availability,
  conditionSince,
  createPod,
  deletePod,
  earliest,
  isReady,
  isStaying,
  nonZero,
  podsOf,
} from './workload-pods.ts';

/** Keeps the number of pods that each ReplicaSet asks for. A terminating pod is replaced immediately. */
export function replicaSetController(store: ObjectStore): Controller {
  return {
    name: 'replicaset',
    reconcile: (now) => earliest(store.all('replicasets').map((set) => reconcile(store, set, now))),
  };
}

function reconcile(store: ObjectStore, set: ReplicaSetObject, now: EpochMs): EpochMs | undefined {
  adopt(store, 'pods', set);
  const pods = podsOf(store, set).filter(isStaying);
  const missing = (set.spec.replicas ?? 1) - pods.length;
  let refusal: string | undefined;
  for (let made = 0; made < missing && refusal === undefined; made += 1) {
    refusal = createPod(store, set, set.spec.template, {
      named: { generateName: `${set.metadata.name}-` },
    });
  }
  if (missing < 0) for (const pod of surplus(store, pods, -missing)) deletePod(store, set, pod);
  return keepStatus(store, set, refusal, now);
}

/** Returns the pods to delete first. Upstream: `ActivePodsWithRanks`. */
function surplus(store: ObjectStore, pods: readonly PodObject[], count: number): readonly PodObject[] {
  const neighbours = (pod: PodObject) =>
    pods.filter(({ spec }) => spec.nodeName === pod.spec.nodeName && spec.nodeName).length;
  const rank = (pod: PodObject): readonly number[] => [
    pod.spec.nodeName ? 1 : 0,
    pod.status.phase === 'Running' ? 1 : 0,
    isReady(pod) ? 1 : 0,
    -neighbours(pod),
    -Number(pod.metadata.resourceVersion) / (store.version + 1),
  ];
  return [...pods].sort((a, b) => compare(rank(a), rank(b))).slice(0, count);
}

const compare = (a: readonly number[], b: readonly number[]): number =>
  a.map((number, index) => number - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;

function keepStatus(
  store: ObjectStore,
  set: ReplicaSetObject,
  refusal: string | undefined,
  now: EpochMs,
): EpochMs | undefined {
  const pods = podsOf(store, set).filter(isStaying);
  const { available, nextAt } = availability(pods, set.spec.minReadySeconds, now);
  const labels = Object.entries(set.spec.template.metadata.labels ?? {});
  const failure = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: refusal };
  const status = {
    replicas: pods.length,
    ...nonZero({
      fullyLabeledReplicas: pods.filter(({ metadata }) =>
        labels.every(([label, value]) => metadata.labels?.[label] === value),
      ).length,
      readyReplicas: pods.filter(isReady).length,
      availableReplicas: available,
      observedGeneration: set.metadata.generation ?? 0,
    }),
    ...(refusal === undefined
      ? {}
      : { conditions: [conditionSince(set.status.conditions ?? [], failure, now)] }),
  };
  if (!isDeepStrictEqual(status, set.status)) {
    store.update('replicasets', refOf(set), 'status', (current) => ({ ...current, status }));
  }
  return nextAt;
}

import { isDeepStrictEqual } from 'node:util';
import { type EpochMs, type PodObject, refOf, type StatefulSetObject } from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { Controller } from './reconcile-loop.ts';
import {
  adopt,
  availability,
  createPod,
  deletePod,
  earliest,
  hasEnded,
  isReady,
  nonZero,
  podsOf,
  templateHash,
} from './workload-pods.ts';

const REVISION = 'controller-revision-hash';

/**
 * Keeps the pods of each StatefulSet, from ordinal 0 on. A pod is replaced under its own name, so only once it is deleted.
 * ControllerRevisions are not kept: a pod that is replaced during an update gets the new template.
 */
export function statefulSetController(store: ObjectStore): Controller {
  return {
    name: 'statefulset',
    reconcile: (now) => earliest(store.all('statefulsets').map((set) => reconcile(store, set, now))),
  };
}

function reconcile(store: ObjectStore, set: StatefulSetObject, now: EpochMs): EpochMs | undefined {
  adopt(store, 'pods', set);
  if (fill(store, set) && shrink(store, set)) update(store, set);
  return keepStatus(store, set, now);
}

const nameOf = (set: StatefulSetObject, ordinal: number): string => `${set.metadata.name}-${ordinal}`;
const revisionOf = (set: StatefulSetObject): string =>
  nameOf(set, 0).replace(/0$/, templateHash(set.spec.template));
const wanted = ({ spec }: StatefulSetObject): number => spec.replicas ?? 1;
const isOrdered = ({ spec }: StatefulSetObject): boolean => spec.podManagementPolicy !== 'Parallel';

const podAt = (store: ObjectStore, set: StatefulSetObject, ordinal: number): PodObject | undefined =>
  store.find('pods', { namespace: set.metadata.namespace ?? '', name: nameOf(set, ordinal) });

/** Creates missing pods; returns `false` while the next pod has to wait for an earlier one. */
function fill(store: ObjectStore, set: StatefulSetObject): boolean {
  for (let ordinal = 0; ordinal < wanted(set); ordinal += 1) {
    const pod = podAt(store, set, ordinal);
    if (pod !== undefined && hasEnded(pod.status.phase)) deletePod(store, set, pod);
    if (podAt(store, set, ordinal) === undefined) create(store, set, ordinal);
    const made = podAt(store, set, ordinal);
    const isUp = made !== undefined && isReady(made) && made.metadata.deletionTimestamp === undefined;
    if (isOrdered(set) && !isUp) return false;
  }
  return true;
}

function create(store: ObjectStore, set: StatefulSetObject, ordinal: number): void {
  const name = nameOf(set, ordinal);
  createPod(store, set, set.spec.template, {
    named: { name },
    labels: {
      'apps.kubernetes.io/pod-index': String(ordinal),
      [REVISION]: revisionOf(set),
      'statefulset.kubernetes.io/pod-name': name,
    },
    spec: { hostname: name, ...(set.spec.serviceName ? { subdomain: set.spec.serviceName } : {}) },
  });
}

/** Deletes surplus pods, the highest ordinal first, one at a time if the set is ordered; returns `false` while any are left. */
function shrink(store: ObjectStore, set: StatefulSetObject): boolean {
  const surplus = podsOf(store, set)
    .filter((pod) => ordinalOf(pod) >= wanted(set))
    .sort((a, b) => ordinalOf(b) - ordinalOf(a));
  for (const pod of surplus) {
    if (pod.metadata.deletionTimestamp === undefined) deletePod(store, set, pod);
    if (isOrdered(set)) return false;
  }
  return surplus.length === 0;
}

const ordinalOf = ({ metadata }: PodObject): number => Number(metadata.name.replace(/^.*-/, ''));

/** Replaces the pods of an older template, the highest ordinal first, each when all pods above it are ready. */
function update(store: ObjectStore, set: StatefulSetObject): void {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type !== 'RollingUpdate') return;
  const partition = Number(rollingUpdate?.['partition'] ?? 0);
  for (let ordinal = wanted(set) - 1; ordinal >= partition; ordinal -= 1) {
    const pod = podAt(store, set, ordinal);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
    if (pod.metadata.labels?.[REVISION] !== revisionOf(set)) {
      deletePod(store, set, pod);
      return;
    }
    if (!isReady(pod)) return;
  }
}

function keepStatus(store: ObjectStore, set: StatefulSetObject, now: EpochMs): EpochMs | undefined {
  const pods = podsOf(store, set).filter(({ status }) => !hasEnded(status.phase));
  const { available, nextAt } = availability(pods, set.spec.minReadySeconds, now);
  const ready = pods.filter(isReady).length;
  const updateRevision = revisionOf(set);
  const staying = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const updated = staying.filter(({ metadata }) => metadata.labels?.[REVISION] === updateRevision).length;
  const isUpdated = updated === pods.length && ready === pods.length;
  const currentRevision = isUpdated ? updateRevision : (set.status.currentRevision ?? updateRevision);
  const current = staying.filter(({ metadata }) => metadata.labels?.[REVISION] === currentRevision).length;
  const status = {
    observedGeneration: set.metadata.generation ?? 0,
    replicas: pods.length,
    ...nonZero({ readyReplicas: ready, currentReplicas: current, updatedReplicas: updated }),
    availableReplicas: available,
    currentRevision,
    updateRevision,
    collisionCount: 0,
  };
  if (!isDeepStrictEqual(status, set.status)) {
    store.update('statefulsets', refOf(set), 'status', (one) => ({ ...one, status }));
  }
  return nextAt;
}

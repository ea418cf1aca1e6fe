import type { ConditionObject } from '../objects/core-kinds.ts';
import {
  type DeploymentObject,
  type EpochMs,
  kubernetesTime,
  type ReplicaSetObject,
} from '../objects/kinds.ts';
import { conditionSince, nonZero, scaled } from './workload-pods.ts';

type Status = DeploymentObject['status'];

interface Sets {
  readonly current: ReplicaSetObject | undefined;
  readonly old: readonly ReplicaSetObject[];
}

/** Reports whether all pods are of the current template, created and available. Upstream: `DeploymentComplete`. */
export function isComplete({ metadata, spec, status }: DeploymentObject): boolean {
  const replicas = spec.replicas ?? 1;
  return (
    (status['updatedReplicas'] ?? 0) === replicas &&
    (status.replicas ?? 0) === replicas &&
    (status.availableReplicas ?? 0) === replicas &&
    status.observedGeneration === metadata.generation
  );
}

/**
 * Returns a Deployment's status, computed from those of its ReplicaSets, and the time at which it changes without an event.
 * Upstream: `calculateStatus`, `syncRolloutStatus`.
 */
export function deploymentStatus(
  deployment: DeploymentObject,
  { current, old }: Sets,
  now: EpochMs,
): { readonly status: Status; readonly reviewAt: EpochMs | undefined } {
  const sets = current === undefined ? old : [current, ...old];
  const sum = (count: (set: ReplicaSetObject) => number | undefined): number =>
    sets.reduce((total, set) => total + (count(set) ?? 0), 0);
  const available = sum(({ status }) => status.availableReplicas);
  const counts: Status = {
    observedGeneration: deployment.metadata.generation ?? 0,
    ...nonZero({
      replicas: sum(({ status }) => status.replicas),
      updatedReplicas: current?.status.replicas ?? 0,
      readyReplicas: sum(({ status }) => status.readyReplicas),
      availableReplicas: available,
      unavailableReplicas: Math.max(0, sum(({ spec }) => spec.replicas) - available),
    }),
  };
  const progress = progressing(deployment, { ...deployment, status: counts }, current, now);
  const conditions = [availableCondition(deployment, available, now), ...progress.conditions];
  return { status: { ...counts, conditions }, reviewAt: progress.reviewAt };
}

function availableCondition(deployment: DeploymentObject, available: number, now: EpochMs): ConditionObject {
  const { spec, status } = deployment;
  const replicas = spec.replicas ?? 1;
  const { maxUnavailable } = spec.strategy?.rollingUpdate ?? {};
  const isEnough = available >= replicas - Math.min(replicas, scaled(maxUnavailable, replicas, 'down'));
  const condition = {
    type: 'Available',
    status: isEnough ? 'True' : 'False',
    reason: isEnough ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
    message: isEnough
      ? 'Deployment has minimum availability.'
      : 'Deployment does not have minimum availability.',
  };
  return since(status.conditions, condition, now);
}

/** Returns the condition `Progressing`, and the time at which the rollout exceeds its deadline. */
function progressing(
  before: DeploymentObject,
  after: DeploymentObject,
  current: ReplicaSetObject | undefined,
  now: EpochMs,
): { readonly conditions: readonly ConditionObject[]; readonly reviewAt: EpochMs | undefined } {
  const present = before.status.conditions ?? [];
  const old = present.find(({ type }) => type === 'Progressing');
  if (current === undefined) return { conditions: old === undefined ? [] : [old], reviewAt: undefined };
  const condition = (status: string, reason: string, what: string) =>
    since(
      present,
      { type: 'Progressing', status, reason, message: `ReplicaSet "${current.metadata.name}" ${what}` },
      now,
    );
  if (isComplete(after)) {
    const done = condition('True', 'NewReplicaSetAvailable', 'has successfully progressed.');
    return { conditions: [done], reviewAt: undefined };
  }
  // A completed rollout stays complete while pods are replaced.
  const isUnchanged =
    old?.reason === 'NewReplicaSetAvailable' && old.message?.includes(`"${current.metadata.name}"`);
  if (old !== undefined && isUnchanged) return { conditions: [old], reviewAt: undefined };
  const hasMoved = ['updatedReplicas', 'readyReplicas', 'availableReplicas', 'replicas'].some(
    (count) => before.status[count] !== after.status[count],
  );
  const deadlineMs = Number(before.spec['progressDeadlineSeconds'] ?? 600) * 1000;
  const lateAt = Date.parse(String(old?.['lastUpdateTime'] ?? '')) + deadlineMs;
  if (hasMoved || Number.isNaN(lateAt)) {
    const moved = {
      ...condition('True', 'ReplicaSetUpdated', 'is progressing.'),
      lastUpdateTime: kubernetesTime(now),
    };
    return { conditions: [moved], reviewAt: now + deadlineMs };
  }
  if (lateAt > now) return { conditions: old === undefined ? [] : [old], reviewAt: lateAt };
  return {
    conditions: [condition('False', 'ProgressDeadlineExceeded', 'has timed out progressing.')],
    reviewAt: undefined,
  };
}

/** Returns a Deployment's condition. Its `lastUpdateTime` is the time of the last change of any of its fields. */
function since(
  present: readonly ConditionObject[] = [],
  condition: { type: string; status: string; reason: string; message: string },
  now: EpochMs,
): ConditionObject {
  const old = present.find(({ type }) => type === condition.type);
  const isSame = old?.reason === condition.reason && old.message === condition.message;
  if (old !== undefined && isSame && old.status === condition.status) return old;
  return { ...conditionSince(present, condition, now), lastUpdateTime: kubernetesTime(now) };
}

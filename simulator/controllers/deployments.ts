import { isDeepStrictEqual } from 'node:util';
import {
  controllerOf,
  type DeploymentObject,
  type EpochMs,
  type ReplicaSetObject,
  refOf,
} from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { PodTemplate } from '../objects/workload-kinds.ts';
import { deploymentStatus, isComplete } from './deployment-status.ts';
import { noteEvent } from './events.ts';
import type { Controller } from './reconcile-loop.ts';
import { adopt, controlledBy, earliest, scaled, templateHash } from './workload-pods.ts';

const REVISION = 'deployment.kubernetes.io/revision';
const HASH = 'pod-template-hash';

/** Keeps a ReplicaSet for each Deployment's template, and moves its pods over when the template changes. */
export function deploymentController(store: ObjectStore): Controller {
  return {
    name: 'deployment',
    reconcile: (now) => earliest(store.all('deployments').map((one) => reconcile(store, one, now))),
  };
}

/** A Deployment's ReplicaSets: the one of its current template, and the others, oldest first. */
interface Revisions {
  readonly current: ReplicaSetObject | undefined;
  readonly old: readonly ReplicaSetObject[];
}

function reconcile(store: ObjectStore, { metadata }: DeploymentObject, now: EpochMs): EpochMs | undefined {
  const ref = { namespace: metadata.namespace ?? '', name: metadata.name };
  const deployment = () => store.get('deployments', ref);
  adopt(store, 'replicasets', deployment());
  const { paused = false, strategy } = deployment().spec;
  const before = revisionsOf(store, deployment());
  if (paused) {
    const [active] = [before.current, ...before.old.toReversed()].filter((set) => set !== undefined);
    if (active !== undefined) scale(store, deployment(), active, wanted(deployment()));
  } else if (strategy?.type === 'Recreate') recreate(store, deployment());
  else roll(store, deployment());
  const revisions = revisionsOf(store, deployment());
  if (!paused) keepRevision(store, deployment(), revisions);
  const { status, reviewAt } = deploymentStatus(deployment(), revisions, now);
  if (!isDeepStrictEqual(status, deployment().status)) {
    store.update('deployments', ref, 'status', (current) => ({ ...current, status }));
  }
  if (isComplete(deployment())) forgetOldest(store, deployment(), revisions);
  return reviewAt;
}

function revisionsOf(store: ObjectStore, { metadata, spec }: DeploymentObject): Revisions {
  const sets = store
    .all('replicasets')
    .filter((set) => controllerOf(set)?.uid === metadata.uid)
    .sort((a, b) => revisionOf(a) - revisionOf(b));
  const current = sets.find((set) => isDeepStrictEqual(withoutHash(set.spec.template), spec.template));
  return { current, old: sets.filter((set) => set !== current) };
}

const revisionOf = ({ metadata }: ReplicaSetObject | DeploymentObject): number =>
  Number(metadata.annotations?.[REVISION] ?? 0);

function withoutHash(template: PodTemplate): PodTemplate {
  const { [HASH]: _, ...labels } = template.metadata.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
}

const wanted = ({ spec }: DeploymentObject): number => spec.replicas ?? 1;
const size = ({ spec }: ReplicaSetObject): number => spec.replicas ?? 1;
const sizeOf = (sets: readonly ReplicaSetObject[]): number => sets.reduce((sum, set) => sum + size(set), 0);
const availableOf = (sets: readonly ReplicaSetObject[]): number =>
  sets.reduce((sum, { status }) => sum + (status.availableReplicas ?? 0), 0);

/** Creates the new pods when all old pods are deleted. */
function recreate(store: ObjectStore, deployment: DeploymentObject): void {
  const { current, old } = revisionsOf(store, deployment);
  for (const set of old) scale(store, deployment, set, 0);
  const uids = new Set(old.map(({ metadata }) => metadata.uid));
  if (store.all('pods').some((pod) => uids.has(controllerOf(pod)?.uid ?? ''))) return;
  scale(store, deployment, current ?? addReplicaSet(store, deployment), wanted(deployment));
}

/**
 * Creates as many new pods as `maxSurge` allows, and deletes as many old ones as `maxUnavailable` allows. Upstream:
 * `rolloutRolling`.
 */
function roll(store: ObjectStore, deployment: DeploymentObject): void {
  const set = revisionsOf(store, deployment).current ?? addReplicaSet(store, deployment);
  const { surge, unavailable } = rollingLimits(deployment);
  const total = sizeOf([set, ...revisionsOf(store, deployment).old]);
  const room = Math.max(0, wanted(deployment) + surge - total);
  scale(store, deployment, set, Math.min(wanted(deployment), size(set) + room));
  const { current, old } = revisionsOf(store, deployment);
  if (current === undefined) return;
  const least = wanted(deployment) - unavailable;
  const newUnavailable = size(current) - (current.status.availableReplicas ?? 0);
  let spare = sizeOf([current, ...old]) - least - newUnavailable;
  for (const one of old) {
    const unhealthy = Math.max(0, Math.min(spare, size(one) - (one.status.availableReplicas ?? 0)));
    spare -= unhealthy;
    scale(store, deployment, one, size(one) - unhealthy);
  }
  let surplus = Math.min(spare, availableOf([current, ...old]) - least);
  for (const one of revisionsOf(store, deployment).old) {
    const gone = Math.max(0, Math.min(surplus, size(one)));
    surplus -= gone;
    scale(store, deployment, one, size(one) - gone);
  }
}

/** Upstream: `ResolveFenceposts`; if both were zero, the rollout would never progress. */
function rollingLimits(deployment: DeploymentObject): { surge: number; unavailable: number } {
  const { maxSurge, maxUnavailable } = deployment.spec.strategy?.rollingUpdate ?? {};
  const surge = scaled(maxSurge, wanted(deployment), 'up');
  const unavailable = scaled(maxUnavailable, wanted(deployment), 'down');
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

function addReplicaSet(store: ObjectStore, deployment: DeploymentObject): ReplicaSetObject {
  const { metadata, spec } = deployment;
  const hash = templateHash(spec.template);
  const { old } = revisionsOf(store, deployment);
  const revision = String(Math.max(0, ...old.map(revisionOf)) + 1);
  const labels = { ...spec.template.metadata.labels, [HASH]: hash };
  const body = {
    metadata: {
      name: `${metadata.name}-${hash}`,
      labels,
      annotations: { [REVISION]: revision },
      ownerReferences: [controlledBy(deployment)],
    },
    spec: {
      replicas: 0,
      ...(spec.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
      selector: { ...spec.selector, matchLabels: { ...spec.selector.matchLabels, [HASH]: hash } },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  };
  return store.create('replicasets', metadata.namespace ?? '', body);
}

function scale(store: ObjectStore, deployment: DeploymentObject, set: ReplicaSetObject, to: number): void {
  const from = size(store.get('replicasets', refOf(set)));
  if (from === to) return;
  store.update('replicasets', refOf(set), 'main', (current) => ({
    ...current,
    spec: { ...current.spec, replicas: to },
  }));
  noteEvent(store, deployment, {
    type: 'Normal',
    reason: 'ScalingReplicaSet',
    message: `Scaled ${to > from ? 'up' : 'down'} replica set ${set.metadata.name} from ${from} to ${to}`,
    component: 'deployment-controller',
  });
}

/** Gives the current template the highest revision, including after a rollback. */
function keepRevision(store: ObjectStore, deployment: DeploymentObject, { current, old }: Revisions): void {
  if (current === undefined) return;
  const revision = Math.max(revisionOf(current), ...old.map((set) => revisionOf(set) + 1));
  const annotated = <T extends ReplicaSetObject | DeploymentObject>(object: T): T => ({
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { ...object.metadata.annotations, [REVISION]: String(revision) },
    },
  });
  if (revisionOf(current) !== revision) {
    store.update('replicasets', refOf(current), 'main', annotated);
  }
  if (revisionOf(deployment) !== revision) {
    store.update('deployments', refOf(deployment), 'main', annotated);
  }
}

/** Deletes the oldest empty ReplicaSets beyond `revisionHistoryLimit`. */
function forgetOldest(store: ObjectStore, { spec }: DeploymentObject, { old }: Revisions): void {
  const empty = old.filter((set) => size(set) === 0 && (set.status.replicas ?? 0) === 0);
  const surplus = old.length - (spec.revisionHistoryLimit ?? 10);
  for (const set of empty.slice(0, Math.max(0, surplus))) store.delete('replicasets', refOf(set));
}

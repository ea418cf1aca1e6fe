import type { ConditionObject } from '../objects/core-kinds.ts';
import { type EpochMs, internalIp, kubernetesTime, type PodObject, refOf } from '../objects/kinds.ts';
import type { ObjectStore } from '../objects/store.ts';
import { noteEvent } from './events.ts';
import type { Controller } from './reconcile-loop.ts';

/** The times that containers take to start and to end: long enough to be seen in `kubectl get pods -w`. */
const STARTUP_MS = 2000;
const SHUTDOWN_MS = 3000;

/** Every node's kubelet: starts the pods that are bound to the node, and finishes terminating ones. */
export function kubelet(store: ObjectStore): Controller {
  return {
    name: 'kubelet',
    reconcile(now) {
      const waits: EpochMs[] = [];
      for (const pod of store.all('pods')) {
        const dueAt = nextStepAt(store, pod);
        if (dueAt === undefined) continue;
        if (dueAt > now) waits.push(dueAt);
        else if (pod.metadata.deletionTimestamp === undefined) start(store, pod, now);
        else finish(store, pod);
      }
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
  };
}

/** Returns the time of a pod's next step; `undefined`: no step is pending, or the pod has no kubelet. */
function nextStepAt(store: ObjectStore, { metadata, spec, status }: PodObject): EpochMs | undefined {
  if (!spec.nodeName || store.find('nodes', { namespace: '', name: spec.nodeName }) === undefined)
    return undefined;
  if (metadata.deletionTimestamp !== undefined) {
    const graceMs = (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
    return Date.parse(metadata.deletionTimestamp) - graceMs + Math.min(graceMs, SHUTDOWN_MS);
  }
  if (status.phase !== 'Pending') return undefined;
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled');
  return Date.parse(scheduled?.lastTransitionTime ?? metadata.creationTimestamp) + STARTUP_MS;
}

function start(store: ObjectStore, pod: PodObject, now: EpochMs): void {
  const at = kubernetesTime(now);
  const ip = podIp(pod);
  const hostIp = internalIp(store.get('nodes', { namespace: '', name: pod.spec.nodeName ?? '' }));
  const running = (current: PodObject) => ({
    ...current,
    status: {
      ...current.status,
      phase: 'Running',
      conditions: [
        ...kept(current.status.conditions),
        ...RUNNING_CONDITIONS.map((type) => ({ type, status: 'True', lastTransitionTime: at })),
      ],
      hostIP: hostIp,
      podIP: ip,
      podIPs: [{ ip }],
      startTime: at,
      containerStatuses: current.spec.containers.map(({ name, image = '' }) => ({
        name,
        image,
        imageID: image,
        ready: true,
        started: true,
        restartCount: 0,
        state: { running: { startedAt: at } },
      })),
    },
  });
  store.update('pods', refOf(pod), 'status', running);
  note(store, pod, 'Started', (container) => `Started container ${container}`);
}

function finish(store: ObjectStore, pod: PodObject): void {
  note(store, pod, 'Killing', (container) => `Stopping container ${container}`);
  store.delete('pods', refOf(pod), { preconditions: { uid: pod.metadata.uid }, gracePeriodSeconds: 0 });
}

const RUNNING_CONDITIONS: readonly string[] = [
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
];

const kept = (conditions: readonly ConditionObject[] = []) =>
  conditions.filter(({ type }) => !RUNNING_CONDITIONS.includes(type));

/** Returns an address that looks like one of the node's; nothing listens there. */
function podIp({ metadata }: PodObject): string {
  const [high = 0, low = 0] = Buffer.from(metadata.uid.slice(0, 4), 'hex');
  return `10.244.${high}.${low}`;
}

function note(
  store: ObjectStore,
  pod: PodObject,
  reason: string,
  message: (container: string) => string,
): void {
  for (const { name } of pod.spec.containers) {
    noteEvent(store, pod, { type: 'Normal', reason, message: message(name), component: 'kubelet' });
  }
}

/** The time for which the real collector waits for a node to come back (`quarantineTime`). */
const QUARANTINE_MS = 40_000;

/** Removes the pods of deleted nodes, because no kubelet finishes them. */
export function podGarbageCollector(store: ObjectStore): Controller {
  const missingSince = new Map<string, EpochMs>();
  return {
    name: 'pod-garbage-collector',
    reconcile(now) {
      const nodes = new Set(store.all('nodes').map(({ metadata }) => metadata.name));
      const orphans = store.all('pods').filter(({ spec }) => spec.nodeName && !nodes.has(spec.nodeName));
      const missing = new Set(orphans.map(({ spec }) => spec.nodeName ?? ''));
      for (const node of missingSince.keys()) if (!missing.has(node)) missingSince.delete(node);
      for (const node of missing) missingSince.set(node, missingSince.get(node) ?? now);
      const waits: EpochMs[] = [];
      for (const pod of orphans) {
        const endsAt = (missingSince.get(pod.spec.nodeName ?? '') ?? now) + QUARANTINE_MS;
        if (endsAt <= now) store.delete('pods', refOf(pod), { gracePeriodSeconds: 0 });
        else waits.push(endsAt);
      }
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
  };
}

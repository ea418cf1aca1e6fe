import { createHash } from 'node:crypto';
import {
  type ApiObject,
  controllerOf,
  type EpochMs,
  kubernetesTime,
  type PodObject,
  refOf,
} from '../objects/kinds.ts';
import { selectsLabels } from '../objects/label-selector.ts';
import { StatusError } from '../objects/status.ts';
import type { ObjectStore } from '../objects/store.ts';
import type { IntOrPercent, LabelSelector, PodTemplate } from '../objects/workload-kinds.ts';
import { noteEvent } from './events.ts';

/** Returns the pods that an object controls. */
export const podsOf = (store: ObjectStore, { metadata }: ApiObject): readonly PodObject[] =>
  store.all('pods').filter((pod) => controllerOf(pod)?.uid === metadata.uid);

/** Reports whether a pod has not ended and is not terminating. */
export const isStaying = ({ metadata, status }: PodObject): boolean =>
  metadata.deletionTimestamp === undefined && !hasEnded(status.phase);

export const hasEnded = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

export const isReady = ({ status }: PodObject): boolean =>
  status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false;

/**
 * Returns the time since which a pod is available (ready for `minReadySeconds`), or will be; `undefined` while it is not ready.
 */
export function availableAt(pod: PodObject, minReadySeconds = 0): EpochMs | undefined {
  if (!isReady(pod)) return undefined;
  const ready = pod.status.conditions?.find(({ type }) => type === 'Ready');
  return Date.parse(ready?.lastTransitionTime ?? pod.metadata.creationTimestamp) + minReadySeconds * 1000;
}

/** Returns the number of available pods, and the time when the next ready pod becomes available. */
export function availability(
  pods: readonly PodObject[],
  minReadySeconds: number | undefined,
  now: EpochMs,
): { readonly available: number; readonly nextAt: EpochMs | undefined } {
  const moments = pods.flatMap((pod) => availableAt(pod, minReadySeconds) ?? []);
  const later = moments.filter((moment) => moment > now);
  return { available: moments.length - later.length, nextAt: earliest(later) };
}

/** Returns the earliest of some times; `undefined` when there is none. */
export function earliest(moments: readonly (EpochMs | undefined)[]): EpochMs | undefined {
  const given = moments.filter((moment) => moment !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}

/** Returns the owner reference to a controlling object. */
export const controlledBy = ({ apiVersion, kind, metadata: { name, uid } }: ApiObject) => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});

/**
 * Makes an object the controller of the selected objects in its namespace that have no controller, for example after a deletion
 * with `--cascade=orphan`. Upstream: `ControllerRefManager`.
 */
export function adopt(
  store: ObjectStore,
  resource: 'pods' | 'replicasets',
  owner: ApiObject & { readonly spec: { readonly selector: LabelSelector } },
): void {
  for (const object of store.all(resource)) {
    const { namespace, labels, deletionTimestamp, ownerReferences = [] } = object.metadata;
    if (namespace !== owner.metadata.namespace || deletionTimestamp !== undefined) continue;
    if (controllerOf(object) !== undefined || !selectsLabels(owner.spec.selector, labels)) continue;
    store.update(resource, refOf(object), 'main', (current) => ({
      ...current,
      metadata: { ...current.metadata, ownerReferences: [...ownerReferences, controlledBy(owner)] },
    }));
  }
}

interface PodVariation {
  /** `name` or `generateName`. */
  readonly named: object;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: object;
}

/**
 * Creates a pod from a workload's template and records an Event. If the pod is rejected, records an Event and returns the error
 * message.
 */
export function createPod(
  store: ObjectStore,
  owner: ApiObject,
  { metadata, spec }: PodTemplate,
  variation: PodVariation,
): string | undefined {
  const note = { component: `${owner.kind.toLowerCase()}-controller` };
  try {
    const pod = store.create('pods', owner.metadata.namespace ?? '', {
      metadata: {
        ...variation.named,
        labels: { ...metadata.labels, ...variation.labels },
        ...(metadata.annotations === undefined ? {} : { annotations: metadata.annotations }),
        ownerReferences: [controlledBy(owner)],
      },
      spec: { ...spec, ...variation.spec },
    });
    const message = `Created pod: ${pod.metadata.name}`;
    noteEvent(store, owner, { ...note, type: 'Normal', reason: 'SuccessfulCreate', message });
    return undefined;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    // The generated name differs with each try, so it is removed from the message: otherwise each try would record a new Event.
    const refusal = error.message.replace(/^Pod "[^"]*"/, 'Pod');
    const message = `Error creating: ${refusal}`;
    const isNews = !store
      .all('events')
      .some((event) => event.message === message && event.involvedObject['uid'] === owner.metadata.uid);
    if (isNews) noteEvent(store, owner, { ...note, type: 'Warning', reason: 'FailedCreate', message });
    return refusal;
  }
}

/** Deletes a pod of a workload and records an Event. */
export function deletePod(store: ObjectStore, owner: ApiObject, pod: PodObject): void {
  store.delete('pods', refOf(pod));
  noteEvent(store, owner, {
    type: 'Normal',
    reason: 'SuccessfulDelete',
    message: `Deleted pod: ${pod.metadata.name}`,
    component: `${owner.kind.toLowerCase()}-controller`,
  });
}

/** Upstream's alphabet for hashes in names (`rand.SafeEncodeString`). */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const HASH_LENGTH = 10;

/** Returns the hash of a template, which identifies the pods of that template. The order of fields does not matter. */
export function templateHash(template: PodTemplate): string {
  const digest = createHash('sha256').update(canonical(template)).digest();
  return [...digest.subarray(0, HASH_LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part === 'bigint') return String(part);
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });

/**
 * Returns a number, or a share of `total`, rounded up or down. Invalid text counts as 0. Upstream:
 * `GetScaledValueFromIntOrPercent`.
 */
export function scaled(share: IntOrPercent | undefined, total: number, round: 'up' | 'down'): number {
  if (typeof share === 'number') return share;
  const exact = ((Number.parseInt(share ?? '0', 10) || 0) * total) / 100;
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact);
}

/** Returns the counts that are not zero, because upstream omits the others. */
export const nonZero = (counts: Readonly<Record<string, number>>): object =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));

/** Returns a condition whose unchanged fields are kept; `lastTransitionTime` is the time when its status changed. */
export function conditionSince<C extends { readonly type: string; readonly status: string }>(
  present: readonly {
    readonly type: string;
    readonly status: string;
    readonly lastTransitionTime?: string;
  }[],
  condition: C,
  now: EpochMs,
): C & { readonly lastTransitionTime: string } {
  const old = present.find(({ type }) => type === condition.type);
  const same = old?.status === condition.status ? old.lastTransitionTime : undefined;
  return { ...condition, lastTransitionTime: same ?? kubernetesTime(now) };
}

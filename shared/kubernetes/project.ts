/**
 * From an API object's JSON to the few fields that deciding needs. By hand, not by a schema: a relay reads
 * 150,000 pods of 12 KB at a start, and a schema would copy and check each of their hundreds of fields; the
 * server has validated them. Unknown fields pass, and a field of an unexpected type reads as absent.
 */
import { MOVING_ANNOTATION } from '#shared/eviction/budget.ts';
import type { Deletion } from '#shared/eviction/facts.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { FIELD_MANAGER } from '#shared/kubernetes/http/call.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import { ownSeconds, TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import { EVICTION_API_REASON, TAINT_MANAGER_REASON } from './announcement.ts';
import type { LiveNode, LivePod, PodOwner } from './api.ts';
import { controllerOf } from './controller-of.ts';
import { ApiError } from './http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from './http/api-json.ts';

/** Longer than most keys. */
const KEY_CHARACTERS = 256;

/**
 * Hands out one shared object per key, so that what thousands of pods have in common is kept once. When it is
 * full it forgets everything and starts over: sharing is a matter of memory only, and what is common is soon
 * back, while one-off values cannot fill the memory.
 */
export class Interner<T> {
  readonly #limit: number;
  readonly #shared = new Map<string, T>();
  #characters = 0;

  /** `limit`: so many objects, of keys with so many times {@link KEY_CHARACTERS} in all. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The object known under `key`, or else what `make` makes, from now on. */
  get(key: string, make: () => T): T {
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    this.#characters += key.length;
    if (this.#shared.size >= this.#limit || this.#characters > this.#limit * KEY_CHARACTERS) {
      this.#shared.clear();
      this.#characters = key.length;
    }
    const made = make();
    this.#shared.set(key, made);
    return made;
  }
}

/** Clusters have a few dozen distinct lists; only generated ones (a key per job) come near this. */
const TOLERATION_LISTS = 10_000;
/** Node names and namespaces of a whole fleet, at some 100 bytes each; and owners. */
const NAMES = 100_000;

const tolerationLists = new Interner<readonly Toleration[]>(TOLERATION_LISTS);
const owners = new Interner<PodOwner>(NAMES);
const names = new Interner<string>(NAMES);
const shared = (name: string) => names.get(name, () => name);

/** Of DNS subdomains and UIDs, and wider. A name is a part of keys, paths and lines, in which other characters mean something. */
const IDENTIFIER = /^[A-Za-z0-9][-A-Za-z0-9_.:]{0,252}$/;

/** A Node's JSON as a {@link LiveNode}. Throws `ApiError` (status 0) when it has no name, or one that no API server takes. */
export function projectNode(json: unknown): LiveNode {
  const { metadata, spec } = fieldsOf(json);
  const meta = fieldsOf(metadata);
  const taintsStamp = stampOfTaints(meta['managedFields']);
  const zone = textOf(fieldsOf(meta['labels'])['topology.kubernetes.io/zone']);
  return {
    name: nodeName(shared(identifier('Node', meta, 'name'))),
    resourceVersion: textOf(meta['resourceVersion']),
    // An API server takes no taint without a key: one would be said of the node to nobody who reads it.
    taints: itemsOf(fieldsOf(spec)['taints'])
      .map(projectTaint)
      .filter(({ key }) => key !== ''),
    ...(taintsStamp === '' ? {} : { taintsStamp }),
    ...(zone === '' ? {} : { zone: shared(zone) }),
  };
}

/** A Pod's JSON as a {@link LivePod}. Throws `ApiError` (status 0) when it lacks what every stored Pod has. */
export function projectPod(json: unknown): LivePod {
  const fields = fieldsOf(json);
  const meta = fieldsOf(fields['metadata']);
  const spec = fieldsOf(fields['spec']);
  const conditions = itemsOf(fieldsOf(fields['status'])['conditions']).map(fieldsOf);
  const node = textOf(spec['nodeName']);
  const scheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'True');
  const target = conditions.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True');
  const disruption = textOf(target?.['reason']);
  const owner = projectOwner(meta['ownerReferences']);
  const scheduledAt = momentOf(scheduled?.['lastTransitionTime']);
  const leaving = projectLeaving(meta);
  const deleted = leaving && projectDeletion(meta, disruption, leaving.overAt);
  const annotations = fieldsOf(meta['annotations']);
  return {
    uid: podUid(identifier('Pod', meta, 'uid')),
    namespace: shared(identifier('Pod', meta, 'namespace')),
    name: identifier('Pod', meta, 'name'),
    resourceVersion: textOf(meta['resourceVersion']),
    generation: typeof meta['generation'] === 'number' ? meta['generation'] : 0,
    node: node === '' ? undefined : nodeName(shared(node)),
    tolerations: projectTolerations(spec['tolerations'], textOf(annotations[TAKEOVER_ANNOTATION])),
    podSince: Number.isNaN(scheduledAt) ? createdAt(meta) : scheduledAt,
    terminating: textOf(meta['deletionTimestamp']) !== '',
    disrupted: disruption === TAINT_MANAGER_REASON,
    ...(disruption === EVICTION_API_REASON ? { evicted: true } : {}),
    ...(Object.hasOwn(annotations, MOVING_ANNOTATION) ? { moving: true } : {}),
    ...(leaving ? { leaving } : {}),
    ...(deleted ? { deleted } : {}),
    ...projectLabels(meta['labels']),
    ...(owner === undefined ? {} : { owner }),
  };
}

/** Epoch ms; `NaN`: it is no time. Users may write any into a taint, but nothing here was before 1970. */
const momentOf = (time: unknown): number => Math.max(0, Date.parse(textOf(time)));

function projectLeaving(meta: Readonly<Record<string, unknown>>): LivePod['leaving'] {
  const overAt = momentOf(meta['deletionTimestamp']);
  if (Number.isNaN(overAt)) return undefined;
  return { overAt, finalizers: itemsOf(meta['finalizers']).map(textOf) };
}

/** Who else deleted a pod whose `DisruptionTarget` has this reason; the moment is when that was asked for. */
function projectDeletion(
  meta: Readonly<Record<string, unknown>>,
  disruption: string,
  overAt: number,
): Deletion | undefined {
  // Who asked the Eviction API is not to be seen.
  if (disruption === EVICTION_API_REASON) return undefined;
  const isEviction = disruption === TAINT_MANAGER_REASON;
  const announcers = isEviction ? announcersOf(meta['managedFields']) : [];
  // A server that does not say who announced it leaves us to take it for our own.
  if (isEviction && (announcers.length === 0 || announcers.some(isOurs))) return undefined;
  const grace = meta['deletionGracePeriodSeconds'];
  const at = Math.max(0, overAt - (Number.isSafeInteger(grace) ? Number(grace) * 1000 : 0));
  return { at, by: isEviction ? 'taint-manager' : 'other' };
}

/** An installation beside this one records what it does. */
const isOurs = (manager: string): boolean =>
  manager === FIELD_MANAGER || manager.startsWith(`${FIELD_MANAGER}-`);

/** Who owns the condition `DisruptionTarget`. */
const announcersOf = (managedFields: unknown): readonly string[] =>
  itemsOf(managedFields)
    .map(fieldsOf)
    .filter(({ fieldsV1 }) => {
      const conditions = fieldsOf(fieldsOf(fieldsOf(fieldsV1)['f:status'])['f:conditions']);
      return 'k:{"type":"DisruptionTarget"}' in conditions;
    })
    .map(({ manager }) => textOf(manager));

function projectLabels(labels: unknown): Pick<LivePod, 'labels'> {
  const given = Object.entries(fieldsOf(labels)).map(([key, value]) => [key, textOf(value)]);
  return given.length === 0 ? {} : { labels: Object.fromEntries(given) };
}

function createdAt(meta: Readonly<Record<string, unknown>>): number {
  const at = momentOf(required('Pod', meta, 'creationTimestamp'));
  if (Number.isNaN(at)) throw unusable('Pod', 'a metadata.creationTimestamp that is a time');
  return at;
}

function required(kind: string, meta: Readonly<Record<string, unknown>>, field: string): string {
  const value = textOf(meta[field]);
  if (value === '') throw unusable(kind, `metadata.${field}`);
  return value;
}

function identifier(kind: string, meta: Readonly<Record<string, unknown>>, field: string): string {
  const value = required(kind, meta, field);
  if (!IDENTIFIER.test(value)) throw unusable(kind, `a metadata.${field} that is one`);
  return value;
}

const unusable = (kind: string, lacks: string) =>
  new ApiError(`The server sent a ${kind} without ${lacks}: is it a Kubernetes API server?`, 0);

function projectTaint(json: unknown): LiveTaint {
  const { key, value, effect, timeAdded } = fieldsOf(json);
  const given = textOf(value);
  const addedAt = momentOf(timeAdded);
  return {
    key: textOf(key),
    ...(given === '' ? {} : { value: given }),
    effect: textOf(effect),
    ...(Number.isNaN(addedAt) ? {} : { timeAdded: addedAt }),
  };
}

/** Who owns the field `spec.taints` since when; whoever writes the status only has an entry of its own. */
function stampOfTaints(managedFields: unknown): string {
  return itemsOf(managedFields)
    .map(fieldsOf)
    .filter(({ subresource }) => textOf(subresource) === '')
    .filter(({ fieldsV1 }) => 'f:taints' in fieldsOf(fieldsOf(fieldsV1)['f:spec']))
    .map(({ manager, time }) => `${textOf(manager)}@${textOf(time)}`)
    .sort()
    .join();
}

function projectOwner(ownerReferences: unknown): PodOwner | undefined {
  const controller = controllerOf(ownerReferences);
  if (controller === undefined) return undefined;
  const [kind, name] = [textOf(controller['kind']), textOf(controller['name'])];
  // No API server takes such a reference.
  if (kind === '' || name === '') return undefined;
  return owners.get(`${kind}/${name}`, () => Object.freeze({ kind, name }));
}

/** Of the note of a pod that is taken over, what it says of the tolerations is kept with them, and shared as they are. */
function projectTolerations(json: unknown, note: string): readonly Toleration[] {
  const parts = itemsOf(json).map((item) => {
    const { key, operator, value, effect, tolerationSeconds } = fieldsOf(item);
    const seconds = integerText(tolerationSeconds);
    const own = note && seconds ? ownSeconds(note, textOf(key), BigInt(seconds)) : undefined;
    return [textOf(key), textOf(operator), textOf(value), textOf(effect), seconds, String(own ?? '')];
  });
  return tolerationLists.get(JSON.stringify(parts), () => Object.freeze(parts.map(toleration)));
}

function toleration([key, operator, value, effect, seconds, own]: string[]): Toleration {
  return Object.freeze({
    ...(key ? { key } : {}),
    ...(operator ? { operator } : {}),
    ...(value ? { value } : {}),
    ...(effect ? { effect } : {}),
    ...(seconds ? { tolerationSeconds: BigInt(seconds) } : {}),
    ...(own ? { ownSeconds: BigInt(own) } : {}),
  });
}

/** An int64 as text; "" for what is none: a toleration without seconds is for ever, so nobody is evicted. */
const integerText = (value: unknown): string =>
  typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) : '';

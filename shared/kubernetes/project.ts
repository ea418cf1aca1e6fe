/**
 * Converts an API object's JSON to the few fields that eviction decisions need. No schema is used: a relay reads
 * 150,000 pods of 12 KB when it starts. A schema would copy and check each of their hundreds of fields, although the
 * server has validated them. Unknown fields are allowed, and a field of an unexpected type reads as absent.
 */

import { defined } from '#shared/defined.ts';
import { MOVING_ANNOTATION } from '#shared/eviction/budget.ts';
import type { Deletion, Owner } from '#shared/eviction/facts.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { MAX_ANNOTATION_CHARACTERS } from '#shared/eviction/selectors.ts';
import { FIELD_MANAGER } from '#shared/kubernetes/http/call.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import { EVICTION_API_REASON, TAINT_MANAGER_REASON } from './announcement.ts';
import type { LiveNode, LivePod } from './api.ts';
import { controllerOf } from './controller-of.ts';
import { ApiError } from './http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from './http/api-json.ts';

/** Longer than most keys. */
const KEY_CHARACTERS = 256;

/**
 * Stores values that thousands of pods share once. When full, it drops everything: common values are soon back, and
 * one-off values cannot fill the memory.
 */
export class Interner<T> {
  readonly #limit: number;
  readonly #shared = new Map<string, T>();
  #characters = 0;

  /** `limit`: maximum number of objects. Their keys have at most {@link KEY_CHARACTERS} times as many characters in all. */
  constructor(limit: number) {
    this.#limit = limit;
  }

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

/** Clusters have a few dozen distinct lists; only generated ones (a key per job) approach this number. */
const TOLERATION_LISTS = 10_000;
/** Node names and namespaces of a whole fleet, at about 100 bytes each, and owners. */
const NAMES = 100_000;

const tolerationLists = new Interner<readonly Toleration[]>(TOLERATION_LISTS);
const owners = new Interner<Owner>(NAMES);
const names = new Interner<string>(NAMES);
const shared = (name: string) => names.get(name, () => name);

/** DNS subdomains, UIDs, and more: in keys, paths, and lines, other characters have a meaning. */
const IDENTIFIER = /^[A-Za-z0-9][-A-Za-z0-9_.:]{0,252}$/;

/** Throws `ApiError` (status 0) if the node has no name, or a name that no API server accepts. */
export function projectNode(json: unknown): LiveNode {
  const { metadata, spec } = fieldsOf(json);
  const meta = fieldsOf(metadata);
  const taintsStamp = stampOfTaints(meta['managedFields']);
  const zone = textOf(fieldsOf(meta['labels'])['topology.kubernetes.io/zone']);
  return {
    name: nodeName(shared(identifier('Node', meta, 'name'))),
    resourceVersion: textOf(meta['resourceVersion']),
    // No API server accepts a taint without a key, and a reader could not identify such a taint.
    taints: itemsOf(fieldsOf(spec)['taints'])
      .map(projectTaint)
      .filter(({ key }) => key !== ''),
    ...(taintsStamp === '' ? {} : { taintsStamp }),
    ...(zone === '' ? {} : { zone: shared(zone) }),
  };
}

/** Throws `ApiError` (status 0) if the pod lacks a field that every stored Pod has. */
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
  const deleted = leaving && projectDeletion(meta, disruption, leaving.gracePeriodEndedAt);
  const labels = textsOf(meta['labels']);
  const written = fieldsOf(meta['annotations']);
  const annotations = textsOf(written, MAX_ANNOTATION_CHARACTERS);
  const priorityClassName = textOf(spec['priorityClassName']);
  return {
    uid: podUid(identifier('Pod', meta, 'uid')),
    namespace: shared(identifier('Pod', meta, 'namespace')),
    name: identifier('Pod', meta, 'name'),
    resourceVersion: textOf(meta['resourceVersion']),
    generation: typeof meta['generation'] === 'number' ? meta['generation'] : 0,
    node: node === '' ? undefined : nodeName(shared(node)),
    tolerations: projectTolerations(spec['tolerations']),
    podSince: Number.isNaN(scheduledAt) ? createdAt(meta) : scheduledAt,
    terminating: textOf(meta['deletionTimestamp']) !== '',
    disrupted: disruption === TAINT_MANAGER_REASON,
    ...(disruption === EVICTION_API_REASON ? { evicted: true } : {}),
    ...(Object.hasOwn(written, MOVING_ANNOTATION) ? { moving: true } : {}),
    ...defined({ leaving, deleted, labels, annotations }),
    ...(priorityClassName === '' ? {} : { priorityClassName: shared(priorityClassName) }),
    ...defined({ owner }),
  };
}

/** Epoch ms; `NaN`: no time. Users may write any time into a taint, but times before 1970 count as 1970. */
const momentOf = (time: unknown): number => Math.max(0, Date.parse(textOf(time)));

function projectLeaving(meta: Readonly<Record<string, unknown>>): LivePod['leaving'] {
  const gracePeriodEndedAt = momentOf(meta['deletionTimestamp']);
  if (Number.isNaN(gracePeriodEndedAt)) return undefined;
  return { gracePeriodEndedAt, finalizers: itemsOf(meta['finalizers']).map(textOf) };
}

/** By another actor, by the reason of `DisruptionTarget`. `at`: when the deletion was requested. */
function projectDeletion(
  meta: Readonly<Record<string, unknown>>,
  disruption: string,
  gracePeriodEndedAt: number,
): Deletion | undefined {
  // The caller of the Eviction API is unknown.
  if (disruption === EVICTION_API_REASON) return undefined;
  const isEviction = disruption === TAINT_MANAGER_REASON;
  const announcers = isEviction ? announcersOf(meta['managedFields']) : [];
  // If the server does not report the announcer, the announcement counts as ours.
  if (isEviction && (announcers.length === 0 || announcers.some(isOurs))) return undefined;
  const grace = meta['deletionGracePeriodSeconds'];
  const at = Math.max(0, gracePeriodEndedAt - (Number.isSafeInteger(grace) ? Number(grace) * 1000 : 0));
  return { at, by: isEviction ? 'taint-manager' : 'other' };
}

/** Reports whether an installation of Taintward, perhaps another one, is the manager: each records its own evictions. */
const isOurs = (manager: string): boolean =>
  manager === FIELD_MANAGER || manager.startsWith(`${FIELD_MANAGER}-`);

const announcersOf = (managedFields: unknown): readonly string[] =>
  itemsOf(managedFields)
    .map(fieldsOf)
    .filter(({ fieldsV1 }) => {
      const conditions = fieldsOf(fieldsOf(fieldsOf(fieldsV1)['f:status'])['f:conditions']);
      return 'k:{"type":"DisruptionTarget"}' in conditions;
    })
    .map(({ manager }) => textOf(manager));

/** Returns the entries of a mapping with values of at most `most` characters; `undefined`: none. */
function textsOf(mapping: unknown, most = Infinity): Readonly<Record<string, string>> | undefined {
  const texts = Object.entries(fieldsOf(mapping))
    .map(([key, value]) => [key, textOf(value)] as const)
    .filter(([, text]) => text.length <= most);
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
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

/** Writers of only the status have separate entries. */
function stampOfTaints(managedFields: unknown): string {
  return itemsOf(managedFields)
    .map(fieldsOf)
    .filter(({ subresource }) => textOf(subresource) === '')
    .filter(({ fieldsV1 }) => 'f:taints' in fieldsOf(fieldsOf(fieldsV1)['f:spec']))
    .map(({ manager, time }) => `${textOf(manager)}@${textOf(time)}`)
    .sort()
    .join();
}

function projectOwner(ownerReferences: unknown): Owner | undefined {
  const controller = controllerOf(ownerReferences);
  if (controller === undefined) return undefined;
  const [kind, name] = [textOf(controller['kind']), textOf(controller['name'])];
  // No API server accepts such a reference.
  if (kind === '' || name === '') return undefined;
  return owners.get(`${kind}/${name}`, () => Object.freeze({ kind, name }));
}

export function projectTolerations(json: unknown): readonly Toleration[] {
  const parts = itemsOf(json).map((item) => {
    const { key, operator, value, effect, tolerationSeconds } = fieldsOf(item);
    return [textOf(key), textOf(operator), textOf(value), textOf(effect), integerText(tolerationSeconds)];
  });
  return tolerationLists.get(JSON.stringify(parts), () => Object.freeze(parts.map(toleration)));
}

function toleration([key, operator, value, effect, seconds]: string[]): Toleration {
  return Object.freeze({
    ...(key ? { key } : {}),
    ...(operator ? { operator } : {}),
    ...(value ? { value } : {}),
    ...(effect ? { effect } : {}),
    ...(seconds ? { tolerationSeconds: BigInt(seconds) } : {}),
  });
}

/** "": no int64. A toleration without seconds lasts indefinitely, so the pod is not evicted. */
const integerText = (value: unknown): string =>
  typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) : '';

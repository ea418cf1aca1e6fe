import {
  compare,
  difference,
  type FieldSet,
  fieldSetOf,
  fromFieldsV1,
  intersection,
  merge,
  pathText,
  prune,
  toFieldsV1,
  union,
} from './field-sets.ts';
import {
  type ApiObject,
  type EpochMs,
  kubernetesTime,
  type ManagedFields,
  type ResourceName,
} from './kinds.ts';
import { schemaOf, shapeOf } from './schema.ts';
import { StatusError } from './status.ts';

/** Who owns which fields of an object: `metadata.managedFields`. Upstream: `managedfields.FieldManager`. */

/** Whoever neither calls itself a manager nor has a user agent, in the real server's words. */
const UNKNOWN_MANAGER = 'unknown';

/** Who changes which part of an object, and when. */
export interface Ownership {
  readonly resource: ResourceName;
  readonly manager: string;
  readonly part: 'main' | 'status';
  readonly now: EpochMs;
}

/** What nobody owns. Upstream: `stripMetaManager`. */
const OWNERLESS: FieldSet = new Set([
  'f:apiVersion',
  'f:kind',
  'f:metadata',
  ...['creationTimestamp', 'generation', 'managedFields', 'name', 'namespace', 'resourceVersion', 'uid'].map(
    (name) => `f:metadata\nf:${name}`,
  ),
]);

const owned = (set: FieldSet): FieldSet => difference(set, OWNERLESS);

/** What a new object is compared with: its creator does not own that it has a spec at all. */
const NOTHING = { metadata: {}, spec: {} };

/**
 * An object with its owners after somebody changed it from `before` in any way but by applying: whatever is new or other is
 * theirs, and nobody else's.
 */
export function withOwners<T extends ApiObject>(
  before: ApiObject | undefined,
  after: T,
  { resource, manager, part, now }: Ownership,
): T {
  const shape = shapeOf(schemaOf(resource));
  // A new object's status is not its creator's.
  const [was, is] = before === undefined ? [NOTHING, { ...after, status: undefined }] : [before, after];
  const comparison = compare(was, withoutUndefined(is), shape);
  const [changed, removed] = [owned(comparison.changed), owned(comparison.removed)];
  const entries = before?.metadata.managedFields ?? [];
  if (changed.size === 0 && removed.size === 0) return withEntries(after, entries);
  const self = {
    manager: manager || UNKNOWN_MANAGER,
    operation: 'Update',
    apiVersion: after.apiVersion,
    time: kubernetesTime(now),
    fieldsType: 'FieldsV1',
    ...(part === 'status' ? { subresource: 'status' } : {}),
  };
  const mine = entries.find((entry) => isSame(entry, self));
  const others = entries.flatMap((entry) => {
    const touched = entry === mine ? removed : union(changed, removed);
    return entry === mine && changed.size > 0 ? [] : [shrunk(entry, touched)];
  });
  const set = union(difference(fromFieldsV1(mine?.fieldsV1), removed), changed);
  return withEntries(
    after,
    changed.size === 0 ? others : [...others, { ...self, fieldsV1: toFieldsV1(set) }],
  );
}

/** What applying makes of an object. */
export interface Applied {
  readonly object: ApiObject;
  readonly managedFields: readonly ManagedFields[];
}

/**
 * The object after somebody applied what they want of it: fields they wanted before and want no more go, unless somebody else
 * owns them. Throws 409 for a field that somebody else owns and that would change, unless `force`. Upstream: `Updater.Apply`.
 */
export function applied(
  current: ApiObject,
  wanted: unknown,
  { resource, manager, part, now }: Ownership,
  force: boolean,
): Applied {
  const shape = shapeOf(schemaOf(resource));
  const self = {
    manager,
    operation: 'Apply',
    apiVersion: current.apiVersion,
    time: kubernetesTime(now),
    fieldsType: 'FieldsV1',
    ...(part === 'status' ? { subresource: 'status' } : {}),
  };
  const entries = current.metadata.managedFields ?? [];
  const mine = entries.find((entry) => isSame(entry, self));
  const others = entries.filter((entry) => entry !== mine);
  const set = owned(fieldSetOf(wanted, shape));
  const everybodys = union(set, ...others.map(({ fieldsV1 }) => fromFieldsV1(fieldsV1)));
  const merged = merge(current, wanted, shape);
  const next = prune(merged, shape, fromFieldsV1(mine?.fieldsV1), everybodys) as ApiObject;
  const { changed, removed } = compare(current, next, shape);
  const conflicts = others.flatMap((entry) =>
    [...intersection(fromFieldsV1(entry.fieldsV1), changed)].map((path) => ({ entry, path })),
  );
  if (conflicts.length > 0 && !force) throw conflictsWith(conflicts);
  const own = { ...self, fieldsV1: toFieldsV1(set) };
  const isSameAsBefore = mine !== undefined && difference(set, fromFieldsV1(mine.fieldsV1)).size === 0;
  const isNoop = isSameAsBefore && changed.size === 0 && removed.size === 0;
  return {
    object: next,
    managedFields: ordered([
      isNoop ? { ...own, time: mine.time } : own,
      ...others.map((entry) => shrunk(entry, union(changed, removed))),
    ]),
  };
}

/** Owners of an object that somebody made by applying it. */
export const firstApplied = (
  object: ApiObject,
  wanted: unknown,
  { resource, manager, now }: Ownership,
): readonly ManagedFields[] => [
  {
    manager,
    operation: 'Apply',
    apiVersion: object.apiVersion,
    time: kubernetesTime(now),
    fieldsType: 'FieldsV1',
    fieldsV1: toFieldsV1(owned(fieldSetOf(wanted, shapeOf(schemaOf(resource))))),
  },
];

/** An object with these owners; one whose owners own nothing has none. */
export function withEntries<T extends ApiObject>(object: T, entries: readonly ManagedFields[]): T {
  const { managedFields, ...metadata } = object.metadata;
  const kept = ordered(entries);
  return { ...object, metadata: kept.length === 0 ? metadata : { ...metadata, managedFields: kept } };
}

const ordered = (entries: readonly ManagedFields[]): ManagedFields[] =>
  entries
    .filter(({ fieldsV1 }) => Object.keys(fieldsV1).length > 0)
    .sort(
      (a, b) =>
        a.operation.localeCompare(b.operation) ||
        a.time.localeCompare(b.time) ||
        a.manager.localeCompare(b.manager),
    );

const isSame = (a: Partial<ManagedFields>, b: Partial<ManagedFields>): boolean =>
  a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource;

const shrunk = (entry: ManagedFields, by: FieldSet): ManagedFields => ({
  ...entry,
  fieldsV1: toFieldsV1(difference(fromFieldsV1(entry.fieldsV1), by)),
});

const withoutUndefined = (object: object): object =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

interface Conflict {
  readonly entry: ManagedFields;
  readonly path: string;
}

/** Upstream: `NewConflictError`. */
function conflictsWith(conflicts: readonly Conflict[]): StatusError {
  const causes = conflicts.map(({ entry, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${ownerText(entry)}`,
    field: pathText(path),
  }));
  const [first] = causes;
  if (causes.length === 1) {
    const message = `Apply failed with 1 conflict: ${first?.message}: ${first?.field}`;
    return new StatusError(409, 'Conflict', message, { causes });
  }
  const lines = [...Map.groupBy(causes, ({ message }) => message)]
    .sort(([a], [b]) => a.localeCompare(b))
    .flatMap(([message, fields]) => [
      `${message.replace('conflict', 'conflicts')}:`,
      ...fields.map(({ field }) => `- ${field}`),
    ]);
  const message = `Apply failed with ${causes.length} conflicts: ${lines.join('\n')}`;
  return new StatusError(409, 'Conflict', message, { causes });
}

function ownerText({ manager, subresource, operation, apiVersion, time }: ManagedFields): string {
  const name = `"${manager}"${subresource === undefined ? '' : ` with subresource "${subresource}"`}`;
  return operation === 'Update' ? `${name} using ${apiVersion} at ${time}` : name;
}

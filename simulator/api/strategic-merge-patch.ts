import { type Fields, fieldsOf, itemsOf } from '../objects/json.ts';
import { badRequest } from '../objects/status.ts';

const DIRECTIVE = '$patch';
const ORDER_PREFIX = '$setElementOrder/';
const DELETION_PREFIX = '$deleteFromPrimitiveList/';
const RETAINED = '$retainKeys';

/**
 * The lists that are merged, by the field that identifies an item; "" where the items are plain values. Upstream:
 * `patchMergeKey`.
 */
const MERGE_KEYS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    addresses: 'type',
    conditions: 'type',
    containers: 'name',
    env: 'name',
    ephemeralContainers: 'name',
    finalizers: '',
    hostAliases: 'ip',
    hostIPs: 'ip',
    imagePullSecrets: 'name',
    initContainers: 'name',
    ownerReferences: 'uid',
    podCIDRs: '',
    podIPs: 'ip',
    ports: 'containerPort',
    resourceClaimStatuses: 'name',
    resourceClaims: 'name',
    schedulingGates: 'name',
    topologySpreadConstraints: 'topologyKey',
    volumeDevices: 'devicePath',
    volumeMounts: 'mountPath',
    volumes: 'name',
  }),
);

/**
 * Returns an object of a kind after a strategic merge patch. Null removes a field, and objects are merged. A list is merged by
 * its merge key if it has one, as a set if it is merged without a key, and replaced otherwise. Supports the directives `$patch`
 * (replace, delete, merge), `$setElementOrder`, `$retainKeys` and `$deleteFromPrimitiveList`. Throws 400 if the patch is not an
 * object or a directive is invalid. Upstream: `strategicpatch.StrategicMergePatch`.
 */
export function strategicMergePatch(object: unknown, patch: unknown): unknown {
  return mergeFields('', fieldsOf(object), objectOf('the patch', patch));
}

function mergeFields(path: string, object: Fields, patch: Fields): Fields {
  const { [DIRECTIVE]: directive, [RETAINED]: retained, ...fields } = patch;
  if (directive === 'replace') return fields;
  if (directive === 'delete') return {};
  refuseUnknownDirective(directive);
  const merged: Record<string, unknown> = Array.isArray(retained)
    ? Object.fromEntries(Object.entries(object).filter(([name]) => retained.includes(name)))
    : { ...object };
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith(ORDER_PREFIX)) continue;
    if (name.startsWith(DELETION_PREFIX)) {
      const list = name.slice(DELETION_PREFIX.length);
      merged[list] = itemsOf(merged[list]).filter((item) => !itemsOf(value).includes(item));
    } else if (name.startsWith('$')) {
      throw badRequest(`patch directive ${name} is not supported: send the whole list`);
    } else if (value === null) delete merged[name];
    else {
      const at = path === '' ? name : `${path}.${name}`;
      const order = fields[ORDER_PREFIX + name];
      merged[name] = mergeValue(at, merged[name], value, order, MERGE_KEYS.get(name));
    }
  }
  return merged;
}

function mergeValue(
  path: string,
  present: unknown,
  value: unknown,
  order: unknown,
  key: string | undefined,
): unknown {
  if (Array.isArray(value)) {
    if (key === undefined) return value;
    if (key === '') return [...new Set([...itemsOf(present), ...value])];
    return mergeList(path, key, itemsOf(present), value, order);
  }
  if (typeof value !== 'object' || value === null) return value;
  return mergeFields(path, fieldsOf(present), fieldsOf(value));
}

function mergeList(
  path: string,
  key: string,
  present: readonly unknown[],
  patch: readonly unknown[],
  order: unknown,
): readonly unknown[] {
  const items = patch.map((item) => objectOf(`an item of ${path}`, item));
  const replaces = items.some((item) => item[DIRECTIVE] === 'replace');
  const before = replaces ? [] : present.map(fieldsOf);
  const deleted = new Set(items.filter((item) => item[DIRECTIVE] === 'delete').map((item) => item[key]));
  const merged = items
    .filter((item) => item[DIRECTIVE] === undefined || item[DIRECTIVE] === 'merge')
    .map((item) => {
      if (item[key] === undefined)
        throw badRequest(`an item of ${path} has no ${key}, by which it is merged: add it`);
      return mergeFields(path, before.find((old) => old[key] === item[key]) ?? {}, item);
    });
  const untouched = before.filter(
    (old) => !deleted.has(old[key]) && merged.every((item) => item[key] !== old[key]),
  );
  return interleave(inOrder(merged, key, order), untouched, (item) =>
    before.findIndex((old) => old[key] === item[key]),
  );
}

/** Returns the patched items in the order of `$setElementOrder`; items that it does not name stay in front. */
function inOrder(items: readonly Fields[], key: string, order: unknown): readonly Fields[] {
  if (!Array.isArray(order)) return items;
  const keys = order.map((item) => fieldsOf(item)[key]);
  return items.toSorted((a, b) => keys.indexOf(a[key]) - keys.indexOf(b[key]));
}

/**
 * Returns all items. Patched items come first, unless an untouched one stood in front of a patched one that existed before.
 * Upstream: `mergeSortedSlice`.
 */
function interleave(
  patched: readonly Fields[],
  untouched: readonly Fields[],
  placeBefore: (item: Fields) => number,
): readonly Fields[] {
  const [first, ...others] = untouched;
  const [next, ...later] = patched;
  if (first === undefined) return patched;
  if (next === undefined) return untouched;
  const place = placeBefore(next);
  return place >= 0 && placeBefore(first) < place
    ? [first, ...interleave(patched, others, placeBefore)]
    : [next, ...interleave(later, untouched, placeBefore)];
}

function objectOf(what: string, value: unknown): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return fieldsOf(value);
  throw badRequest(`${what} must be a JSON object`);
}

function refuseUnknownDirective(directive: unknown): void {
  if (directive === undefined || directive === 'merge') return;
  throw badRequest(`$patch: ${String(directive)} is not supported: use replace, delete or merge`);
}

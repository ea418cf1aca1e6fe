import { isDeepStrictEqual } from 'node:util';
import { fieldsOf, itemsOf } from './json.ts';
import {
  type ApiObject,
  type EpochMs,
  kubernetesTime,
  type ManagedFields,
  type ResourceName,
} from './kinds.ts';

/** The real server's name for a client that sends neither a manager nor a user agent. */
const UNKNOWN_MANAGER = 'unknown';

/** A field that has an owner, and its name in `managedFields`. */
interface OwnedField {
  readonly fieldsV1: ManagedFields['fieldsV1'];
  readonly subresource?: string;
  readonly valueIn: (object: ApiObject) => unknown;
}

/**
 * The fields whose owners a taint controller reads. A node's taints show when they were set again. The mark of an evicted pod
 * shows which other controller evicts.
 */
const OWNED_FIELDS: { readonly [R in ResourceName]?: OwnedField } = {
  nodes: {
    fieldsV1: { 'f:spec': { 'f:taints': {} } },
    valueIn: (node) => itemsOf(fieldsOf(node['spec'])['taints']),
  },
  pods: {
    fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"DisruptionTarget"}': {} } } },
    subresource: 'status',
    valueIn: (pod) =>
      itemsOf(fieldsOf(pod['status'])['conditions']).filter(
        (condition) => fieldsOf(condition)['type'] === 'DisruptionTarget',
      ),
  },
};

/**
 * Returns an object after `manager` changed it from `before`. The manager owns each field of {@link OWNED_FIELDS} that it added
 * or changed, from now on. An empty field has no owner.
 */
export function withOwner<T extends ApiObject>(
  resource: ResourceName,
  before: ApiObject | undefined,
  after: T,
  manager: string,
  now: EpochMs,
): T {
  const field = OWNED_FIELDS[resource];
  if (field === undefined) return after;
  const value = itemsOf(field.valueIn(after));
  if (isDeepStrictEqual(value, before === undefined ? [] : field.valueIn(before))) return after;
  const { managedFields, ...metadata } = after.metadata;
  if (value.length === 0) return { ...after, metadata };
  const { fieldsV1, subresource } = field;
  const owner = {
    manager: manager || UNKNOWN_MANAGER,
    operation: 'Update',
    apiVersion: after.apiVersion,
    time: kubernetesTime(now),
    fieldsType: 'FieldsV1',
    fieldsV1,
    ...(subresource === undefined ? {} : { subresource }),
  };
  return { ...after, metadata: { ...metadata, managedFields: [owner] } };
}

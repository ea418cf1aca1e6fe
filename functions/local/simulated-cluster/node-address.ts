import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/json-fields.ts';
import type { ApiObject } from './objects.ts';

/** A node's address inside the cluster; "" when it has none. */
export function internalIp(node: ApiObject): string {
  const addresses = itemsOf(fieldsOf(node['status'])['addresses']).map(fieldsOf);
  return textOf(addresses.find(({ type }) => type === 'InternalIP')?.['address']);
}

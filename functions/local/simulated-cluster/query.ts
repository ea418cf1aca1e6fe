import type { ResourceName } from './objects/kinds.ts';
import { badRequest } from './objects/status.ts';
import { everything, fieldSelector, labelSelector, type Selector } from './selectors.ts';

/** Whole numbers of a query's parameter; absent or empty is `undefined`. Throws 400. */
export function numberIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? '';
  if (text === '') return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) throw badRequest(`${name} must be a whole number, not "${text}"`);
  return Number(text);
}

/** `1` and `true` are yes, as on the real server. */
export const flagIn = (query: URLSearchParams, name: string): boolean =>
  ['1', 'true'].includes(query.get(name) ?? '');

/** Field and label selector together. Throws 400. */
export function selectorIn(query: URLSearchParams, resource: ResourceName): Selector {
  const fields = query.get('fieldSelector');
  const labels = query.get('labelSelector');
  if (!fields && !labels) return everything;
  const byField = fieldSelector(resource, fields ?? '');
  const byLabel = labelSelector(labels ?? '');
  return (object) => byField(object) && byLabel(object);
}

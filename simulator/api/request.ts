import type { IncomingMessage, ServerResponse } from 'node:http';
import { fieldsOf, textOf } from '../objects/json.ts';
import {
  API_VERSIONS,
  type ApiObject,
  RESOURCE_NAMES,
  type ResourceName,
  type Selector,
} from '../objects/kinds.ts';
import { parseLabelSelector } from '../objects/label-selector.ts';
import { badRequest, invalid } from '../objects/status.ts';
import type { Origin } from '../objects/store.ts';
import { GROUP_VERSIONS, pathOf } from './discovery.ts';
import { RESOURCES } from './resources.ts';

/** A request about objects, and its answer. */
export interface ObjectCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly path: ApiPath;
}

/** The parts of a path below `/api/v1` or below a named group. */
export interface ApiPath {
  readonly resource: ResourceName;
  /** "" for nodes and namespaces, and for a list across all namespaces. */
  readonly namespace: string;
  /** Absent: the whole collection. */
  readonly name?: string;
  /** "" for the object itself. */
  readonly subresource: string;
}

/** Reads a path such as `/api/v1/namespaces/default/pods/web/status`; `undefined`: the path names nothing. */
export function parseApiPath(pathname: string): ApiPath | undefined {
  const version = GROUP_VERSIONS.find((one) => pathname.startsWith(`${pathOf(one)}/`));
  if (version === undefined) return undefined;
  const isResource = (text: string): text is ResourceName =>
    RESOURCE_NAMES.some((name) => name === text && API_VERSIONS[name] === version);
  const segments = decoded(pathname.slice(pathOf(version).length + 1));
  if (segments === undefined) return undefined;
  const [first = '', second, third, ...rest] = segments;
  if (first === 'namespaces' && second !== undefined && third !== undefined && isResource(third)) {
    return RESOURCES[third].namespaced ? withName(third, second, rest) : undefined;
  }
  if (!isResource(first)) return undefined;
  const names = segments.slice(1);
  // A namespaced object can only be named within its namespace.
  if (RESOURCES[first].namespaced && names.length > 0) return undefined;
  return withName(first, '', names);
}

function withName(resource: ResourceName, namespace: string, names: readonly string[]): ApiPath | undefined {
  const [name, subresource = '', ...more] = names;
  if (more.length > 0) return undefined;
  if (subresource !== '' && !RESOURCES[resource].subresources.some((one) => one.name === subresource)) {
    return undefined;
  }
  return { resource, namespace, ...(name === undefined ? {} : { name }), subresource };
}

/** Returns the segments of a path; `undefined` when one is empty or badly escaped. */
function decoded(path: string): readonly string[] | undefined {
  try {
    const segments = path.split('/').map(decodeURIComponent);
    return segments.includes('') ? undefined : segments;
  } catch {
    return undefined;
  }
}

/** The real server's limit (`FieldManagerMaxLength`). */
const MAX_MANAGER_LENGTH = 128;

/**
 * Returns the actor of a change: the parameter `fieldManager`, or else the user agent up to its first `/`; "" when there is
 * neither. Upstream: `managerOrUserAgent`.
 */
function managerOf({ request, query }: ObjectCall): string {
  const [product = ''] = (request.headers['user-agent'] ?? '').split('/');
  return query.get('fieldManager') || product.slice(0, MAX_MANAGER_LENGTH);
}

/** Returns the actor of a change, and whether the request is a dry run. Throws 422 for an invalid `dryRun`. */
export const originOf = (call: ObjectCall): Origin => ({
  manager: managerOf(call),
  dryRun: isDryRun(call.query.getAll('dryRun')),
});

/** Reports whether the request is a dry run. Throws 422 for anything but `All`. */
export function isDryRun(given: readonly string[]): boolean {
  const wrong = given.find((one) => one !== 'All');
  if (wrong !== undefined) {
    const message = `Unsupported value: ["${wrong}"]: supported values: "All"`;
    throw invalid('Options.meta.k8s.io', '', [
      { reason: 'FieldValueNotSupported', message, field: 'dryRun' },
    ]);
  }
  return given.length > 0;
}

/** Returns the whole number in a query's parameter; absent or empty is `undefined`. Throws 400. */
export function numberIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? '';
  if (text === '') return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) throw badRequest(`${name} must be a whole number, not "${text}"`);
  return Number(text);
}

/** Reports whether a flag is set: by `1` or `true`, as on the real server. */
export const flagIn = (query: URLSearchParams, name: string): boolean =>
  ['1', 'true'].includes(query.get(name) ?? '');

/** Returns the field selector and the label selector, combined. Throws 400. */
export function selectorIn(query: URLSearchParams, resource: ResourceName): Selector {
  const fields = query.get('fieldSelector');
  const labels = query.get('labelSelector');
  if (!fields && !labels) return everything;
  const byField = fieldSelector(resource, fields ?? '');
  const byLabel = parseLabelSelector(labels ?? '');
  return (object) => byField(object) && byLabel(object.metadata.labels);
}

export const everything: Selector = () => true;

const OPERATION = /^(?<path>[^=!]+?)\s*(?<operator>==?|!=)\s*(?<value>.*)$/;

/**
 * Returns a selector for the terms `path=value`, `path==value` and `path!=value`, all of them, separated by commas. Throws 400.
 */
export function fieldSelector(resource: ResourceName, text: string): Selector {
  return all(text, (term) => {
    const { path = '', operator, value = '' } = OPERATION.exec(term)?.groups ?? {};
    if (!operator) throw badRequest(`invalid field selector "${term}": write field=value or field!=value`);
    if (
      !['metadata.name', 'metadata.namespace', ...(RESOURCES[resource].selectableFields ?? [])].includes(path)
    ) {
      throw badRequest(`field label not supported: ${path}`);
    }
    return (object) => (fieldText(object, path) === value) === (operator !== '!=');
  });
}

function all(text: string, parse: (term: string) => Selector): Selector {
  const selectors = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '')
    .map(parse);
  return (object) => selectors.every((selects) => selects(object));
}

function fieldText(object: ApiObject, path: string): string {
  let value: unknown = object;
  for (const field of path.split('.')) value = fieldsOf(value)[field];
  // An Event's source is selected by its component; an absent flag counts as false.
  if (path === 'source') return textOf(fieldsOf(value)['component']);
  if (path === 'spec.unschedulable') return String(value === true);
  return typeof value === 'number' ? String(value) : textOf(value);
}

import { RESOURCE_NAMES, type ResourceName } from './objects/kinds.ts';
import { RESOURCES } from './resources.ts';

/** What a path below `/api/v1` names. */
export interface ApiPath {
  readonly resource: ResourceName;
  /** "" for nodes and namespaces, and for a list across all namespaces. */
  readonly namespace: string;
  /** Absent: the whole collection. */
  readonly name?: string;
  /** "" for the object itself. */
  readonly subresource: string;
}

/** Reads a path such as `/api/v1/namespaces/default/pods/web/status`; `undefined` for one that names nothing. */
export function parseApiPath(pathname: string): ApiPath | undefined {
  const prefix = '/api/v1/';
  if (!pathname.startsWith(prefix)) return undefined;
  const segments = decoded(pathname.slice(prefix.length));
  if (segments === undefined) return undefined;
  const [first = '', second, third, ...rest] = segments;
  if (first === 'namespaces' && second !== undefined && third !== undefined && isResource(third)) {
    return RESOURCES[third].namespaced ? withName(third, second, rest) : undefined;
  }
  if (!isResource(first)) return undefined;
  const names = segments.slice(1);
  // A namespaced object is named within its namespace only.
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

const isResource = (text: string): text is ResourceName => RESOURCE_NAMES.some((name) => name === text);

/** The segments of a path; `undefined` when one is empty or badly escaped. */
function decoded(path: string): readonly string[] | undefined {
  try {
    const segments = path.split('/').map(decodeURIComponent);
    return segments.includes('') ? undefined : segments;
  } catch {
    return undefined;
  }
}

import type { ApiObject, EpochMs, ResourceName } from './objects/kinds.ts';
import { StatusError } from './objects/status.ts';
import { RESOURCES } from './resources.ts';
import { table } from './table.ts';

/** How a client wants objects answered: as they are, or as the rows of a table. */
export interface Representation {
  readonly asTable: boolean;
  readonly wholeObjects: boolean;
}

/** Reads `Accept` and `includeObject`. Throws 406 when the client takes no JSON. */
export function representation(accept: string | undefined, includeObject: string | null): Representation {
  for (const clause of (accept ?? '*/*').split(',')) {
    const [type = '', ...parameters] = clause.split(';').map((part) => part.trim());
    if (!['application/json', 'application/*', '*/*'].includes(type)) continue;
    const as = parameters.find((parameter) => parameter.startsWith('as='));
    if (as === undefined) return { asTable: false, wholeObjects: true };
    if (as === 'as=Table' && parameters.includes('v=v1')) {
      return { asTable: true, wholeObjects: includeObject === 'Object' };
    }
  }
  const message = 'only application/json is available, or application/json;as=Table;v=v1;g=meta.k8s.io';
  throw new StatusError(406, 'NotAcceptable', message);
}

/** One object, as it is to be answered. */
export function represented(
  object: ApiObject,
  resource: ResourceName,
  { asTable, wholeObjects }: Representation,
  now: EpochMs,
  withColumns = true,
): object {
  if (!asTable) return object;
  const metadata = { resourceVersion: object.metadata.resourceVersion };
  return table([object], { resource, now, metadata, wholeObjects, withColumns });
}

/** A page of a list, as it is to be answered. */
export function representedList(
  objects: readonly ApiObject[],
  resource: ResourceName,
  metadata: object,
  { asTable, wholeObjects }: Representation,
  now: EpochMs,
): object {
  if (asTable) return table(objects, { resource, now, metadata, wholeObjects, withColumns: true });
  return { kind: `${RESOURCES[resource].kind}List`, apiVersion: 'v1', metadata, items: objects };
}

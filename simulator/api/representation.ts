import type { ServerResponse } from 'node:http';
import { stringifyJson } from '../objects/json.ts';
import { API_VERSIONS, type ApiObject, type EpochMs, KINDS, type ResourceName } from '../objects/kinds.ts';
import { StatusError } from '../objects/status.ts';
import { COLUMNS } from './columns.ts';

/** Answers with a JSON document. */
export function sendJson(response: ServerResponse, code: number, body: object): void {
  const text = stringifyJson(body);
  response
    .writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}

/** The requested form of objects: as they are, or as the rows of a table. */
export interface Representation {
  readonly asTable: boolean;
  readonly wholeObjects: boolean;
}

/** Reads `Accept` and `includeObject`. Throws 406 when the client does not accept JSON. */
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

/** Returns one object in the requested representation. */
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

/** Returns a page of a list in the requested representation. */
export function representedList(
  objects: readonly ApiObject[],
  resource: ResourceName,
  metadata: object,
  { asTable, wholeObjects }: Representation,
  now: EpochMs,
): object {
  if (asTable) return table(objects, { resource, now, metadata, wholeObjects, withColumns: true });
  return { kind: `${KINDS[resource]}List`, apiVersion: API_VERSIONS[resource], metadata, items: objects };
}

interface TableOptions {
  readonly resource: ResourceName;
  readonly now: EpochMs;
  /** The metadata of the list, or of the object. */
  readonly metadata: object;
  /** True: rows carry their whole objects, which kubectl needs to sort by a field. */
  readonly wholeObjects: boolean;
  /** False for later events of a watch: the real server sends the columns only once. */
  readonly withColumns: boolean;
}

/** Returns objects as the `meta.k8s.io/v1` Table that kubectl prints. */
function table(objects: readonly ApiObject[], options: TableOptions): object {
  const columns = COLUMNS[options.resource];
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: options.metadata,
    columnDefinitions: options.withColumns
      ? columns.map(({ name, wide = false }) => ({
          name,
          type: 'string',
          format: name === 'Name' ? 'name' : '',
          description: '',
          priority: wide ? 1 : 0,
        }))
      : null,
    rows: objects.map((object) => ({
      cells: columns.map(({ cell }) => cell(object, options.now)),
      object: options.wholeObjects
        ? object
        : { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
    })),
  };
}

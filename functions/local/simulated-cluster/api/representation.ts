import type { ServerResponse } from 'node:http';
import { fieldsOf, itemsOf, stringifyJson, textOf } from '../objects/json.ts';
import { type ApiObject, type EpochMs, internalIp, KINDS, type ResourceName } from '../objects/kinds.ts';
import { StatusError } from '../objects/status.ts';

/** Answers with a JSON document. */
export function sendJson(response: ServerResponse, code: number, body: object): void {
  const text = stringifyJson(body);
  response
    .writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}

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
  return { kind: `${KINDS[resource]}List`, apiVersion: 'v1', metadata, items: objects };
}

interface Column {
  readonly name: string;
  /** Only in `kubectl get -o wide`. */
  readonly wide?: boolean;
  readonly cell: (object: ApiObject, now: EpochMs) => string;
}

const NONE = '<none>';
const orNone = (text: string): string => (text === '' ? NONE : text);

const spec = (object: ApiObject) => fieldsOf(object['spec']);
const status = (object: ApiObject) => fieldsOf(object['status']);
const nodeInfo = (field: string) => (object: ApiObject) =>
  textOf(fieldsOf(status(object)['nodeInfo'])[field]);

const age = (time: string, now: EpochMs): string =>
  time === '' ? '<unknown>' : humanDuration(now - Date.parse(time));

const NAME: Column = { name: 'Name', cell: ({ metadata }) => metadata.name };
const AGE: Column = { name: 'Age', cell: ({ metadata }, now) => age(metadata.creationTimestamp, now) };

/** The columns that kubectl shows of a real cluster's objects. Upstream: `printers/internalversion`. */
const COLUMNS: { readonly [R in ResourceName]: readonly Column[] } = {
  nodes: [
    NAME,
    { name: 'Status', cell: nodeStatus },
    { name: 'Roles', cell: () => NONE },
    AGE,
    { name: 'Version', cell: nodeInfo('kubeletVersion') },
    { name: 'Internal-IP', wide: true, cell: (node) => orNone(internalIp(node)) },
    { name: 'External-IP', wide: true, cell: () => NONE },
    { name: 'OS-Image', wide: true, cell: nodeInfo('osImage') },
    { name: 'Kernel-Version', wide: true, cell: nodeInfo('kernelVersion') },
    { name: 'Container-Runtime', wide: true, cell: nodeInfo('containerRuntimeVersion') },
  ],
  pods: [
    NAME,
    { name: 'Ready', cell: readyContainers },
    { name: 'Status', cell: podStatus },
    { name: 'Restarts', cell: () => '0' },
    AGE,
    { name: 'IP', wide: true, cell: (pod) => orNone(textOf(status(pod)['podIP'])) },
    { name: 'Node', wide: true, cell: (pod) => orNone(textOf(spec(pod)['nodeName'])) },
    { name: 'Nominated Node', wide: true, cell: () => NONE },
    { name: 'Readiness Gates', wide: true, cell: () => NONE },
  ],
  events: [
    { name: 'Last Seen', cell: (event, now) => age(textOf(event['lastTimestamp']), now) },
    { name: 'Type', cell: (event) => textOf(event['type']) },
    { name: 'Reason', cell: (event) => textOf(event['reason']) },
    { name: 'Object', cell: involvedObject },
    { name: 'Source', wide: true, cell: (event) => textOf(fieldsOf(event['source'])['component']) },
    { name: 'Message', cell: (event) => textOf(event['message']).trim() },
    { name: 'First Seen', wide: true, cell: (event, now) => age(textOf(event['firstTimestamp']), now) },
    { name: 'Count', wide: true, cell: (event) => String(event['count'] ?? 1) },
    { name: 'Name', wide: true, cell: ({ metadata }) => metadata.name },
  ],
  namespaces: [NAME, { name: 'Status', cell: (namespace) => textOf(status(namespace)['phase']) }, AGE],
};

interface TableOptions {
  readonly resource: ResourceName;
  readonly now: EpochMs;
  /** The list's, or the object's. */
  readonly metadata: object;
  /** Whether rows carry their whole objects, which kubectl needs to sort by a field. */
  readonly wholeObjects: boolean;
  /** Later events of a watch go without, as the real server's do. */
  readonly withColumns: boolean;
}

/** Objects as the `meta.k8s.io/v1` Table that kubectl prints. */
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

function nodeStatus(node: ApiObject): string {
  const conditions = itemsOf(status(node)['conditions']).map(fieldsOf);
  const ready = conditions.find(({ type }) => type === 'Ready')?.['status'];
  const word = ready === undefined ? 'Unknown' : ready === 'True' ? 'Ready' : 'NotReady';
  return spec(node)['unschedulable'] === true ? `${word},SchedulingDisabled` : word;
}

function readyContainers(pod: ApiObject): string {
  const ready = itemsOf(status(pod)['containerStatuses']).filter((one) => fieldsOf(one)['ready'] === true);
  return `${ready.length}/${itemsOf(spec(pod)['containers']).length}`;
}

function podStatus(pod: ApiObject): string {
  return pod.metadata.deletionTimestamp === undefined ? textOf(status(pod)['phase']) : 'Terminating';
}

function involvedObject(event: ApiObject): string {
  const { kind, name } = fieldsOf(event['involvedObject']);
  return `${textOf(kind).toLowerCase()}/${textOf(name)}`;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A duration with two or three significant digits, as kubectl shows ages. Upstream: `duration.HumanDuration`. */
function humanDuration(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.max(0, Math.trunc(ms / SECOND_MS))}s`;
  if (ms < 10 * MINUTE_MS) return whole(ms, MINUTE_MS, 'm') + rest(ms, MINUTE_MS, SECOND_MS, 's');
  if (ms < 3 * HOUR_MS) return whole(ms, MINUTE_MS, 'm');
  if (ms < 8 * HOUR_MS) return whole(ms, HOUR_MS, 'h') + rest(ms, HOUR_MS, MINUTE_MS, 'm');
  if (ms < 2 * DAY_MS) return whole(ms, HOUR_MS, 'h');
  if (ms < 8 * DAY_MS) return whole(ms, DAY_MS, 'd') + rest(ms, DAY_MS, HOUR_MS, 'h');
  return whole(ms, DAY_MS, 'd');
}

const whole = (ms: number, unitMs: number, unit: string) => `${Math.trunc(ms / unitMs)}${unit}`;

function rest(ms: number, unitMs: number, smallerMs: number, smaller: string): string {
  const count = Math.trunc((ms % unitMs) / smallerMs);
  return count === 0 ? '' : `${count}${smaller}`;
}

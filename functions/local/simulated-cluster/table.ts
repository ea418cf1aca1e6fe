import { humanDuration } from './human-duration.ts';
import { fieldsOf, itemsOf, textOf } from './objects/json.ts';
import type { ApiObject, EpochMs, ResourceName } from './objects/kinds.ts';
import { internalIp } from './objects/kinds.ts';

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

export interface TableOptions {
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
export function table(objects: readonly ApiObject[], options: TableOptions): object {
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

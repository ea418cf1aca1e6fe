import { fieldsOf, itemsOf, textOf } from '../objects/json.ts';
import { type ApiObject, type EpochMs, internalIp, type ResourceName } from '../objects/kinds.ts';
import { selectorText } from '../objects/label-selector.ts';
import { labelSelectorSchema } from '../objects/workload-kinds.ts';
import { humanDuration } from './human-duration.ts';

/** A column of the table that kubectl prints. */
interface Column {
  readonly name: string;
  /** Only in `kubectl get -o wide`. */
  readonly wide?: boolean;
  readonly cell: (object: ApiObject, now: EpochMs) => string | number;
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

const counted = (object: ApiObject, field: string): number => Number(status(object)[field] ?? 0);
const desired = (object: ApiObject): number => Number(spec(object)['replicas'] ?? 0);
const share = (object: ApiObject, field: string): string => String(spec(object)[field] ?? 'N/A');

const templateSpec = (object: ApiObject) => fieldsOf(fieldsOf(spec(object)['template'])['spec']);
const containers = (field: string) => (object: ApiObject) =>
  itemsOf(templateSpec(object)['containers'])
    .map((container) => textOf(fieldsOf(container)[field]))
    .join(',');

function nodeSelector(object: ApiObject): string {
  const labels = Object.entries(fieldsOf(templateSpec(object)['nodeSelector']));
  return orNone(labels.map(([label, value]) => `${label}=${value}`).join(','));
}

const TEMPLATE: readonly Column[] = [
  { name: 'Containers', wide: true, cell: containers('name') },
  { name: 'Images', wide: true, cell: containers('image') },
  {
    name: 'Selector',
    wide: true,
    cell: (object) => selectorText(labelSelectorSchema.parse(spec(object)['selector'] ?? {})),
  },
];

/** The columns that kubectl shows of a real cluster's objects. Upstream: `printers/internalversion`. */
export const COLUMNS: { readonly [R in ResourceName]: readonly Column[] } = {
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
  deployments: [
    NAME,
    { name: 'Ready', cell: (one) => `${counted(one, 'readyReplicas')}/${desired(one)}` },
    { name: 'Up-to-date', cell: (one) => counted(one, 'updatedReplicas') },
    { name: 'Available', cell: (one) => counted(one, 'availableReplicas') },
    AGE,
    ...TEMPLATE,
  ],
  replicasets: [
    NAME,
    { name: 'Desired', cell: desired },
    { name: 'Current', cell: (one) => counted(one, 'replicas') },
    { name: 'Ready', cell: (one) => counted(one, 'readyReplicas') },
    AGE,
    ...TEMPLATE,
  ],
  statefulsets: [
    NAME,
    { name: 'Ready', cell: (one) => `${counted(one, 'readyReplicas')}/${desired(one)}` },
    AGE,
    ...TEMPLATE.slice(0, 2),
  ],
  daemonsets: [
    NAME,
    { name: 'Desired', cell: (one) => counted(one, 'desiredNumberScheduled') },
    { name: 'Current', cell: (one) => counted(one, 'currentNumberScheduled') },
    { name: 'Ready', cell: (one) => counted(one, 'numberReady') },
    { name: 'Up-to-date', cell: (one) => counted(one, 'updatedNumberScheduled') },
    { name: 'Available', cell: (one) => counted(one, 'numberAvailable') },
    { name: 'Node Selector', cell: nodeSelector },
    AGE,
    ...TEMPLATE,
  ],
  poddisruptionbudgets: [
    NAME,
    { name: 'Min Available', cell: (one) => share(one, 'minAvailable') },
    { name: 'Max Unavailable', cell: (one) => share(one, 'maxUnavailable') },
    { name: 'Allowed Disruptions', cell: (one) => counted(one, 'disruptionsAllowed') },
    AGE,
  ],
};

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

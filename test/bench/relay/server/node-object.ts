import { hole, jsonHole, Template, type Values } from './template.ts';

/** A taint in the API's format. */
export interface Taint {
  readonly key: string;
  readonly effect: string;
  readonly timeAdded?: string;
}

/** The variable fields of a node; its number determines all others. */
export interface NodeState {
  readonly version: number;
  readonly taints: readonly Taint[];
  /** The time at which the taints were last written; absent: never. */
  readonly taintedAt?: string;
  readonly heartbeatAt: string;
}

const IMAGES = 50;
const LABELS = 25;
const CONDITIONS = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];
const REGISTRY = '123456789012.dkr.ecr.eu-west-1.amazonaws.com';

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0');

/** Returns the name of a node by its number, in EC2's format. */
export const nodeNameOf = (node: number): string =>
  `ip-10-${(node >> 8) & 255}-${node & 255}-${(node * 7) % 251}.eu-west-1.compute.internal`;

/** 13 KB, the size of a worker that has run for a month: half of it are images. */
const TEMPLATE = new Template({
  metadata: {
    name: hole('name'),
    uid: hole('uid'),
    resourceVersion: hole('version'),
    creationTimestamp: '2026-10-01T00:00:00Z',
    labels: Object.fromEntries(
      Array.from({ length: LABELS }, (_, label) => [`topology.example.com/label-${label}`, `value-${label}`]),
    ),
    annotations: {
      'alpha.kubernetes.io/provided-node-ip': '10.0.0.1',
      'csi.volume.kubernetes.io/nodeid': `{"ebs.csi.aws.com":"i-0${'a'.repeat(16)}"}`,
    },
    managedFields: jsonHole('managedFields'),
  },
  spec: { providerID: `aws:///eu-west-1a/i-${hole('instance')}`, taints: jsonHole('taints') },
  status: {
    capacity: { cpu: '16', memory: '64Gi', pods: '110' },
    allocatable: { cpu: '15890m', memory: '60Gi', pods: '110' },
    conditions: CONDITIONS.map((type) => ({
      type,
      status: type === 'Ready' ? 'True' : 'False',
      lastHeartbeatTime: hole('heartbeatAt'),
      lastTransitionTime: '2026-10-01T00:00:00Z',
      reason: `KubeletHas${type}`,
      message: `kubelet has ${type}`,
    })),
    images: Array.from({ length: IMAGES }, (_, image) => ({
      names: [
        `${REGISTRY}/service-${image}@sha256:${hex(image * 97, 64)}`,
        `${REGISTRY}/service-${image}:v1`,
      ],
      sizeBytes: 100_000_000 + image,
    })),
    nodeInfo: {
      kernelVersion: '6.1',
      osImage: 'Amazon Linux 2023',
      kubeletVersion: 'v1.35.0',
      architecture: 'arm64',
    },
  },
});

const KUBELET_FIELDS = {
  manager: 'kubelet',
  operation: 'Update',
  apiVersion: 'v1',
  time: '2026-11-01T10:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: {
    'f:status': {
      'f:conditions': Object.fromEntries(
        CONDITIONS.map((type) => [`k:{"type":"${type}"}`, { 'f:lastHeartbeatTime': {} }]),
      ),
      'f:images': {},
    },
  },
  subresource: 'status',
};

const taintFields = (time: string) => ({
  manager: 'kube-controller-manager',
  operation: 'Update',
  apiVersion: 'v1',
  time,
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:spec': { 'f:taints': {} } },
});

const KUBELET_FIELDS_JSON = JSON.stringify([KUBELET_FIELDS]);

/** Returns the template of a node and its values. */
export function nodeObject(
  node: number,
  { version, taints, taintedAt, heartbeatAt }: NodeState,
): [Template, Values] {
  return [
    TEMPLATE,
    {
      name: nodeNameOf(node),
      uid: `00000000-0000-4000-8000-${hex(node, 12)}`,
      version: String(version),
      instance: hex(node, 17),
      heartbeatAt,
      taints: JSON.stringify(taints),
      managedFields:
        taintedAt === undefined
          ? KUBELET_FIELDS_JSON
          : JSON.stringify([KUBELET_FIELDS, taintFields(taintedAt)]),
    },
  ];
}

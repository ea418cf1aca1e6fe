import { KUBERNETES_VERSION } from './api/discovery.ts';
import { type EpochMs, kubernetesTime, type ResourceName } from './objects/kinds.ts';
import type { ObjectStore } from './objects/store.ts';

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'] as const;
const NODES = ['node-1', 'node-2', 'node-3', 'node-4'];
const ZONES = ['zone-a', 'zone-b'];
const MAINTENANCE = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute' };

/** Returns the selector and the template of a workload's pods, with their tolerations of `maintenance:NoExecute`. */
const pods = (app: string, image: string, tolerations: readonly object[]) => ({
  selector: { matchLabels: { app } },
  template: {
    metadata: { labels: { app } },
    spec: { containers: [{ name: app, image }], tolerations },
  },
});

/** Four ways to tolerate the taint, and a budget for drains. */
const WORKLOADS: readonly {
  readonly resource: ResourceName;
  readonly name: string;
  readonly spec: object;
}[] = [
  {
    resource: 'statefulsets',
    name: 'db',
    spec: {
      replicas: 2,
      serviceName: 'db',
      ...pods('db', 'postgres:18.1', [{ ...MAINTENANCE, tolerationSeconds: 10 }]),
    },
  },
  { resource: 'deployments', name: 'web', spec: { replicas: 6, ...pods('web', 'nginx:1.29', []) } },
  {
    resource: 'deployments',
    name: 'checkout',
    spec: {
      replicas: 4,
      ...pods('checkout', 'example.com/checkout:2.4.1', [{ ...MAINTENANCE, tolerationSeconds: 30 }]),
    },
  },
  {
    resource: 'daemonsets',
    name: 'logs',
    spec: pods('logs', 'fluent/fluent-bit:4.1', [{ operator: 'Exists' }]),
  },
  {
    resource: 'poddisruptionbudgets',
    name: 'checkout',
    spec: { minAvailable: 3, selector: { matchLabels: { app: 'checkout' } } },
  },
];

interface NamedBody {
  readonly metadata: { readonly name: string };
  readonly spec?: object;
}

/**
 * Creates the demo's namespaces, nodes and workloads in a cluster that was never seeded completely; the controllers create the
 * pods. Namespaces are never deleted and the last one is created last, so its presence proves that seeding is complete. Objects
 * that a user deletes later are not created again.
 */
export function seedDemoFleet(store: ObjectStore): void {
  const last = NAMESPACES.at(-1) ?? '';
  if (store.find('namespaces', { namespace: '', name: last }) !== undefined) return;
  const seed = (resource: ResourceName, namespace: string, body: NamedBody) => {
    if (store.find(resource, { namespace, name: body.metadata.name }) !== undefined) return;
    store.create(resource, namespace, body);
  };
  for (const name of NAMESPACES.slice(0, -1)) seed('namespaces', '', { metadata: { name } });
  for (const [index, name] of NODES.entries()) seed('nodes', '', demoNode(name, index + 1, store.now()));
  for (const { resource, name, spec } of WORKLOADS) {
    seed(resource, 'default', { metadata: { name }, spec });
  }
  seed('namespaces', '', { metadata: { name: last } });
}

function demoNode(name: string, number: number, now: EpochMs) {
  const at = kubernetesTime(now);
  const resources = { cpu: '4', 'ephemeral-storage': '83873772Ki', memory: '16069100Ki', pods: '110' };
  return {
    metadata: {
      name,
      labels: {
        'beta.kubernetes.io/arch': 'amd64',
        'beta.kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'node.kubernetes.io/instance-type': 'simulated.xlarge',
        'topology.kubernetes.io/region': 'local',
        'topology.kubernetes.io/zone': ZONES[number % ZONES.length],
      },
    },
    spec: { podCIDR: `10.244.${number}.0/24`, providerID: `simulated://local/${name}` },
    status: {
      addresses: [
        { type: 'InternalIP', address: `10.0.0.${10 + number}` },
        { type: 'Hostname', address: name },
      ],
      capacity: resources,
      allocatable: { ...resources, cpu: '3920m', memory: '15055724Ki' },
      conditions: [
        condition(
          'MemoryPressure',
          'False',
          'KubeletHasSufficientMemory',
          'kubelet has sufficient memory available',
        ),
        condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
        condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
        condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'),
      ].map((each) => ({ ...each, lastHeartbeatTime: at, lastTransitionTime: at })),
      nodeInfo: {
        architecture: 'amd64',
        bootID: '',
        containerRuntimeVersion: 'containerd://2.2.0',
        kernelVersion: '6.12.0-simulated',
        kubeProxyVersion: '',
        kubeletVersion: KUBERNETES_VERSION,
        machineID: '',
        operatingSystem: 'linux',
        osImage: 'Simulated Linux',
        systemUUID: '',
      },
    },
  };
}

const condition = (type: string, status: string, reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
});

import { KUBERNETES_VERSION } from './api/discovery.ts';
import type { Workload } from './controllers/workloads.ts';
import { type EpochMs, kubernetesTime } from './objects/kinds.ts';
import type { ObjectStore } from './objects/store.ts';

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'] as const;
const NODES = ['node-1', 'node-2', 'node-3', 'node-4'];
const ZONES = ['zone-a', 'zone-b'];
const MAINTENANCE = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute' };

/** Four ways to take the taint `maintenance:NoExecute`. */
export const DEMO_WORKLOADS: readonly Workload[] = [
  {
    kind: 'StatefulSet',
    namespace: 'default',
    name: 'db',
    image: 'postgres:18.1',
    replicas: 2,
    tolerations: [{ ...MAINTENANCE, tolerationSeconds: 10 }],
  },
  {
    kind: 'Deployment',
    namespace: 'default',
    name: 'web',
    image: 'nginx:1.29',
    replicas: 6,
    tolerations: [],
  },
  {
    kind: 'Deployment',
    namespace: 'default',
    name: 'checkout',
    image: 'example.com/checkout:2.4.1',
    replicas: 4,
    tolerations: [{ ...MAINTENANCE, tolerationSeconds: 30 }],
  },
  {
    kind: 'DaemonSet',
    namespace: 'default',
    name: 'logs',
    image: 'fluent/fluent-bit:4.1',
    tolerations: [{ operator: 'Exists' }],
  },
];

/**
 * Puts the demo's namespaces and nodes into a cluster that was never seeded to the end; its controllers make the
 * pods. Namespaces are never deleted and the last one comes last, so it tells: a node that somebody deletes later
 * stays deleted.
 */
export function seedDemoFleet(store: ObjectStore): void {
  const [last, ...others] = NAMESPACES;
  if (store.find('namespaces', { namespace: '', name: last }) !== undefined) return;
  const isMissing = (resource: 'namespaces' | 'nodes', name: string) =>
    store.find(resource, { namespace: '', name }) === undefined;
  for (const name of others) {
    if (isMissing('namespaces', name)) store.create('namespaces', '', { metadata: { name } });
  }
  for (const [index, name] of NODES.entries()) {
    if (isMissing('nodes', name)) store.create('nodes', '', demoNode(name, index + 1, store.now()));
  }
  store.create('namespaces', '', { metadata: { name: last } });
}

function demoNode(name: string, number: number, now: EpochMs): object {
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

import { nodeNameOf } from './node-object.ts';
import { hole, Template, type Values } from './template.ts';

/** The variable fields of a pod; its place (its node and its number there) determines all others. */
export interface PodState {
  readonly version: number;
  /** The number of pods that had this place before. */
  readonly incarnation: number;
  readonly present: boolean;
  readonly createdAt: string;
  readonly changedAt: string;
}

/** Kinds of workload, each with its own template. */
const APPS = 16;
const REGISTRY = '123456789012.dkr.ecr.eu-west-1.amazonaws.com';
const CONDITIONS = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'];

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0');

function container(app: string, name: string, variables: number) {
  return {
    name,
    image: `${REGISTRY}/${app}/${name}:v1.4.0`,
    ports: [{ containerPort: 8080, protocol: 'TCP' }],
    env: Array.from({ length: variables }, (_, index) => ({
      name: `ENV_VARIABLE_${index}`,
      value: `value-of-${app}-${index}-https://endpoint.internal.example.com/${index}`,
    })),
    resources: { limits: { cpu: '500m', memory: '512Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    volumeMounts: [
      { name: 'config', mountPath: '/etc/config' },
      {
        name: `kube-api-access-${hole('suffix')}`,
        readOnly: true,
        mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
      },
    ],
    livenessProbe: {
      httpGet: { path: '/healthz', port: 8080, scheme: 'HTTP' },
      timeoutSeconds: 1,
      periodSeconds: 10,
      successThreshold: 1,
      failureThreshold: 3,
    },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  };
}

const owned = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [`f:${field}`, {}]));

/** The managed fields as the API server keeps them, and sends them with every list and watch. */
function managedFields(containers: readonly ReturnType<typeof container>[]) {
  const entry = { operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1' };
  const containerFields = containers.map(({ name, env }) => [
    `k:{"name":"${name}"}`,
    {
      '.': {},
      'f:env': Object.fromEntries(
        env.map((variable) => [`k:{"name":"${variable.name}"}`, { '.': {}, ...owned(['name', 'value']) }]),
      ),
      ...owned([
        'image',
        'imagePullPolicy',
        'livenessProbe',
        'name',
        'ports',
        'resources',
        'terminationMessagePath',
        'terminationMessagePolicy',
        'volumeMounts',
      ]),
    },
  ]);
  return [
    {
      ...entry,
      manager: 'kube-controller-manager',
      time: hole('createdAt'),
      fieldsV1: {
        'f:metadata': {
          'f:labels': { '.': {}, ...owned(['app', 'pod-template-hash', 'team']) },
          'f:ownerReferences': {},
        },
        'f:spec': {
          'f:containers': Object.fromEntries(containerFields),
          ...owned(['affinity', 'dnsPolicy', 'restartPolicy', 'serviceAccount', 'tolerations', 'volumes']),
        },
      },
    },
    {
      ...entry,
      manager: 'kubelet',
      time: hole('changedAt'),
      subresource: 'status',
      fieldsV1: {
        'f:status': {
          'f:conditions': Object.fromEntries(
            CONDITIONS.map((type) => [
              `k:{"type":"${type}"}`,
              { '.': {}, ...owned(['lastProbeTime', 'lastTransitionTime', 'status', 'type']) },
            ]),
          ),
          ...owned(['containerStatuses', 'hostIP', 'phase', 'podIP', 'podIPs', 'startTime']),
        },
      },
    },
  ];
}

/** About 11 KB, the size of a service with a dozen variables; every other one has a proxy beside it. */
function template(appNumber: number): Template {
  const app = `service-${appNumber}`;
  const containers = [container(app, 'app', 12 + appNumber)];
  if (appNumber % 2 === 1) containers.push(container(app, 'istio-proxy', 10));
  const notReady = ['not-ready', 'unreachable'].map((condition) => ({
    key: `node.kubernetes.io/${condition}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  }));
  const dedicated = { key: 'dedicated', operator: 'Equal', value: app, effect: 'NoSchedule' };
  return new Template({
    metadata: {
      name: hole('name'),
      generateName: `${app}-5d4f7c9b8-`,
      namespace: `team-${appNumber}`,
      uid: hole('uid'),
      resourceVersion: hole('version'),
      generation: 1,
      creationTimestamp: hole('createdAt'),
      labels: { app, 'pod-template-hash': '5d4f7c9b8', team: `team-${appNumber}` },
      annotations: { 'checksum/config': hole('hash'), 'prometheus.io/scrape': 'true' },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: `${app}-5d4f7c9b8`,
          uid: `10000000-0000-4000-8000-${hex(appNumber, 12)}`,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: managedFields(containers),
    },
    spec: {
      volumes: [
        { name: 'config', configMap: { name: `${app}-config`, defaultMode: 420 } },
        {
          name: `kube-api-access-${hole('suffix')}`,
          projected: {
            sources: [
              { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
              { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            ],
            defaultMode: 420,
          },
        },
      ],
      containers,
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: app,
      serviceAccount: app,
      nodeName: hole('node'),
      securityContext: {},
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 100,
              podAffinityTerm: {
                labelSelector: { matchLabels: { app } },
                topologyKey: 'kubernetes.io/hostname',
              },
            },
          ],
        },
      },
      schedulerName: 'default-scheduler',
      tolerations: appNumber % 5 === 0 ? [dedicated, ...notReady] : notReady,
      priority: 0,
      enableServiceLinks: true,
      preemptionPolicy: 'PreemptLowerPriority',
    },
    status: {
      phase: 'Running',
      observedGeneration: 1,
      conditions: CONDITIONS.map((type) => ({
        type,
        observedGeneration: 1,
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: hole(type === 'PodScheduled' ? 'createdAt' : 'changedAt'),
      })),
      hostIP: '10.0.1.2',
      hostIPs: [{ ip: '10.0.1.2' }],
      podIP: hole('ip'),
      podIPs: [{ ip: hole('ip') }],
      startTime: hole('createdAt'),
      containerStatuses: containers.map(({ name, image, resources, volumeMounts }) => ({
        name,
        state: { running: { startedAt: hole('createdAt') } },
        lastState: {},
        ready: true,
        restartCount: 0,
        image,
        imageID: `${image}@sha256:${'7'.repeat(64)}`,
        containerID: `containerd://${hole('hash')}`,
        started: true,
        allocatedResources: { cpu: '100m', memory: '128Mi' },
        resources,
        volumeMounts,
      })),
      qosClass: 'Burstable',
    },
  });
}

const TEMPLATES = Array.from({ length: APPS }, (_, appNumber) => template(appNumber));

/**
 * Returns the template of a pod and its values. `place`: the node's number plus the number of nodes times the pod's.
 */
export function podObject(
  place: number,
  nodes: number,
  { version, incarnation, createdAt, changedAt }: PodState,
): [Template, Values] {
  const app = (place * 7 + Math.floor(place / nodes)) % APPS;
  const suffix = hex(place, 5);
  const made = TEMPLATES[app];
  if (made === undefined) throw new Error(`there is no workload ${app}`);
  return [
    made,
    {
      name: `service-${app}-5d4f7c9b8-${suffix}-${incarnation}`,
      uid: `${hex(incarnation, 8)}-0000-4000-8000-${hex(place, 12)}`,
      version: String(version),
      createdAt,
      changedAt,
      suffix,
      hash: hex(place, 64),
      node: nodeNameOf(place % nodes),
      ip: `10.${(place >> 16) & 255}.${(place >> 8) & 255}.${place & 255}`,
    },
  ];
}

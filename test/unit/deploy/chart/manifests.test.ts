import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load, loadAll } from 'js-yaml';
import * as z from 'zod';
import { parseOptions } from '#functions/service/options.ts';
import { PROBE_PORT } from '#shared/aws/environment.ts';
import { MAX_CONCURRENT_CALLS } from '#shared/kubernetes/http/transport.ts';
import { NODE_LEASE_NAMESPACE } from '#shared/kubernetes/node-lease.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { VERSION } from '#shared/version.ts';
import { numberIn } from '../../entry-constant.ts';

const ROOT = join(import.meta.dirname, '../../../..');
/** The optional files of each folder. */
const LEFT_TO_CHOICE: Readonly<Record<string, readonly string[]>> = {
  'in-cluster': [
    ...['admission-policy', 'admission-policy-nodes'],
    ...['eviction-api', 'flow-control', 'operators', 'replicas', 'service-monitor', 'takeover'],
  ],
  agent: [
    ...['admission-policy', 'admission-policy-nodes'],
    ...['eviction-api', 'flow-control', 'replicas', 'service-monitor', 'takeover'],
  ],
};

/** Text of the templates under values that no folder sets. */
const OF_OTHER_VALUES = [
  'nodeSelector:',
  '- --comparison-operators',
  '# The kubelet of its node, which asks for probes, is let in by every network. ingress: []',
  '# The policy of this cluster. The leading replica reads it every 25 s, and commands cannot change it. apiVersion: v1 kind: ConfigMap metadata: name: taintward-policy namespace:',
  'labels: app.kubernetes.io/name: taintward data: policy.yaml: |2',
  'annotations: eks.amazonaws.com/role-arn:',
];

const megabytes = z
  .string()
  .regex(/^\d+Mi$/)
  .transform(Number.parseFloat);
const names = z.array(z.string());
const labels = z.record(z.string(), z.string());
const selector = z.object({ matchLabels: labels });
const paths = z.object({ items: z.array(z.object({ path: z.string() })) });

const Manifest = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }),
});
const Pod = z.object({
  metadata: z.object({ labels }),
  spec: z.object({
    serviceAccountName: z.string(),
    automountServiceAccountToken: z.boolean(),
    priorityClassName: z.string(),
    securityContext: z.unknown(),
    tolerations: z.unknown(),
    topologySpreadConstraints: z.array(z.object({ labelSelector: selector })),
    containers: z.tuple([
      z.object({
        image: z.string(),
        // No limit of CPU: who is throttled evicts late.
        resources: z.object({
          requests: z.object({ cpu: z.string(), memory: megabytes }),
          limits: z.strictObject({ memory: megabytes }),
        }),
        command: names,
        args: names.default([]),
        ports: z.tuple([z.object({ name: z.string(), containerPort: z.int() })]),
        securityContext: z.unknown(),
        volumeMounts: z.tuple([z.object({ name: z.string(), mountPath: z.string(), readOnly: z.boolean() })]),
      }),
    ]),
    volumes: z.tuple([
      z.object({
        name: z.string(),
        projected: z.object({
          sources: z.tuple([
            z.object({ serviceAccountToken: z.object({ path: z.string(), expirationSeconds: z.int() }) }),
            z.object({ configMap: paths }),
            z.object({ downwardAPI: paths }),
          ]),
        }),
      }),
    ]),
  }),
});
const Rules = z.array(z.object({ resources: names, verbs: names })).default([]);
const Deployment = z.object({ spec: z.object({ selector, template: Pod }) });

const MAX_REPLICAS = numberIn('deploy/chart/values.schema.json', /^ {6}"maximum": (\d)$/m);

const textOf = (...path: readonly string[]): string => readFileSync(join(ROOT, ...path), 'utf8');

/** Returns the objects in files of a folder. */
const objectsIn = (folder: string, files: readonly string[]) =>
  files.flatMap((file) => loadAll(textOf('deploy', folder, file)).map((each) => Manifest.parse(each)));

for (const [folder, choices] of Object.entries(LEFT_TO_CHOICE)) {
  const { resources, patches } = z
    .object({ resources: names, patches: z.array(z.object({ path: z.string() })).default([]) })
    .parse(load(textOf('deploy', folder, 'kustomization.yaml')));
  const taken = [...resources, ...patches.map(({ path }) => path)];
  const objects = objectsIn(folder, resources);
  const object = (kind: string) => objects.find((each) => each.kind === kind);
  const { spec } = Deployment.parse(object('Deployment'));
  const pod = spec.template;
  const [container] = pod.spec.containers;

  test(`deploy/${folder}: kustomize includes every required file, and the other files are optional`, () => {
    const files = readdirSync(join(ROOT, 'deploy', folder), { recursive: true, encoding: 'utf8' });
    assert.deepEqual(
      files.filter((file) => file.endsWith('.yaml') && !taken.includes(file)).toSorted(),
      [...choices.map((name) => `${name}.yaml`), 'kustomization.yaml'].toSorted(),
    );
  });

  test(`deploy/${folder}: every namespaced object is in the created namespace or in that of node Leases`, () => {
    const made = object('Namespace')?.metadata.name;
    const all = [
      ...objects,
      ...objectsIn(
        folder,
        choices.map((name) => `${name}.yaml`),
      ),
    ];
    const found = new Set(all.map(({ metadata }) => metadata.namespace));
    assert.deepEqual(found, new Set([undefined, made, NODE_LEASE_NAMESPACE]));
  });

  test(`deploy/${folder}: disruption budget, network policy, and topology spread select the replicas`, () => {
    const budget = z.object({ spec: z.object({ selector }) }).parse(object('PodDisruptionBudget'));
    const network = z.object({ spec: z.object({ podSelector: selector }) }).parse(object('NetworkPolicy'));
    const chosen = [
      spec.selector,
      budget.spec.selector,
      network.spec.podSelector,
      ...pod.spec.topologySpreadConstraints.map(({ labelSelector }) => labelSelector),
    ];
    for (const { matchLabels } of chosen) assert.deepEqual(matchLabels, pod.metadata.labels);
  });

  test(`deploy/${folder}: a replica has a service account and a quota for its priority class`, () => {
    assert.equal(pod.spec.serviceAccountName, object('ServiceAccount')?.metadata.name);
    const quota = z
      .object({
        spec: z.object({
          hard: z.object({ pods: z.string() }),
          scopeSelector: z.object({ matchExpressions: z.tuple([z.object({ values: names })]) }),
        }),
      })
      .parse(object('ResourceQuota'));
    const [{ values }] = quota.spec.scopeSelector.matchExpressions;
    assert.deepEqual(values, [pod.spec.priorityClassName]);
    // Of an update with the most replicas that the chart takes.
    assert.ok(Number(quota.spec.hard.pods) >= 2 * MAX_REPLICAS);
  });

  test(`deploy/${folder}: one replica of two is always there, also while another is replaced, drained, or slow`, () => {
    const gone = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 };
    const tolerations = [NODE_NOT_READY, NODE_UNREACHABLE].map((key) => ({ key, ...gone }));
    assert.deepEqual(pod.spec.tolerations, tolerations);
    const apart = { maxSkew: 1, nodeTaintsPolicy: 'Honor', matchLabelKeys: ['pod-template-hash'] };
    const [{ name: port }] = container.ports;
    assert.partialDeepStrictEqual(object('Deployment'), {
      spec: {
        replicas: 2,
        strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template: {
          spec: {
            // Apart from the other replicas of its version, and from one whose node is down.
            topologySpreadConstraints: [
              { ...apart, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' },
              { ...apart, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
            ],
            containers: [
              {
                readinessProbe: { httpGet: { path: '/readyz', port }, periodSeconds: 5, timeoutSeconds: 3 },
                livenessProbe: {
                  httpGet: { path: '/healthz', port },
                  periodSeconds: 10,
                  timeoutSeconds: 5,
                  failureThreshold: 6,
                },
              },
            ],
          },
        },
      },
    });
    const budget = { spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' } };
    assert.partialDeepStrictEqual(object('PodDisruptionBudget'), budget);
  });

  test(`deploy/${folder}: a replica is granted the memory that was measured, and half of its limit, the heap, is more`, () => {
    const { requests, limits } = container.resources;
    assert.equal(requests.cpu, '100m');
    const measured = textOf('docs/internals/benchmarks.md').matchAll(
      /in-cluster-\S+: resident, at the most \| (\d+) MiB/g,
    );
    const [usual, most, ...others] = [...measured].map(([, mebibytes]) => Number(mebibytes));
    assert.ok(usual && most && others.length === 0);
    assert.ok(usual <= requests.memory && most <= requests.memory && 2 * most <= limits.memory);
  });

  test(`deploy/${folder}: Prometheus finds all replicas, also those that are not ready`, () => {
    const [service, monitor] = objectsIn(folder, ['service-monitor.yaml']);
    const { labels } = pod.metadata;
    const [{ name, containerPort }] = container.ports;
    assert.equal(containerPort, PROBE_PORT);
    const ports = [{ name, port: containerPort, targetPort: name }];
    assert.deepEqual(service?.['spec'], {
      clusterIP: 'None',
      publishNotReadyAddresses: true,
      selector: labels,
      ports,
    });
    assert.deepEqual(service?.metadata['labels'], labels);
    assert.deepEqual(monitor?.['spec'], {
      selector: { matchLabels: labels },
      endpoints: [{ port: name, path: '/metrics' }],
    });
  });

  test(`deploy/${folder}: a replica meets the restricted pod security standard, which its namespace enforces`, () => {
    assert.deepEqual(pod.spec.securityContext, {
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const namespace = z.object({ metadata: z.object({ labels }) }).parse(object('Namespace'));
    assert.equal(namespace.metadata.labels['pod-security.kubernetes.io/enforce'], 'restricted');
  });

  test(`deploy/${folder}: a replica reads a projected token that is valid for one hour`, () => {
    const [mount] = container.volumeMounts;
    const [volume] = pod.spec.volumes;
    assert.deepEqual(mount.name, volume.name);
    assert.equal(pod.spec.automountServiceAccountToken, false);
    assert.equal(object('ServiceAccount')?.['automountServiceAccountToken'], false);
    assert.equal(mount.readOnly, true);
    assert.equal(mount.mountPath, '/var/run/secrets/kubernetes.io/serviceaccount');
    const [{ serviceAccountToken }, { configMap }, { downwardAPI }] = volume.projected.sources;
    const files = [serviceAccountToken, ...configMap.items, ...downwardAPI.items].map(({ path }) => path);
    assert.deepEqual(files, ['token', 'ca.crt', 'namespace']);
    assert.equal(serviceAccountToken.expirationSeconds, 3600);
  });

  test(`deploy/${folder}: the image has the version of this release`, () => {
    assert.equal(container.image, `ghcr.io/taintward/taintward:${VERSION}`);
  });
}

// Only `test:chart`, which needs helm, renders the templates.
test('the manifests have the text of the templates of the chart', () => {
  const flat = (text: string) => text.replace(/\s+/g, ' ').trim();
  const textsOf = (...patterns: readonly string[]) =>
    globSync(patterns, { cwd: join(ROOT, 'deploy') }).map((file) => textOf('deploy', file));
  const made = textsOf('{agent,in-cluster}/**/*.yaml').map(flat);
  const missing = textsOf('chart/templates/**/*.yaml', 'chart/templates/_agent.tpl')
    .flatMap((text) => text.split(/\{\{[\s\S]*?\}\}|^---$/m).map(flat))
    .filter((text) => !made.some((each) => each.includes(text)));
  assert.deepEqual(missing.toSorted(), OF_OTHER_VALUES.toSorted());
});

/** Of an API server with default flags: the shares of its priority levels, and the seats that they divide. */
const API_SERVER = { shares: 245, seats: 600 };
const Level = z.object({
  type: z.literal('Limited'),
  limited: z.object({
    nominalConcurrencyShares: z.int(),
    lendablePercent: z.int(),
    limitResponse: z.object({
      type: z.literal('Queue'),
      queuing: z.object({ queues: z.int(), handSize: z.int(), queueLengthLimit: z.int() }),
    }),
  }),
});
const FlowSchema = z.looseObject({ matchingPrecedence: z.int() });

for (const folder of Object.keys(LEFT_TO_CHOICE))
  test(`deploy/${folder}: with flow control, a replica has seats for all its requests, before other service accounts`, () => {
    const objects = objectsIn(folder, ['flow-control.yaml']);
    const level = objects.find(({ kind }) => kind === 'PriorityLevelConfiguration');
    // Account, level, and schema have the name of the replicas.
    const name = level?.metadata.name;
    const own = objects.find(({ kind, metadata }) => kind === 'FlowSchema' && metadata.name === name);
    const election = objects.find((each) => each !== level && each !== own);
    const subjects = [{ kind: 'ServiceAccount', serviceAccount: { name, namespace: 'taintward' } }];
    const all = { apiGroups: ['*'], resources: ['*'], verbs: ['*'], namespaces: ['*'], clusterScope: true };
    const { matchingPrecedence, ...schema } = FlowSchema.parse(own?.['spec']);
    assert.ok(matchingPrecedence < 9000);
    assert.deepEqual(schema, {
      priorityLevelConfiguration: { name },
      rules: [{ subjects, resourceRules: [all] }],
    });

    const { limited } = Level.parse(level?.['spec']);
    const { nominalConcurrencyShares: shares, lendablePercent, limitResponse } = limited;
    const seats = (API_SERVER.seats * shares) / (API_SERVER.shares + shares);
    assert.ok(seats >= MAX_CONCURRENT_CALLS);
    assert.ok(lendablePercent >= 50, 'others borrow most seats while nobody evicts');
    assert.ok(seats * (1 - lendablePercent / 100) >= 1, 'no first eviction waits for a borrowed seat');
    const { queues, handSize, queueLengthLimit } = limitResponse.queuing;
    assert.ok(handSize <= queues && queueLengthLimit >= 2 * MAX_CONCURRENT_CALLS, 'no request is rejected');

    // An agent's leases are in the account.
    if (folder === 'agent') return assert.equal(election, undefined);
    const { matchingPrecedence: first, ...urgent } = FlowSchema.parse(election?.['spec']);
    assert.ok(first < matchingPrecedence);
    const verbs = objectsIn(folder, ['rbac.yaml'])
      .filter(({ metadata }) => metadata.namespace === 'taintward')
      .flatMap(({ rules }) => Rules.parse(rules))
      .flatMap((rule) => (rule.resources.includes('leases') ? rule.verbs : []));
    const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], namespaces: ['taintward'] };
    assert.deepEqual(urgent, {
      priorityLevelConfiguration: { name: 'leader-election' },
      distinguisherMethod: { type: 'ByUser' },
      rules: [{ subjects, resourceRules: [{ ...leases, verbs: verbs.toSorted() }] }],
    });
  });

const EGRESS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'in-cluster': [['TCP 443', 'TCP 6443']],
  // AWS, its names, and the agent of EKS Pod Identity
  agent: [['TCP 443', 'TCP 6443'], ['TCP 443'], ['UDP 53', 'TCP 53'], ['TCP 80']],
};

for (const [folder, egress] of Object.entries(EGRESS))
  test(`a replica accepts connections only from Prometheus at its metrics port, and connects only to ports of an API server and of AWS: deploy/${folder}`, () => {
    const ports = z
      .array(z.object({ protocol: z.string(), port: z.int() }))
      .transform((all) => all.map(({ protocol, port }) => `${protocol} ${port}`));
    const { spec } = z
      .object({
        spec: z.object({
          policyTypes: names,
          ingress: z.unknown(),
          egress: z.array(z.strictObject({ ports, to: z.unknown().optional() })),
        }),
      })
      .parse(objectsIn(folder, ['network-policy.yaml'])[0]);
    assert.deepEqual(spec.policyTypes, ['Ingress', 'Egress']);
    const podSelector = { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } };
    const from = [{ namespaceSelector: {}, podSelector }];
    assert.deepEqual(spec.ingress, [{ ports: [{ protocol: 'TCP', port: 8080 }], from }]);
    assert.deepEqual(
      spec.egress.map((each) => each.ports),
      egress,
    );
    const cidrs = ['169.254.170.23/32', 'fd00:ec2::23/128'];
    for (const rule of spec.egress)
      assert.deepEqual(
        rule.to,
        rule.ports.includes('TCP 80') ? cidrs.map((cidr) => ({ ipBlock: { cidr } })) : undefined,
      );
  });

test('a replica in the cluster has valid options', () => {
  const { spec } = Deployment.parse(objectsIn('in-cluster', ['deployment.yaml'])[0]);
  const [{ args, ports }] = spec.template.spec.containers;
  const options = parseOptions(args.map((arg) => arg.replace('$(POD_IP)', '10.0.0.5')));
  const { inCluster, host, port, log, historyDays, enforce } = options;
  assert.deepEqual(
    { inCluster, host, port, log, historyDays, enforce },
    {
      inCluster: { namespace: undefined },
      host: '10.0.0.5',
      port: ports[0].containerPort,
      log: 'json',
      historyDays: HISTORY_DAYS,
      enforce: false,
    },
  );
});

for (const [folder, script, bundle] of [
  ['in-cluster', 'start', 'service.mjs'],
  ['agent', 'agent', 'agent.mjs'],
] as const)
  test(`deploy/${folder}: a replica has the Node.js flags of npm run ${script}`, () => {
    const { scripts } = z
      .object({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(textOf('package.json')));
    const flags = scripts[script]?.split(' ').filter((word) => /^--(max|heap)-/.test(word)) ?? [];
    const { spec } = Deployment.parse(objectsIn(folder, ['deployment.yaml'])[0]);
    assert.deepEqual(spec.template.spec.containers[0].command, ['node', ...flags, bundle]);
  });
